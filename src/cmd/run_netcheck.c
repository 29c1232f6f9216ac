/* kiln netcheck: whether all hosts of a job reach one another, and how fast. */
#define _GNU_SOURCE
#include "cmd/commands.h"
#include "cmd/settings.h"
#include "core/log.h"
#include "launch/host_filter.h"
#include "launch/net_test.h"
#include "launch/netcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct netcheck_args {
    const char *hostfile, *interface, *peers;
    struct host_filter filter;
    int64_t ssh_port, port, clients;
    double seconds;
    bool serve, dry_run;
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
    DRY_RUN_ROW(AT(dry_run), "read the hosts, and test nothing"),
    OPTION_GROUP_ROW("used by kiln netcheck itself, on the hosts"),
    OPTION_FLAG_ROW("serve", AT(serve), "internal: answer tests"),
    OPTION_INT_ROW("clients", AT(clients), "1", 0, 1e6, "internal: number of tests after which --serve ends"),
    OPTION_REAL_ROW("seconds", AT(seconds), "20", 0, 60, "internal: seconds after which --serve ends"),
    OPTION_STRING_ROW("peers", AT(peers), NULL, "LIST", "internal: test the connections to these servers"),
    {0},
};

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

static struct status check(const struct netcheck_args *a, const struct host_list *hosts)
{
    FAIL_IF(hosts->n < 2, STATUS_USAGE, "--hostfile has one host, so there is no pair to test");
    if (a->dry_run) {
        log_info("%d hosts, %d pairs", hosts->n, hosts->n * (hosts->n - 1));
        return status_ok();
    }
    char *program = realpath("/proc/self/exe", NULL);
    struct netcheck n = {.hosts = hosts,
                         .ssh_port = a->ssh_port,
                         .interface = a->interface,
                         .program = program,
                         .port = a->port};
    struct status s =
        program == NULL ? status_error(STATUS_INTERNAL, "/proc/self/exe cannot be read") : netcheck_run(&n);
    free(program);
    return s;
}

static struct status run(const void *args, int n_positional, const char *const *positional)
{
    const struct netcheck_args *a = args;
    (void)n_positional;
    (void)positional;
    if (a->serve) {
        return serve(a);
    }
    if (a->peers != NULL) {
        return netcheck_probe(a->peers, a->ssh_port);
    }
    FAIL_IF(a->hostfile == NULL, STATUS_USAGE, "--hostfile FILE is missing; its lines are \"HOST slots=N\"");
    struct host_list hosts = {0};
    struct status s = host_list_read(&hosts, a->hostfile);
    s = failed(s) ? s : host_filter_apply(&a->filter, &hosts);
    s = failed(s) ? s : check(a, &hosts);
    host_list_fini(&hosts);
    return s;
}

const struct command command_netcheck = {
    .name = "netcheck",
    .summary = "test ssh, TCP, latency and bandwidth between all pairs of hosts",
    .details = "Ends within 30 s, with a table of all pairs, and for each failure its cause and the command "
               "that mends it.  kiln must be at the same path on every host.",
    .positional_usage = "",
    .options = options,
    .args_bytes = sizeof(struct netcheck_args),
    .run = run,
};
