/* kiln launch: starts a command as several ranks, on this machine or on several, and keeps it running. */
#define _GNU_SOURCE
#include "cmd/command_run.h"
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/log.h"
#include "launch/host_check.h"
#include "launch/host_filter.h"
#include "launch/mpi_command.h"
#include "launch/program.h"
#include "launch/rank_environment.h"
#include "launch/rank_guard.h"
#include "launch/supervise.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct launch_args {
    const char *hostfile, *launcher, *launcher_args, *interface, *env_file, *world_info, *slurm_job;
    const char *master_addr, *master_port;
    struct host_filter filter;
    int64_t num_ranks, ssh_port, max_restarts, min_hosts, cores_per_host;
    double backoff, grace;
    bool no_ssh_check, as_rank, as_launcher;
    struct command_flags common;
};

#define AT(field) offsetof(struct launch_args, field)

static const struct option options[] = {
    OPTION_GROUP_ROW("where the ranks run"),
    OPTION_ENV_ROW("hostfile", AT(hostfile), NULL, "FILE", "OMPI_MCA_orte_default_hostfile",
                   "read hosts from this file, lines \"HOST slots=N\"; by default ranks run on this machine, "
                   "or where Slurm puts them"),
    OPTION_INT_ROW("num_ranks", AT(num_ranks), NULL, 1, 256,
                   "number of ranks on this machine, without --hostfile"),
    OPTION_STRING_ROW("include", AT(filter.include), NULL, "HOSTS",
                      "use only these hosts and slots of --hostfile: host1@host2:0,2"),
    OPTION_STRING_ROW("exclude", AT(filter.exclude), NULL, "HOSTS",
                      "use all but these hosts and slots of --hostfile"),
    NUM_NODES_ROW(AT(filter.num_nodes)),
    OPTION_INT_ROW("num_gpus", AT(filter.num_gpus), NULL, -1, 256,
                   "number of ranks on each host; -1: all slots of --hostfile"),
    OPTION_STRING_ROW("world_info", AT(world_info), NULL, "BASE64",
                      "hosts and slots as deepspeed encodes them"),
    SSH_PORT_ROW(AT(ssh_port)),
    OPTION_STRING_ROW("interface", AT(interface), NULL, "NAME",
                      "network to use between ranks: eth0, or a range such as 10.0.0.0/16"),
    OPTION_STRING_ROW("env_file", AT(env_file), NULL, "FILE",
                      "set the variables in this file (lines NAME=VALUE) on all ranks, after "
                      "~/.deepspeed_env and ./.deepspeed_env"),
    OPTION_GROUP_ROW("how the ranks are started"),
    OPTION_CHOICE_ROW("launcher", AT(launcher), "auto", "auto|openmpi|slurm|pdsh",
                      "use mpirun (openmpi, pdsh) or srun (slurm); auto: srun inside a Slurm job without "
                      "--hostfile, else mpirun"),
    OPTION_STRING_ROW("launcher_args", AT(launcher_args), NULL, "WORDS",
                      "add these words to the command line of mpirun or srun"),
    OPTION_INT_ROW("cores_per_host", AT(cores_per_host), NULL, 1, 1e6,
                   "number of cores that the ranks of a host share; by default each host is asked"),
    OPTION_FLAG_ROW("no_ssh_check", AT(no_ssh_check), "do not ask the hosts over ssh before starting"),
    OPTION_ENV_ROW("slurm_job", AT(slurm_job), NULL, "ID", "SLURM_JOB_ID",
                   "Slurm job in which the ranks run"),
    OPTION_STRING_ROW("master_addr", AT(master_addr), "", "HOST", "set MASTER_ADDR for the ranks"),
    OPTION_STRING_ROW("master_port", AT(master_port), "", "N", "set MASTER_PORT for the ranks"),
    OPTION_GROUP_ROW("when something fails"),
    OPTION_INT_ROW("max_restarts", AT(max_restarts), "3", 0, 1e6,
                   "maximum number of restarts without a new checkpoint between them; 0: off"),
    OPTION_REAL_ROW("backoff", AT(backoff), "5", 0, 3600,
                    "number of seconds before the second restart in a row; it doubles each time, and the "
                    "first restart is at once"),
    OPTION_INT_ROW("min_hosts", AT(min_hosts), NULL, 1, 1e6,
                   "continue without lost hosts while at least N are left; by default wait for all hosts"),
    OPTION_REAL_ROW("grace", AT(grace), "3", 0, 3600,
                    "number of seconds that the other ranks get to end after one has failed"),
    DRY_RUN_ROW(AT(common.dry_run), "print the command line and the cores of each rank, and start nothing; "
                                    "--dry-run among COMMAND's flags does the same"),
    OPTION_FLAG_ROW("as_rank", AT(as_rank),
                    "internal: run COMMAND as this process's rank (mpirun starts this)"),
    OPTION_FLAG_ROW("as_launcher", AT(as_launcher),
                    "internal: become mpirun or srun (kiln launch starts this)"),
    OPTION_IGNORED_ROW("no_python", "kiln is a program of its own"),
    OPTION_IGNORED_ROW("no_local_rank", "ranks learn their number from the launcher"),
    OPTION_IGNORED_ROW("force_multi", "one host is started as several are"),
    OPTION_IGNORED_ROW("bind_cores_to_rank", "each rank has cores of its own, where there are enough"),
    OPTION_IGNORED_VALUE_ROW("node_rank", "N", "all hosts are started from here"),
    {0},
};

