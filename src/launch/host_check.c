#define _GNU_SOURCE
#include "launch/host_check.h"

#include "core/host.h"
#include "core/log.h"
#include "launch/mpi_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

/* Processors that a process may use, processors in all, and cores: siblings of a core have one list. */
static const char ask_cores[] =
    "nproc; cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list | wc -l; sort -u "
    "/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list | wc -l";

bool host_check_is_here(const char *name)
{
    struct host_text own = host_name();
    size_t n = strcspn(own.text, ".");
    return strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 || strcmp(name, own.text) == 0 ||
           (strncmp(name, own.text, n) == 0 && name[n] == '\0');
}

void host_check_own_name(void)
{
    struct host_text own = host_name();
    struct addrinfo *found = NULL;
    int error = getaddrinfo(own.text, NULL, NULL, &found);
    if (error == 0) {
        freeaddrinfo(found);
        return;
    }
    log_warning("this machine's name, %s, has no address (%s): mpirun may ask for it for minutes; add a line "
                "\"127.0.1.1 %s\" to /etc/hosts",
                own.text, gai_strerror(error), own.text);
}

/* Messages of OpenSSH (ssh.c, sshconnect.c), and what mends their causes.  '@' stands for the host, '#' for
 * the port. */
static const struct explanation {
    const char *sign, *name, *cure;
} explanations[] = {
    {"Could not resolve hostname", "unknown host",
     "no address for @: correct the hostfile, or add a line \"ADDRESS @\" to /etc/hosts of every host"},
    {"Connection refused", "port closed",
     "nothing listens on port # of @: start it there (service ssh start), with \"Port #\" in "
     "/etc/ssh/sshd_config, or give the right --ssh_port"},
    {"Network is unreachable", "no network",
     "this machine has no way to @: bring its interface up: ip link set dev eth0 up"},
    {"No route to host", "no route",
     "@ does not answer: it is down, or an interface is: on it, ip link; ip link set dev eth0 up"},
    {"timed out", "timeout",
     "@ does not answer: it is down, an interface is (on it: ip link set dev eth0 up), or a firewall drops "
     "port #"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "host key changed",
     "@ has another key than known_hosts says; if it was reinstalled: ssh-keygen -R '[@]:#' && ssh-keyscan "
     "-p # -H @ >> ~/.ssh/known_hosts"},
    {"Host key verification failed", "unknown host key",
     "@ is not in known_hosts: ssh-keyscan -p # -H @ >> ~/.ssh/known_hosts"},
    {"Permission denied", "login refused",
     "@ refuses the key: ssh-copy-id -p # @ (without a key yet, first: ssh-keygen -t ed25519 -N '' -f "
     "~/.ssh/id_ed25519)"},
    {"Connection closed", "connection closed",
     "sshd of @ ended the connection: its log says why (journalctl -u ssh)"},
};

static void fill_in(char *out, size_t n, const char *text, const char *host, int64_t port)
{
    struct buf filled = {0};
    for (; *text != '\0'; text++) {
        if (*text == '@') {
            buf_puts(&filled, host);
        } else if (*text == '#') {
            buf_printf(&filled, "%" PRId64, port);
        } else {
            buf_putc(&filled, *text);
        }
    }
    snprintf(out, n, "%s", buf_text(&filled));
    buf_fini(&filled);
}

struct ssh_problem host_check_explain(const struct child_job *job, const char *host, int64_t ssh_port)
{
    struct ssh_problem p;
    const char *said = job->timed_out ? "timed out" : buf_text(&job->output);
    int64_t port = ssh_port > 0 ? ssh_port : 22;
    for (size_t i = 0; i < sizeof explanations / sizeof explanations[0]; i++) {
        if (strstr(said, explanations[i].sign) != NULL) {
            int n = snprintf(p.text, sizeof p.text, "%s: ", explanations[i].name);
            fill_in(p.text + n, sizeof p.text - (size_t)n, explanations[i].cure, host, port);
            return p;
        }
    }
    snprintf(p.text, sizeof p.text, "failed: ssh -p %" PRId64 " %s true says: %.180s", port, host,
             said[0] == '\0' ? "nothing" : said);
    for (char *at = p.text; (at = strpbrk(at, "\r\n")) != NULL;) {
        *at = ' ';
    }
    return p;
}

void host_check_add_shell(struct words *line, const char *host, int64_t ssh_port, const char *command)
{
    if (host_check_is_here(host)) {
        words_add(line, "sh");
        words_add(line, "-c");
    } else {
        words_add(line, "ssh");
        mpi_command_add_ssh(line, ssh_port);
        words_add(line, "%s", host);
    }
    words_add(line, "%s", command);
}

/* The last three lines are the numbers; a login may print a greeting before them. */
static int64_t read_cores(const struct buf *output)
{
    const char *text = buf_text(output), *at = text + output->n;
    long long allowed, all, cores;
    for (int n_lines = 0; at > text; at--) {
        n_lines += at[-1] == '\n';
        if (n_lines == 4) {
            break;
        }
    }
    if (sscanf(at, "%lld %lld %lld", &allowed, &all, &cores) < 1 || allowed < 1) {
        return 0;
    }
    bool knows_siblings =
        sscanf(at, "%lld %lld %lld", &allowed, &all, &cores) == 3 && all >= cores && cores > 0;
    return knows_siblings ? (allowed * cores + all - 1) / all : allowed;
}

struct status host_check_ask(struct host_answer *answers, const struct host_list *l, int64_t ssh_port,
                             double limit_s)
{
    enum { AT_ONCE = 64 };
    struct child_job *jobs = calloc((size_t)l->n + 1, sizeof *jobs);
    FAIL_IF(jobs == NULL, STATUS_MEMORY, "out of memory for %d hosts", l->n);
    for (int i = 0; i < l->n; i++) {
        host_check_add_shell(&jobs[i].line, l->hosts[i].name, ssh_port, ask_cores);
    }
    struct status s = child_jobs_run(jobs, l->n, AT_ONCE, limit_s, 2 * limit_s);
    for (int i = 0; i < l->n; i++) {
        answers[i] = (struct host_answer){.reached = jobs[i].code == 0, .cores = read_cores(&jobs[i].output)};
        if (!answers[i].reached) {
            answers[i].problem = host_check_explain(&jobs[i], l->hosts[i].name, ssh_port);
        }
    }
    child_jobs_fini(jobs, l->n);
    free(jobs);
    return s;
}
