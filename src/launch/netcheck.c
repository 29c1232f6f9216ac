#define _GNU_SOURCE
#include "launch/netcheck.h"

#include "core/clock.h"
#include "core/log.h"
#include "launch/child.h"
#include "launch/host_check.h"
#include "launch/mpi_command.h"
#include "launch/net_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds: to start the servers, to test the peers, and for the servers to live if nobody comes. */
static const double serve_limit_s = 8, probe_limit_s = 18, server_life_s = 27;
enum { AT_ONCE = 256, TABLE_HOSTS = 12 };

/* What is known of a host, and of its tests of the others. */
struct node {
    bool reached;
    int port;
    char token[NET_TOKEN_BYTES + 1];
};

struct pair {
    bool has_ssh, has_tcp;
    double latency_us, bytes_per_s;
};

struct check {
    const struct netcheck *asked;
    struct node *nodes; /* [n] */
    struct pair *pairs; /* [n, n]: from, to */
    int n, n_failures;
};

/* kiln's own words, run on the host: over ssh as one word, which the shell there splits again. */
static void make_line(struct words *line, const struct check *c, int host, const struct words *own)
{
    const char *name = c->asked->hosts->hosts[host].name;
    if (host_check_is_here(name)) {
        words_add_list(line, (const char *const *)own->owned);
        return;
    }
    struct buf text = {0};
    words_print(&text, own);
    words_add(line, "ssh");
    mpi_command_add_ssh(line, c->asked->ssh_port);
    words_add(line, "%s", name);
    words_add(line, "%s", buf_text(&text));
    line->failed = line->failed || text.failed || own->failed;
    buf_fini(&text);
}

static void add_own(struct words *own, const struct check *c)
{
    words_add(own, "%s", c->asked->program);
    words_add(own, "netcheck");
    if (c->asked->ssh_port > 0) {
        words_add(own, "--ssh_port=%" PRId64, c->asked->ssh_port);
    }
}

static void fail_one(struct check *c, const char *from, const char *to, const char *why)
{
    c->n_failures++;
    log_warning("%s%s%s: %s", from, to[0] == '\0' ? "" : " -> ", to, why);
}

/* "serve PORT TOKEN", possibly behind a greeting of the login. */
static bool read_server(struct node *node, const char *output)
{
    const char *at = strstr(output, "serve\t");
    return at != NULL && sscanf(at, "serve\t%d\t%32[0-9a-f]", &node->port, node->token) == 2 &&
           strlen(node->token) == NET_TOKEN_BYTES;
}

static void explain_server(struct check *c, int host, const struct child_job *job)
{
    const char *name = c->asked->hosts->hosts[host].name, *said = buf_text(&job->output);
    const char *error = strstr(said, "kiln: error: ");
    char why[500];
    if (error != NULL) {
        snprintf(why, sizeof why, "%.*s", (int)strcspn(error + 13, "\n"), error + 13);
    } else if (job->code == 127 || job->code == 126) {
        snprintf(why, sizeof why, "%s does not run there: install kiln at the same path on every host",
                 c->asked->program);
    } else {
        struct ssh_cause cause =
            host_check_explain(job->timed_out ? "timed out" : said, name, c->asked->ssh_port);
        snprintf(why, sizeof why, "%s: %s", cause.name, cause.cure);
    }
    fail_one(c, name, "", why);
}

/* Starts a server on every host. */
static struct status start_servers(struct check *c, struct child_job *jobs)
{
    for (int i = 0; i < c->n; i++) {
        struct words own = {0};
        add_own(&own, c);
        words_add(&own, "--serve");
        words_add(&own, "--clients=%d", c->n - 1);
        words_add(&own, "--seconds=%.0f", server_life_s);
        if (c->asked->port > 0) {
            words_add(&own, "--port=%" PRId64, c->asked->port);
        }
        if (c->asked->interface != NULL) {
            words_add(&own, "--interface=%s", c->asked->interface);
        }
        make_line(&jobs[i].line, c, i, &own);
        words_fini(&own);
    }
    TRY(child_jobs_run(jobs, c->n, AT_ONCE, serve_limit_s, serve_limit_s));
    for (int i = 0; i < c->n; i++) {
        c->nodes[i].reached = jobs[i].code == 0 && read_server(&c->nodes[i], buf_text(&jobs[i].output));
        if (!c->nodes[i].reached) {
            explain_server(c, i, &jobs[i]);
        }
    }
    return status_ok();
}

static struct status run_probes(struct check *c, struct child_job *jobs)
{
    static const char nobody[] = "00000000000000000000000000000000";
    int n_jobs = 0;
    for (int i = 0; i < c->n; i++) {
        struct words own = {0};
        struct buf peers = {0};
        if (!c->nodes[i].reached) {
            continue;
        }
        for (int k = 1; k < c->n; k++) {
            int to = (i + k) % c->n;
            const struct node *peer = &c->nodes[to];
            buf_printf(&peers, "%s%s:%d:%s", k == 1 ? "" : ",", c->asked->hosts->hosts[to].name,
                       peer->reached ? peer->port : 0, peer->reached ? peer->token : nobody);
        }
        add_own(&own, c);
        words_add(&own, "--peers=%s", buf_text(&peers));
        own.failed = own.failed || peers.failed;
        make_line(&jobs[n_jobs++].line, c, i, &own);
        words_fini(&own);
        buf_fini(&peers);
    }
    return child_jobs_run(jobs, n_jobs, AT_ONCE, probe_limit_s, probe_limit_s);
}