/* A command that trains, by its name. */
static const struct command *find_trainer(const char *name)
{
    static const struct command *const trainers[] = {&command_pretrain, &command_squad, &command_classify,
                                                     &command_tag, &command_embed_train};
    for (size_t i = 0; i < sizeof trainers / sizeof trainers[0]; i++) {
        if (strcmp(trainers[i]->name, name) == 0) {
            return trainers[i];
        }
    }
    return NULL;
}

/* A wrong flag is said once, before the ranks all say it. */
static struct status check_program(const struct program *p)
{
    const struct command *c = p->first_flag == 0 ? NULL : find_trainer(p->words.owned[p->first_flag - 1]);
    if (c == NULL) {
        return status_ok();
    }
    struct words flags = {0};
    for (int i = p->first_flag; i < p->words.n; i++) {
        words_add(&flags, "%s", p->words.owned[i]);
    }
    struct status s = words_status(&flags);
    log_set_level(LOG_WARNING); /* the ranks log the rest themselves */
    s = failed(s) ? s : command_check(c, flags.n, flags.list);
    log_set_level(LOG_INFO);
    words_fini(&flags);
    return status_context(s, "kiln %s", c->name);
}

/* Finds the hosts of the ranks; an empty list leaves it to Slurm. */
static struct status find_hosts(struct launch_job *job, const struct launch_args *a)
{
    bool here = a->hostfile == NULL && a->world_info == NULL;
    FAIL_IF(a->num_ranks > 0 && !here, STATUS_USAGE,
            "--num_ranks is for this machine alone; with --hostfile give --num_gpus, the number of ranks on "
            "each host");
    if (a->hostfile != NULL) {
        TRY(host_list_read(&job->hosts, a->hostfile));
    } else if (a->world_info != NULL) {
        TRY(host_list_decode(&job->hosts, a->world_info));
    } else if (job->kind == LAUNCH_SRUN) {
        return a->filter.include == NULL && a->filter.exclude == NULL
                   ? status_ok()
                   : status_error(STATUS_USAGE,
                                  "--include and --exclude choose from --hostfile, which is not given");
    } else {
        int64_t n = a->num_ranks > 0 ? a->num_ranks : a->filter.num_gpus;
        FAIL_IF(n < 1, STATUS_USAGE,
                "the number of ranks is missing: give --num_ranks N for this machine, or --hostfile FILE for "
                "several");
        FAIL_IF(a->filter.num_nodes > 1, STATUS_USAGE,
                "--num_nodes is %" PRId64 ", but without --hostfile there is this machine only",
                a->filter.num_nodes);
        TRY(host_list_add(&job->hosts, "localhost", n, "--num_ranks"));
    }
    struct host_filter filter = a->filter;
    filter.num_gpus = here ? 0 : filter.num_gpus;
    filter.num_nodes = here ? 0 : filter.num_nodes;
    TRY(host_filter_apply(&filter, &job->hosts));
    for (int i = 0; i < job->hosts.n; i++) {
        job->is_remote = job->is_remote || !host_check_is_here(job->hosts.hosts[i].name);
    }
    return status_ok();
}

