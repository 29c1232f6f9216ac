#define _GNU_SOURCE
#include "launch/mpi_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void launch_job_fini(struct launch_job *job)
{
    host_list_fini(&job->hosts);
    words_fini(&job->variables);
    words_fini(&job->exported);
    words_fini(&job->program);
}

struct launch_binding mpi_command_binding(const struct launch_job *job)
{
    struct launch_binding b = {.ranks_per_host = job->hosts.n > 0 ? job->hosts.hosts[0].n_slots : 0};
    for (int i = 1; i < job->hosts.n; i++) {
        if (job->hosts.hosts[i].n_slots != b.ranks_per_host) {
            return (struct launch_binding){0};
        }
    }
    b.cores_per_rank = b.ranks_per_host > 0 ? job->cores / b.ranks_per_host : 0;
    return b;
}

void mpi_command_add_ssh(struct words *line, int64_t ssh_port)
{
    static const char *const always[] = {"-o", "BatchMode=yes", "-o", "ConnectTimeout=5", NULL};
    words_add_list(line, always);
    if (ssh_port > 0) {
        words_add(line, "-p");
        words_add(line, "%" PRId64, ssh_port);
    }
}

static void add_mca(struct words *line, const char *name, const char *value)
{
    words_add(line, "--mca");
    words_add(line, "%s", name);
    words_add(line, "%s", value);
}

/* --mca plm_rsh_args, whose value is a line of its own. */
static void add_ssh_arguments(struct words *line, int64_t ssh_port)
{
    struct words ssh = {0};
    struct buf text = {0};
    mpi_command_add_ssh(&ssh, ssh_port);
    words_print(&text, &ssh);
    line->failed = line->failed || ssh.failed || text.failed;
    add_mca(line, "plm_rsh_args", buf_text(&text));
    buf_fini(&text);
    words_fini(&ssh);
}

static void add_network(struct words *line, const struct launch_job *job)
{
    if (job->interface != NULL) {
        add_mca(line, "btl_tcp_if_include", job->interface);
        add_mca(line, "oob_tcp_if_include", job->interface);
    }
    if (job->is_remote) {
        add_ssh_arguments(line, job->ssh_port);
        add_mca(line, "orte_keep_fqdn_hostnames", "1");
        /* 4 s without traffic, then 3 probes 1 s apart (Open MPI's defaults: 300 s, 9 and 20 s) */
        add_mca(line, "oob_tcp_keepalive_time", "4");
        add_mca(line, "oob_tcp_keepalive_intvl", "1");
        add_mca(line, "oob_tcp_keepalive_probes", "3");
    }
    add_mca(line, "odls_base_sigkill_timeout", "0");
}

static void add_binding(struct words *line, const struct launch_job *job)
{
    struct launch_binding b = mpi_command_binding(job);
    if (b.cores_per_rank > 0) {
        words_add(line, "--bind-to");
        words_add(line, "core");
        words_add(line, "--map-by");
        words_add(line, "ppr:%d:node:PE=%" PRId64, b.ranks_per_host, b.cores_per_rank);
        return;
    }
    words_add(line, "--bind-to");
    words_add(line, "none");
    words_add(line, "--map-by");
    words_add(line, "slot");
    if (job->cores > 0 && b.ranks_per_host > 0) { /* fewer cores than ranks */
        words_add(line, "--oversubscribe");
        add_mca(line, "mpi_yield_when_idle", "1");
    }
}

static bool has_all_slots(const struct host *h)
{
    for (int i = 0; i < h->n_slots; i++) {
        if (h->slots[i] != i) {
            return false;
        }
    }
    return true;
}

static bool resumes(const struct launch_job *job)
{
    for (int i = 0; i < job->program.n; i++) {
        const char *word = job->program.owned[i];
        if (strncmp(word, "--resume_from_checkpoint", 24) == 0 ||
            strncmp(word, "--resume-from-checkpoint", 24) == 0) {
            return true;
        }
    }
    return false;
}

/* The ranks' own words; `devices` names those of a host of which not all are used. */
static void add_program(struct words *line, const struct launch_job *job, const struct host *devices,
                        bool resume)
{
    if (devices != NULL) {
        struct buf list = {0};
        for (int i = 0; i < devices->n_slots; i++) {
            buf_printf(&list, "%s%d", i == 0 ? "" : ",", devices->slots[i]);
        }
        words_add(line, "env");
        words_add(line, "CUDA_VISIBLE_DEVICES=%s", buf_text(&list));
        line->failed = line->failed || list.failed;
        buf_fini(&list);
    }
    if (job->guard != NULL) {
        words_add(line, "%s", job->guard);
        words_add(line, "launch");
        words_add(line, "--as_rank");
    }
    for (int i = 0; i < job->program.n; i++) {
        words_add(line, "%s", job->program.owned[i]);
    }
    if (resume && !resumes(job)) {
        words_add(line, "--resume_from_checkpoint");
    }
}

