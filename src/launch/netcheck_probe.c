#define _GNU_SOURCE
#include "launch/child.h"
#include "launch/host_check.h"
#include "launch/mpi_command.h"
#include "launch/net_client.h"
#include "launch/net_server.h"
#include "launch/netcheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (p->host == NULL || p->token == NULL || p->port < 0 || p->port > 65535 ||
        strlen(p->token) != NET_TOKEN_BYTES) {
        return status_error(STATUS_USAGE, "--peers is written by kiln netcheck itself: HOST:PORT:TOKEN,...");
    }
    return host_list_check_name(p->host, "--peers");
}

static void test_connection(const struct peer *p)
{
    struct net_result r;
    struct status s = net_client_test(&r, p->host, p->port, p->token);
    if (failed(s)) {
        printf("tcp\t%s\tfail\t%s\n", p->host, s.message);
    } else {
        printf("tcp\t%s\tok\t%.1f\t%.0f\n", p->host, r.latency_us, r.bytes_per_s);
    }
    fflush(stdout);
}

static void print_login(const struct peer *p, const struct child_job *job, int64_t ssh_port)
{
    struct ssh_cause c =
        host_check_explain(job->timed_out ? "timed out" : buf_text(&job->output), p->host, ssh_port);
    for (char *at = c.cure; *at != '\0'; at++) { /* a line is a test */
        *at = *at == '\n' || *at == '\t' || *at == '\r' ? ' ' : *at;
    }
    if (job->code == 0) {
        printf("ssh\t%s\tok\n", p->host);
    } else {
        printf("ssh\t%s\tfail\t%s: %s\n", p->host, c.name, c.cure);
    }
    fflush(stdout);
}

static bool was_slow(const struct child_job *job)
{
    return job->timed_out || strstr(buf_text(&job->output), "timed out") != NULL;
}

/* Logs in to n peers at once and prints what came of it; those that were slow stay in `peers`, *n of them,
 * for a second time, since all hosts log in to all at the same moment. */
static struct status log_in(struct peer *peers, int *n, int64_t ssh_port, int n_parallel, bool is_last)
{
    struct child_job *jobs = calloc((size_t)*n + 1, sizeof *jobs);
    if (jobs == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %d hosts", *n);
    }
    for (int i = 0; i < *n; i++) {
        words_add(&jobs[i].line, "ssh");
        mpi_command_add_ssh(&jobs[i].line, ssh_port);
        words_add(&jobs[i].line, "%s", peers[i].host);
        words_add(&jobs[i].line, "true");
    }
    struct status s = child_jobs_run(jobs, *n, n_parallel, 6, 8);
    int n_slow = 0;
    for (int i = 0; i < *n; i++) {
        if (!is_last && jobs[i].code != 0 && was_slow(&jobs[i])) {
            peers[n_slow++] = peers[i];
        } else {
            print_login(&peers[i], &jobs[i], ssh_port);
        }
    }
    child_jobs_fini(jobs, *n);
    free(jobs);
    *n = n_slow;
    return s;
}

/* mpirun starts ranks on hosts from other hosts, too, so each must be able to log in to each. */
static struct status test_logins(struct peer *peers, int n, int64_t ssh_port)
{
    TRY(log_in(peers, &n, ssh_port, 32, false));
    return n == 0 ? status_ok() : log_in(peers, &n, ssh_port, 8, true);
}

struct status netcheck_probe(const char *list, int64_t ssh_port)
{
    char *text = strdup(list), *rest;
    size_t n_most = strlen(list) / 4 + 1;
    struct peer *peers = calloc(n_most, sizeof *peers);
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
    s = failed(s) ? s : test_logins(peers, n, ssh_port);
    free(peers);
    free(text);
    return s;
}