/* Every host must answer before anything starts: an error of ssh inside mpirun names no host. */
static struct status ask_hosts(struct launch_job *job, const struct program *p, const struct launch_args *a)
{
    if (job->hosts.n == 0 || (a->no_ssh_check && job->is_remote) ||
        ((a->common.dry_run || p->is_dry_run) && job->is_remote)) {
        return status_ok();
    }
    struct host_answer *answers = calloc((size_t)job->hosts.n, sizeof *answers);
    FAIL_IF(answers == NULL, STATUS_MEMORY, "out of memory for %d hosts", job->hosts.n);
    struct status s = host_check_ask(answers, &job->hosts, job->ssh_port, 10);
    for (int i = 0; i < job->hosts.n && !failed(s); i++) {
        if (!answers[i].reached) {
            s = status_error(STATUS_UNAVAILABLE, "%s: %s; kiln netcheck tests all pairs of hosts",
                             job->hosts.hosts[i].name, answers[i].problem.text);
        } else if (i == 0 || answers[i].cores < job->cores) {
            job->cores = answers[i].cores;
        }
    }
    free(answers);
    return s;
}

static struct status set_variables(struct launch_job *job, const struct launch_args *a)
{
    TRY(rank_environment_read(&job->variables, a->env_file));
    if (a->master_addr != NULL) {
        TRY(host_list_check_name(a->master_addr, "--master_addr"));
        words_add(&job->variables, "MASTER_ADDR=%s", a->master_addr);
    }
    if (a->master_port != NULL) {
        words_add(&job->variables, "MASTER_PORT=%s", a->master_port);
    }
    if (job->is_remote) {
        rank_environment_export(&job->exported, &job->variables);
    }
    return words_status(&job->variables);
}

static void report_binding(const struct launch_job *job)
{
    struct launch_binding b = mpi_command_binding(job);
    if (job->hosts.n == 0) {
        return;
    }
    int64_t n = host_list_n_ranks(&job->hosts);
    const char *host = job->hosts.n == 1 ? "host" : "hosts", *rank = n == 1 ? "rank" : "ranks";
    if (b.cores_per_rank > 0) {
        log_info("%d %s, %" PRId64 " %s; each rank is bound to %" PRId64 " of its host's %" PRId64 " cores",
                 job->hosts.n, host, n, rank, b.cores_per_rank, job->cores);
    } else {
        log_info("%d %s, %" PRId64 " %s; not bound to cores: %s", job->hosts.n, host, n, rank,
                 b.ranks_per_host == 0 ? "hosts have different numbers of ranks"
                 : job->cores > 0      ? "a host has fewer cores than ranks"
                                       : "the hosts' cores are not known here; --cores_per_host says them");
    }
}

static struct status print_line(const struct launch_job *job)
{
    struct words line = {0};
    struct buf text = {0};
    struct status s = mpi_command_make(&line, job, false);
    words_print(&text, &line);
    s = failed(s) ? s : buf_status(&text);
    for (int i = 0; i < job->variables.n && !failed(s); i++) {
        fputs(i == 0 ? "environment: " : " ", stdout);
        log_put_text(stdout, job->variables.owned[i]);
    }
    fputs(job->variables.n > 0 && !failed(s) ? "\n" : "", stdout);
    if (!failed(s)) {
        log_put_text(stdout, buf_text(&text));
        putchar('\n');
    }
    buf_fini(&text);
    words_fini(&line);
    return s;
}