/* One test's line of a probe; it is cut up. */
static void read_test(struct check *c, int from, char *line)
{
    char *rest;
    const struct host *hosts = c->asked->hosts->hosts;
    const char *kind = strtok_r(line, "\t", &rest),
               *to_name = kind == NULL ? NULL : strtok_r(NULL, "\t", &rest);
    const char *result = to_name == NULL ? NULL : strtok_r(NULL, "\t", &rest);
    int to = result == NULL ? -1 : host_list_find(c->asked->hosts, to_name);
    if (to < 0 || (strcmp(kind, "ssh") != 0 && strcmp(kind, "tcp") != 0)) {
        return;
    }
    struct pair *p = &c->pairs[from * c->n + to];
    bool ok = strcmp(result, "ok") == 0, is_ssh = kind[0] == 's';
    *(is_ssh ? &p->has_ssh : &p->has_tcp) = ok;
    if (ok && !is_ssh) {
        ok = sscanf(rest, "%lf\t%lf", &p->latency_us, &p->bytes_per_s) == 2;
    }
    if (!ok && c->nodes[to].reached) { /* of others it was said already */
        fail_one(c, hosts[from].name, hosts[to].name, rest);
    }
}

static void read_probes(struct check *c, struct child_job *jobs)
{
    int n_jobs = 0;
    for (int i = 0; i < c->n; i++) {
        if (!c->nodes[i].reached) {
            continue;
        }
        struct child_job *job = &jobs[n_jobs++];
        char *rest, *text = job->output.data;
        for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            read_test(c, i, line);
        }
        if (job->code != 0) {
            fail_one(c, c->asked->hosts->hosts[i].name, "",
                     job->timed_out ? "its tests did not end in time; '-' marks the missing ones in the table"
                                    : "its tests failed");
        }
    }
}

static void print_pair(const struct check *c, int from, int to)
{
    const struct host *hosts = c->asked->hosts->hosts;
    const struct pair *p = &c->pairs[from * c->n + to];
    char latency[32] = "-", rate[32] = "-";
    if (p->has_tcp) {
        snprintf(latency, sizeof latency, "%.0f", p->latency_us);
        snprintf(rate, sizeof rate, "%.3g", p->bytes_per_s * 8e-9);
    }
    printf("%-24s %-24s %-5s %-5s %12s %12s\n", hosts[from].name, hosts[to].name, p->has_ssh ? "ok" : "-",
           p->has_tcp ? "ok" : "-", latency, rate);
}

/* All pairs of few hosts; of many those that are not whole, and the slowest. */
static void print_table(const struct check *c)
{
    int slowest = -1, n_whole = 0;
    printf("%-24s %-24s %-5s %-5s %12s %12s\n", "from", "to", "ssh", "tcp", "latency us", "Gbit/s");
    for (int i = 0; i < c->n * c->n; i++) {
        const struct pair *p = &c->pairs[i];
        bool is_whole = p->has_ssh && p->has_tcp;
        if (i / c->n == i % c->n) {
            continue;
        }
        n_whole += is_whole;
        slowest = is_whole && (slowest < 0 || p->bytes_per_s < c->pairs[slowest].bytes_per_s) ? i : slowest;
        if (c->n <= TABLE_HOSTS || !is_whole) {
            print_pair(c, i / c->n, i % c->n);
        }
    }
    if (c->n > TABLE_HOSTS && slowest >= 0) {
        printf("slowest:\n");
        print_pair(c, slowest / c->n, slowest % c->n);
    }
    printf("%d of %d pairs work\n", n_whole, c->n * (c->n - 1));
}

static struct status check_all(struct check *c, struct child_job *servers, struct child_job *probes)
{
    int64_t begin = clock_ns();
    int n_whole = 0;
    TRY(start_servers(c, servers));
    TRY(run_probes(c, probes));
    read_probes(c, probes);
    print_table(c);
    for (int i = 0; i < c->n * c->n; i++) {
        n_whole += i / c->n == i % c->n || (c->pairs[i].has_ssh && c->pairs[i].has_tcp);
    }
    log_info("%.1f s", clock_since_s(begin));
    return n_whole == c->n * c->n && c->n_failures == 0
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE,
                              "%d of %d pairs of hosts failed; the lines above say why and what to do",
                              c->n * c->n - n_whole, c->n * (c->n - 1));
}

struct status netcheck_run(const struct netcheck *asked)
{
    struct check c = {.asked = asked, .n = asked->hosts->n};
    size_t n = (size_t)c.n;
    c.nodes = calloc(n + 1, sizeof *c.nodes);
    c.pairs = calloc(n * n + 1, sizeof *c.pairs);
    struct child_job *jobs = calloc(2 * n + 1, sizeof *jobs);
    struct status s = c.nodes == NULL || c.pairs == NULL || jobs == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for %d hosts", c.n)
                          : check_all(&c, jobs, jobs + n);
    if (jobs != NULL) {
        child_jobs_fini(jobs, 2 * c.n);
    }
    free(jobs);
    free(c.pairs);
    free(c.nodes);
    return s;
}