static void add_exports(struct words *line, const struct launch_job *job)
{
    for (int i = 0; i < job->exported.n; i++) {
        words_add(line, "-x");
        words_add(line, "%s", job->exported.owned[i]);
    }
    for (int i = 0; i < job->variables.n; i++) {
        const char *variable = job->variables.owned[i];
        words_add(line, "-x");
        words_add(line, "%.*s", (int)strcspn(variable, "="), variable);
    }
}

/* Hosts of which all slots are used are one part of the line; otherwise each is a part of its own, which
 * names its devices. */
static void add_hosts(struct words *line, const struct launch_job *job, bool resume)
{
    struct buf hosts = {0};
    bool all = true;
    for (int i = 0; i < job->hosts.n; i++) {
        const struct host *h = &job->hosts.hosts[i];
        buf_printf(&hosts, "%s%s:%d", i == 0 ? "" : ",", h->name, h->n_slots);
        all = all && has_all_slots(h);
    }
    line->failed = line->failed || hosts.failed;
    for (int i = 0; i < (all ? 1 : job->hosts.n); i++) {
        const struct host *h = &job->hosts.hosts[i];
        if (i > 0) {
            words_add(line, ":");
        }
        words_add(line, "-n");
        words_add(line, "%" PRId64, all ? host_list_n_ranks(&job->hosts) : h->n_slots);
        words_add(line, "-H");
        if (all) {
            words_add(line, "%s", buf_text(&hosts));
        } else {
            words_add(line, "%s:%d", h->name, h->n_slots);
        }
        add_exports(line, job);
        add_program(line, job, all ? NULL : h, resume);
    }
    buf_fini(&hosts);
}

/* Words of --launcher_args. */
static void add_more(struct words *line, const struct launch_job *job)
{
    for (const char *p = job->more; p != NULL && *p != '\0';) {
        p += strspn(p, " \t");
        int n = (int)strcspn(p, " \t");
        if (n > 0) {
            words_add(line, "%.*s", n, p);
        }
        p += n;
    }
}

/* Slurm places the ranks, and knows the hosts of its job; a list of hosts is a choice among them. */
static void make_srun(struct words *line, const struct launch_job *job, bool resume)
{
    struct launch_binding b = mpi_command_binding(job);
    struct buf hosts = {0};
    words_add(line, "srun");
    words_add(line, "--mpi=pmix");
    words_add(line, "--kill-on-bad-exit=1");
    if (job->hosts.n > 0) {
        for (int i = 0; i < job->hosts.n; i++) {
            buf_printf(&hosts, "%s%s", i == 0 ? "" : ",", job->hosts.hosts[i].name);
        }
        line->failed = line->failed || hosts.failed;
        words_add(line, "--nodes=%d", job->hosts.n);
        words_add(line, "--ntasks=%" PRId64, host_list_n_ranks(&job->hosts));
        words_add(line, "--nodelist=%s", buf_text(&hosts));
    }
    if (job->hosts.n == 0 && job->n_nodes > 0) {
        words_add(line, "--nodes=%" PRId64, job->n_nodes);
    }
    int64_t per_host = job->hosts.n == 0 ? job->n_tasks : b.ranks_per_host;
    if (per_host > 0) {
        words_add(line, "--ntasks-per-node=%" PRId64, per_host);
    }
    if (b.cores_per_rank > 0) {
        words_add(line, "--cpus-per-task=%" PRId64, b.cores_per_rank);
    }
    words_add(line, "--cpu-bind=cores");
    buf_fini(&hosts);
    add_more(line, job);
    add_program(line, job, NULL, resume);
}

struct status mpi_command_make(struct words *line, const struct launch_job *job, bool resume)
{
    if (job->kind == LAUNCH_AS_TYPED) {
        add_program(line, job, NULL, resume);
    } else if (job->kind == LAUNCH_SRUN) {
        make_srun(line, job, resume);
    } else {
        words_add(line, "mpirun");
        if (job->as_root) {
            words_add(line, "--allow-run-as-root");
        }
        add_network(line, job);
        add_binding(line, job);
        add_more(line, job);
        add_hosts(line, job, resume);
    }
    return words_status(line);
}