static struct status plan_job(struct launch_job *job, struct program *p, const struct launch_args *a)
{
    bool by_slurm =
        strcmp(a->launcher, "slurm") == 0 || (strcmp(a->launcher, "auto") == 0 && a->slurm_job != NULL &&
                                              a->hostfile == NULL && a->num_ranks == 0);
    *job = (struct launch_job){.kind = p->is_line ? LAUNCH_AS_TYPED
                                       : by_slurm ? LAUNCH_SRUN
                                                  : LAUNCH_MPIRUN,
                               .cores = a->cores_per_host,
                               .ssh_port = a->ssh_port,
                               .interface = a->interface,
                               .more = a->launcher_args,
                               .guard = p->is_line ? NULL : p->self,
                               .as_root = geteuid() == 0,
                               .n_nodes = a->filter.num_nodes,
                               .n_tasks = a->filter.num_gpus};
    job->program = p->words; /* moved */
    p->words = (struct words){0};
    if (!p->is_line) {
        TRY(find_hosts(job, a));
    }
    TRY(set_variables(job, a));
    if (job->kind == LAUNCH_MPIRUN && a->cores_per_host == 0) {
        TRY(ask_hosts(job, p, a));
    }
    return status_ok();
}

/* Becomes mpirun or srun.  If the supervisor is killed, the ranks shall save and leave, so that the next
 * start can resume: the launcher then gets SIGUSR1, which it passes on to them, and is not ended by writing
 * to a pipe that is not read any more.  STATUS_PREEMPTED: the supervisor is gone. */
static struct status become_launcher(const struct words *program)
{
    TRY(words_status(program));
    signal(SIGPIPE, SIG_IGN);
    setenv("PRTE_MCA_prte_keep_fqdn_hostnames", "1",
           0); /* the orte_keep_fqdn_hostnames of Open MPI 4 (launch/mpi_command.h) */
    prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    if (getppid() == 1) { /* the parent was killed before prctl took effect */
        return status_error(STATUS_PREEMPTED, "kiln launch has ended, so nothing was started");
    }
    execvp(program->owned[0], program->owned);
    return status_error(STATUS_UNAVAILABLE, "cannot start %.200s: %s%s", program->owned[0], strerror(errno),
                        errno == ENOENT ? "; install it, or put its folder into PATH" : "");
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct launch_args *a = args;
    struct launch_job job = {0};
    struct program p;
    TRY(program_init(&p, n_positional, positional));
    if (a->as_rank || a->as_launcher) {
        struct status ended = a->as_rank ? rank_guard_run(&p.words) : become_launcher(&p.words);
        program_fini(&p);
        return ended;
    }
    struct status s = check_program(&p);
    s = failed(s) ? s : plan_job(&job, &p, a);
    if (!failed(s)) {
        report_binding(&job);
        s = print_line(&job);
    }
    if (!failed(s) && !a->common.dry_run && !p.is_dry_run) {
        fflush(stdout);
        host_check_own_name();
        struct supervise how = {.job = &job,
                                .program = &p,
                                .max_restarts = a->max_restarts,
                                .min_hosts = a->min_hosts,
                                .backoff_s = a->backoff,
                                .grace_s = a->grace,
                                .checks_hosts = !a->no_ssh_check};
        s = supervise_run(&how);
    }
    launch_job_fini(&job);
    program_fini(&p);
    return s;
}

const struct command command_launch = {
    .name = "launch",
    .summary = "start a command as several ranks on one or many machines, and restart it after failures",
    .details =
        "COMMAND is `kiln pretrain ...`, `pretrain ...`, a replaced script (`python run_pretraining.py "
        "...`), or a line of mpirun or srun, which is then only supervised.  Everything after its first word "
        "belongs to it.\nThe line of mpirun or srun is printed, then run.  When a rank fails, its number, "
        "host, step and error are named, and the command starts again with --resume_from_checkpoint where "
        "its exit code allows it (docs/exit_codes.md).  SIGTERM, SIGINT and SIGUSR1 make all ranks save and "
        "leave; a second signal ends them at once.",
    .positional_usage = "COMMAND...",
    .min_positional = 1,
    .max_positional = 100000,
    .ends_at_word = true,
    .options = options,
    .args_bytes = sizeof(struct launch_args),
    .run = run,
};
