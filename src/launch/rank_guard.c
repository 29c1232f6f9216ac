#define _GNU_SOURCE
#include "launch/rank_guard.h"

#include "core/host.h"
#include "launch/child.h"
#include "launch/rank_environment.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};

static struct status describe(int code)
{
    char how[80];
    if (code > 128) {
        snprintf(how, sizeof how, "by signal %d, %s", code - 128, strsignal(code - 128));
    } else {
        snprintf(how, sizeof how, "with exit code %d", code);
    }
    return status_error((enum status_code)code, "rank %" PRId64 " on %s ended %s", rank_environment_number(),
                        host_name().text, how);
}

struct status rank_guard_run(const struct words *program)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++) {
        sigaddset(&set, passed_on[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t pid;
    TRY(child_start_rank(&pid, program));
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        int number = sigwaitinfo(&set, NULL);
        if (number > 0 && number != SIGCHLD) {
            kill(pid, number);
        }
    }
    int code = child_code(status);
    return code == 0 ? status_ok() : describe(code);
}
