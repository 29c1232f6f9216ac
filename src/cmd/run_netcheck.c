/* kiln netcheck: whether the hosts of a job reach one another, pair by pair: by ssh, without a password and
 * with a known key, and by TCP, with latency and bandwidth.
 *
 * From here each host is asked over ssh to start a server (--serve) that ends by itself, then to test all
 * others (--peers).  Each host tests the others one by one, beginning with the next in the list, so that at
 * one time few bursts meet at one host.  Every step has its limit, all together 30 s. */
#define _GNU_SOURCE
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/clock.h"
#include "core/log.h"
#include "launch/host_check.h"
#include "launch/host_filter.h"
#include "launch/mpi_command.h"
#include "launch/net_test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds: to start the servers, to test the peers, and for the servers to live if nobody comes. */
static const double serve_limit_s = 8, probe_limit_s = 18, server_life_s = 27;
enum { AT_ONCE = 256, TABLE_HOSTS = 12 };

struct netcheck_args {
    const char *hostfile, *interface, *peers;
    struct host_filter filter;
    int64_t ssh_port, port, clients;
    double seconds;
    bool serve;
    struct command_flags common;
};

#define AT(field) offsetof(struct netcheck_args, field)

static const struct option options[] = {
    {.name = "hostfile",
     .kind = OPTION_STRING,
     .offset = AT(hostfile),
     .value_name = "FILE",
     .env = "OMPI_MCA_orte_default_hostfile",
     .help = "read hosts from this file, as kiln launch does"},
    OPTION_STRING_ROW("include", AT(filter.include), NULL, "HOSTS", "use only these hosts: host1@host2"),
    OPTION_STRING_ROW("exclude", AT(filter.exclude), NULL, "HOSTS", "use all but these hosts"),
    NUM_NODES_ROW(AT(filter.num_nodes)),
    SSH_PORT_ROW(AT(ssh_port)),
    OPTION_STRING_ROW("interface", AT(interface), NULL, "NAME",
                      "require this network interface to be up on every host"),
    OPTION_INT_ROW("port", AT(port), NULL, 1, 65535,
                   "port for the tests, where a firewall opens only one; by default any free port"),
    DRY_RUN_ROW(AT(common.dry_run), "read the hosts, and test nothing"),
    OPTION_GROUP_ROW("used by kiln netcheck itself, on the hosts"),
    OPTION_FLAG_ROW("serve", AT(serve), "internal: answer tests"),
    OPTION_INT_ROW("clients", AT(clients), "1", 0, 1e6, "internal: number of tests after which --serve ends"),
    OPTION_REAL_ROW("seconds", AT(seconds), "20", 0, 60, "internal: seconds after which --serve ends"),
    OPTION_STRING_ROW("peers", AT(peers), NULL, "LIST", "internal: test the connections to these servers"),
    {0},
};

/* ---- on a host: the server ---- */

/* Prints where it answers, and continues in the background: the login that started it ends. */
static struct status serve(const struct netcheck_args *a)
{
    struct net_server server;
    if (a->interface != NULL) {
        TRY(net_test_interface(a->interface));
    }
    TRY(net_test_open(&server, (int)a->port));
    printf("serve\t%d\t%s\n", server.port, server.token);
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        close(server.fd);
        return status_error(STATUS_INTERNAL, "cannot start a process: %s", strerror(errno));
    }
    if (pid > 0) {
        close(server.fd);
        return status_ok();
    }
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++) {
        dup2(null, fd);
    }
    return net_test_serve(&server, (int)a->clients, a->seconds);
}

/* ---- on a host: the tests ---- */

/* A server of another host; port 0: the host was not reached, and only ssh is tested. */
struct peer {
    char host[HOST_NAME_BYTES], token[NET_TOKEN_BYTES + 1];
    int port;
};

/* Reads a peer of "HOST:PORT:TOKEN,..." and moves *at past it. */
static struct status read_peer(struct peer *p, const char **at)
{
    int end = 0;
    int n = sscanf(*at, "%253[^:]:%5d:%32[0-9a-f]%n", p->host, &p->port, p->token, &end);
    FAIL_IF(n != 3 || p->port < 0 || p->port > 65535 || strlen(p->token) != NET_TOKEN_BYTES ||
                ((*at)[end] != ',' && (*at)[end] != '\0'),
            STATUS_USAGE, "--peers is written by kiln netcheck itself: HOST:PORT:TOKEN,...");
    *at += end + ((*at)[end] == ',');
    return host_list_check_name(p->host, "--peers");
}

/* A line is a test. */
static void print_test(const char *kind, const char *host, const char *result, const char *more)
{
    printf("%s\t%s\t%s%s%s\n", kind, host, result, more[0] == '\0' ? "" : "\t", more);
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
        bool ok = jobs[i].code == 0;
        if (!is_last && !ok &&
            (jobs[i].timed_out || strstr(buf_text(&jobs[i].output), "timed out") != NULL)) {
            peers[n_slow++] = peers[i];
        } else {
            struct ssh_problem problem = host_check_explain(&jobs[i], peers[i].host, ssh_port);
            print_test("ssh", peers[i].host, ok ? "ok" : "fail", ok ? "" : problem.text);
        }
    }
    child_jobs_fini(jobs, *n);
    free(jobs);
    *n = n_slow;
    return s;
}

