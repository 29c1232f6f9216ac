#define _GNU_SOURCE
#include "launch/netcheck.h"

#include "core/clock.h"
#include "core/log.h"
#include "launch/child.h"
#include "launch/host_check.h"
#include "launch/mpi_command.h"
#include "launch/net_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds: to start the servers, to test the peers, and for the servers to live if nobody comes. */
static const double serve_limit_s = 8, probe_limit_s = 18, server_life_s = 27;
enum { AT_ONCE = 256, TABLE_HOSTS = 12 };

/* A host's server. */
struct node {
    bool reached;
    int port; /* 0 if it was not reached */
    char token[NET_TOKEN_BYTES + 1];
};

struct pair {
    bool has_ssh, has_tcp;
    double latency_us, bytes_per_s;
};

struct check {
    const struct netcheck *asked;
    struct node *nodes;     /* [n] */
    struct pair *pairs;     /* [n, n]: from, to */
    struct child_job *jobs; /* [2 n]: those that start the servers, and those that test the peers */
    int n, n_failures;
};

static const char *name_of(const struct check *c, int host)
{
    return c->asked->hosts->hosts[host].name;
}

/* The line that runs `kiln netcheck WORDS` on a host: over ssh as one word, which the shell there splits
 * again.  Takes the words over. */
static void make_line(struct words *line, const struct check *c, int host, struct words *own)
{
    struct words all = {0};
    struct buf text = {0};
    words_add(&all, "%s", c->asked->program);
    words_add(&all, "netcheck");
    if (c->asked->ssh_port > 0) {
        words_add(&all, "--ssh_port=%" PRId64, c->asked->ssh_port);
    }
    words_add_list(&all, (const char *const *)own->owned);
    if (host_check_is_here(name_of(c, host))) {
        words_add_list(line, (const char *const *)all.owned);
    } else {
        words_print(&text, &all);
        words_add(line, "ssh");
        mpi_command_add_ssh(line, c->asked->ssh_port);
        words_add(line, "%s", name_of(c, host));
        words_add(line, "%s", buf_text(&text));
    }
    line->failed = line->failed || text.failed || own->failed || all.failed;
    buf_fini(&text);
    words_fini(&all);
    words_fini(own);
}

static void fail_one(struct check *c, const char *from, const char *to, const char *why)
{
    c->n_failures++;
    log_warning("%s%s%s: %s", from, to[0] == '\0' ? "" : " -> ", to, why);
}

/* ---- servers ---- */

/* "serve PORT TOKEN", possibly after a greeting of the login. */
static bool read_server(struct node *node, const char *output)
{
    const char *at = strstr(output, "serve\t");
    return at != NULL && sscanf(at, "serve\t%d\t%32[0-9a-f]", &node->port, node->token) == 2 &&
           strlen(node->token) == NET_TOKEN_BYTES;
}

static void explain_server(struct check *c, int host, const struct child_job *job)
{
    const char *said = buf_text(&job->output), *error = strstr(said, "kiln: error: ");
    char why[500];
    if (error != NULL) {
        snprintf(why, sizeof why, "%.*s", (int)strcspn(error + 13, "\n"), error + 13);
    } else if (job->code == 127 || job->code == 126) {
        snprintf(why, sizeof why, "%s does not run there: install kiln at the same path on every host",
                 c->asked->program);
    } else {
        struct ssh_cause cause =
            host_check_explain(job->timed_out ? "timed out" : said, name_of(c, host), c->asked->ssh_port);
        snprintf(why, sizeof why, "%s: %s", cause.name, cause.cure);
    }
    fail_one(c, name_of(c, host), "", why);
}

/* Starts a server on every host. */
static struct status start_servers(struct check *c)
{
    for (int i = 0; i < c->n; i++) {
        struct words own = {0};
        words_add(&own, "--serve");
        words_add(&own, "--clients=%d", c->n - 1);
        words_add(&own, "--seconds=%.0f", server_life_s);
        if (c->asked->port > 0) {
            words_add(&own, "--port=%" PRId64, c->asked->port);
        }
        if (c->asked->interface != NULL) {
            words_add(&own, "--interface=%s", c->asked->interface);
        }
        make_line(&c->jobs[i].line, c, i, &own);
    }
    TRY(child_jobs_run(c->jobs, c->n, AT_ONCE, serve_limit_s, serve_limit_s));
    for (int i = 0; i < c->n; i++) {
        const struct child_job *job = &c->jobs[i];
        c->nodes[i].reached = job->code == 0 && read_server(&c->nodes[i], buf_text(&job->output));
        if (!c->nodes[i].reached) {
            c->nodes[i] = (struct node){.token = "00000000000000000000000000000000"};
            explain_server(c, i, job);
        }
    }
    return status_ok();
}