/* Tests the peers and prints a line for each test. */
static struct status test_peers(const struct netcheck_args *a)
{
    struct peer *peers = calloc(strlen(a->peers) / NET_TOKEN_BYTES + 1, sizeof *peers);
    struct status s =
        peers != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for the peers");
    int n = 0;
    for (const char *at = a->peers; !failed(s) && *at != '\0'; n++) {
        s = read_peer(&peers[n], &at);
    }
    for (int i = 0; i < n && !failed(s); i++) {
        if (peers[i].port > 0) {
            test_connection(&peers[i]);
        }
    }
    /* mpirun starts ranks on hosts from other hosts, too, so each must be able to log in to each */
    s = failed(s) ? s : log_in(peers, &n, a->ssh_port, 32, false);
    s = failed(s) || n == 0 ? s : log_in(peers, &n, a->ssh_port, 8, true);
    free(peers);
    return s;
}

/* ---- from here: the servers ---- */

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
    const struct netcheck_args *asked;
    const struct host_list *hosts;
    const char *program;    /* kiln's path on every host */
    struct node *nodes;     /* [n] */
    struct pair *pairs;     /* [n, n]: from, to */
    struct child_job *jobs; /* [2 n]: those that start the servers, and those that test the peers */
    int n, n_failures;
};

static const char *name_of(const struct check *c, int host)
{
    return c->hosts->hosts[host].name;
}

/* Begins the words of `kiln netcheck` on a host. */
static struct words begin_words(const struct check *c)
{
    struct words w = {0};
    words_add(&w, "%s", c->program);
    words_add(&w, "netcheck");
    if (c->asked->ssh_port > 0) {
        words_add(&w, "--ssh_port=%" PRId64, c->asked->ssh_port);
    }
    return w;
}

/* Makes the line that runs the words on a host, and frees them. */
static void make_line(struct words *line, const struct check *c, int host, struct words *own)
{
    struct buf text = {0};
    words_print(&text, own);
    host_check_add_shell(line, name_of(c, host), c->asked->ssh_port, buf_text(&text));
    line->failed = line->failed || text.failed || own->failed;
    buf_fini(&text);
    words_fini(own);
}

static void fail_one(struct check *c, const char *from, const char *to, const char *why)
{
    c->n_failures++;
    log_warning("%s%s%s: %s", from, to[0] == '\0' ? "" : " -> ", to, why);
}

/* "serve PORT TOKEN", possibly after a greeting of the login. */
static bool read_server(struct node *node, const char *output)
{
    const char *at = strstr(output, "serve\t");
    return at != NULL && sscanf(at, "serve\t%d\t%32[0-9a-f]", &node->port, node->token) == 2 &&
           strlen(node->token) == NET_TOKEN_BYTES;
}

static void explain_server(struct check *c, int host, const struct child_job *job)
{
    static const char sign[] = "kiln: error: ";
    const char *error = strstr(buf_text(&job->output), sign);
    struct ssh_problem why = host_check_explain(job, name_of(c, host), c->asked->ssh_port);
    if (error != NULL) {
        error += strlen(sign);
        snprintf(why.text, sizeof why.text, "%.*s", (int)strcspn(error, "\n"), error);
    } else if (job->code == 127 || job->code == 126) {
        snprintf(why.text, sizeof why.text,
                 "%s does not run there: install kiln at the same path on every host", c->program);
    }
    fail_one(c, name_of(c, host), "", why.text);
}

/* Starts a server on every host. */
static struct status start_servers(struct check *c)
{
    for (int i = 0; i < c->n; i++) {
        struct words own = begin_words(c);
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
    int to = host_list_find(c->hosts, to_name);
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
        if (!c->nodes[i].reached) {
            words_add(&jobs[i].line, "true");
            continue;
        }
        struct words own = begin_words(c);
        struct buf peers = {0};
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

/* ---- the command ---- */

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

static struct status check_hosts(const struct netcheck_args *a, const struct host_list *hosts)
{
    size_t n = (size_t)hosts->n;
    FAIL_IF(n < 2, STATUS_USAGE, "--hostfile has one host, so there is no pair to test");
    if (a->common.dry_run) {
        log_info("%zu hosts, %zu pairs", n, n * (n - 1));
        return status_ok();
    }
    char *program = realpath("/proc/self/exe", NULL);
    struct check c = {.asked = a,
                      .hosts = hosts,
                      .program = program,
                      .n = hosts->n,
                      .nodes = calloc(n, sizeof *c.nodes),
                      .pairs = calloc(n * n, sizeof *c.pairs),
                      .jobs = calloc(2 * n, sizeof *c.jobs)};
    struct status s = status_ok();
    if (program == NULL) {
        s = status_error(STATUS_INTERNAL, "/proc/self/exe cannot be read");
    } else if (c.nodes == NULL || c.pairs == NULL || c.jobs == NULL) {
        s = status_error(STATUS_MEMORY, "out of memory for %zu hosts", n);
    } else {
        s = check_all(&c);
        child_jobs_fini(c.jobs, 2 * c.n);
    }
    free(c.jobs);
    free(c.pairs);
    free(c.nodes);
    free(program);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct netcheck_args *a = args;
    struct host_list hosts = {0};
    (void)n_positional;
    (void)positional;
    if (a->serve || a->peers != NULL) {
        return a->serve ? serve(a) : test_peers(a);
    }
    FAIL_IF(a->hostfile == NULL, STATUS_USAGE, "--hostfile FILE is missing; its lines are \"HOST slots=N\"");
    struct status s = host_list_read(&hosts, a->hostfile);
    s = failed(s) ? s : host_filter_apply(&a->filter, &hosts);
    s = failed(s) ? s : check_hosts(a, &hosts);
    host_list_fini(&hosts);
    return s;
}

const struct command command_netcheck = {
    .name = "netcheck",
    .summary = "test ssh, TCP, latency and bandwidth between all pairs of hosts",
    .details = "Ends within 30 s, with a table of all pairs, and for each failure its cause and the command "
               "that mends it.  kiln must be at the same path on every host.",
    .options = options,
    .args_bytes = sizeof(struct netcheck_args),
    .run = run,
};