/* ---- tests of the peers ---- */

/* One test's line of a probe, with tabs: "ssh TO ok", "tcp TO ok LATENCY RATE", or "... TO fail WHY". */
static void read_test(struct check *c, int from, const char *line)
{
    char kind[4], to_name[256], result[5];
    int at = 0;
    if (sscanf(line, "%3[a-z]\t%255[^\t]\t%4[a-z]%n", kind, to_name, result, &at) != 3) {
        return;
    }
    int to = host_list_find(c->asked->hosts, to_name);
    bool ok = strcmp(result, "ok") == 0, is_ssh = strcmp(kind, "ssh") == 0;
    if (to < 0 || (!is_ssh && strcmp(kind, "tcp") != 0)) {
        return;
    }
    struct pair *p = &c->pairs[from * c->n + to];
    *(is_ssh ? &p->has_ssh : &p->has_tcp) = ok;
    if (ok && !is_ssh) {
        ok = sscanf(line + at, "%lf\t%lf", &p->latency_us, &p->bytes_per_s) == 2;
    }
    if (!ok && c->nodes[to].reached) { /* the failure of other hosts was reported already */
        fail_one(c, name_of(c, from), name_of(c, to), line[at] == '\t' ? line + at + 1 : "");
    }
}

/* Lets every host that was reached test all others. */
static struct status run_probes(struct check *c)
{
    struct child_job *jobs = c->jobs + c->n;
    for (int i = 0; i < c->n; i++) {
        struct words own = {0};
        struct buf peers = {0};
        if (!c->nodes[i].reached) {
            words_add(&jobs[i].line, "true");
            continue;
        }
        for (int k = 1; k < c->n; k++) {
            int to = (i + k) % c->n;
            buf_printf(&peers, "%s%s:%d:%s", k == 1 ? "" : ",", name_of(c, to), c->nodes[to].port,
                       c->nodes[to].token);
        }
        words_add(&own, "--peers=%s", buf_text(&peers));
        own.failed = own.failed || peers.failed;
        make_line(&jobs[i].line, c, i, &own);
        buf_fini(&peers);
    }
    TRY(child_jobs_run(jobs, c->n, AT_ONCE, probe_limit_s, probe_limit_s));
    for (int i = 0; i < c->n; i++) {
        char *rest, *text = c->nodes[i].reached ? jobs[i].output.data : NULL;
        for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            read_test(c, i, line);
        }
        if (c->nodes[i].reached && jobs[i].code != 0) {
            fail_one(c, name_of(c, i), "",
                     jobs[i].timed_out
                         ? "its tests did not end in time; '-' marks the missing ones in the table"
                         : "its tests failed");
        }
    }
    return status_ok();
}

/* ---- the table ---- */

static void print_pair(const struct check *c, int i)
{
    const struct pair *p = &c->pairs[i];
    char latency[32] = "-", rate[32] = "-";
    if (p->has_tcp) {
        snprintf(latency, sizeof latency, "%.0f", p->latency_us);
        snprintf(rate, sizeof rate, "%.3g", p->bytes_per_s * 8e-9);
    }
    printf("%-24s %-24s %-5s %-5s %12s %12s\n", name_of(c, i / c->n), name_of(c, i % c->n),
           p->has_ssh ? "ok" : "-", p->has_tcp ? "ok" : "-", latency, rate);
}

/* Prints all pairs of few hosts; of many hosts the pairs that do not work fully, and the slowest pair.
 * Returns how many work. */
static int print_table(const struct check *c)
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
            print_pair(c, i);
        }
    }
    if (c->n > TABLE_HOSTS && slowest >= 0) {
        printf("slowest:\n");
        print_pair(c, slowest);
    }
    printf("%d of %d pairs work\n", n_whole, c->n * (c->n - 1));
    return n_whole;
}

static struct status check_all(struct check *c)
{
    int64_t begin = clock_ns();
    int n_pairs = c->n * (c->n - 1);
    TRY(start_servers(c));
    TRY(run_probes(c));
    int n_whole = print_table(c);
    log_info("%.1f s", clock_since_s(begin));
    return n_whole == n_pairs && c->n_failures == 0
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE,
                              "%d of %d pairs of hosts failed; the lines above say why and what to do",
                              n_pairs - n_whole, n_pairs);
}

struct status netcheck_run(const struct netcheck *asked)
{
    size_t n = (size_t)asked->hosts->n;
    struct check c = {.asked = asked,
                      .n = asked->hosts->n,
                      .nodes = calloc(n + 1, sizeof *c.nodes),
                      .pairs = calloc(n * n + 1, sizeof *c.pairs),
                      .jobs = calloc(2 * n + 1, sizeof *c.jobs)};
    struct status s = c.nodes == NULL || c.pairs == NULL || c.jobs == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for %d hosts", c.n)
                          : check_all(&c);
    if (c.jobs != NULL) {
        child_jobs_fini(c.jobs, 2 * c.n);
    }
    free(c.jobs);
    free(c.pairs);
    free(c.nodes);
    return s;
}

/* ---- on a host ---- */

struct peer {
    char *host, *token;
    int port;
};

/* Splits "HOST:PORT:TOKEN", which is cut up. */
static struct status read_peer(struct peer *p, char *text)
{
    char *rest;
    p->host = strtok_r(text, ":", &rest);
    const char *port = strtok_r(NULL, ":", &rest);
    p->token = strtok_r(NULL, ":", &rest);
    p->port = port == NULL ? -1 : atoi(port);
    FAIL_IF(p->host == NULL || p->token == NULL || p->port < 0 || p->port > 65535 ||
                strlen(p->token) != NET_TOKEN_BYTES,
            STATUS_USAGE, "--peers is written by kiln netcheck itself: HOST:PORT:TOKEN,...");
    return host_list_check_name(p->host, "--peers");
}

/* A line is a test. */
static void print_test(const char *kind, const char *host, const char *result, const char *more)
{
    printf("%s\t%s\t%s%s", kind, host, result, more[0] == '\0' ? "" : "\t");
    for (const char *at = more; *at != '\0'; at++) {
        putchar(*at == '\n' || *at == '\r' ? ' ' : *at);
    }
    putchar('\n');
    fflush(stdout);
}

static void test_connection(const struct peer *p)
{
    struct net_result r;
    char rates[64];
    struct status s = net_test_connection(&r, p->host, p->port, p->token);
    snprintf(rates, sizeof rates, "%.1f\t%.0f", r.latency_us, r.bytes_per_s);
    print_test("tcp", p->host, failed(s) ? "fail" : "ok", failed(s) ? s.message : rates);
}

/* Logs in to n peers at once and prints what came of it; those that were slow stay in `peers`, *n of them,
 * for a second time, since all hosts log in to all at the same moment. */
static struct status log_in(struct peer *peers, int *n, int64_t ssh_port, int n_parallel, bool is_last)
{
    struct child_job *jobs = calloc((size_t)*n + 1, sizeof *jobs);
    FAIL_IF(jobs == NULL, STATUS_MEMORY, "out of memory for %d hosts", *n);
    for (int i = 0; i < *n; i++) {
        words_add(&jobs[i].line, "ssh");
        mpi_command_add_ssh(&jobs[i].line, ssh_port);
        words_add(&jobs[i].line, "%s", peers[i].host);
        words_add(&jobs[i].line, "true");
    }
    struct status s = child_jobs_run(jobs, *n, n_parallel, 6, 8);
    int n_slow = 0;
    for (int i = 0; i < *n; i++) {
        const char *said = jobs[i].timed_out ? "timed out" : buf_text(&jobs[i].output);
        if (!is_last && jobs[i].code != 0 && strstr(said, "timed out") != NULL) {
            peers[n_slow++] = peers[i];
        } else {
            struct ssh_cause c = host_check_explain(said, peers[i].host, ssh_port);
            char why[sizeof c.cure + 40];
            snprintf(why, sizeof why, "%s: %s", c.name, c.cure);
            print_test("ssh", peers[i].host, jobs[i].code == 0 ? "ok" : "fail", jobs[i].code == 0 ? "" : why);
        }
    }
    child_jobs_fini(jobs, *n);
    free(jobs);
    *n = n_slow;
    return s;
}

struct status netcheck_probe(const char *list, int64_t ssh_port)
{
    char *text = strdup(list), *rest;
    struct peer *peers = calloc(strlen(list) / 4 + 1, sizeof *peers);
    struct status s = text == NULL || peers == NULL
                          ? status_error(STATUS_MEMORY, "out of memory for the peers")
                          : status_ok();
    int n = 0;
    for (char *part = failed(s) ? NULL : strtok_r(text, ",", &rest); part != NULL && !failed(s);
         part = strtok_r(NULL, ",", &rest)) {
        s = read_peer(&peers[n++], part);
    }
    for (int i = 0; i < n && !failed(s); i++) {
        if (peers[i].port > 0) {
            test_connection(&peers[i]);
        }
    }
    /* mpirun starts ranks on hosts from other hosts, too, so each must be able to log in to each */
    s = failed(s) ? s : log_in(peers, &n, ssh_port, 32, false);
    s = failed(s) || n == 0 ? s : log_in(peers, &n, ssh_port, 8, true);
    free(peers);
    free(text);
    return s;
}
