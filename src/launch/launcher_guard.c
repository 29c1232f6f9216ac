#define _GNU_SOURCE
#include "launch/launcher_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct status launcher_guard_run(const struct words *program)
{
    TRY(words_status(program));
    signal(SIGPIPE, SIG_IGN);
    setenv("PRTE_MCA_prte_keep_fqdn_hostnames", "1",
           0); /* as orte_keep_fqdn_hostnames for Open MPI 4 (launch/mpi_command.h) */
    prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
    if (getppid() == 1) { /* it was killed before it could be said */
        return status_error(STATUS_PREEMPTED, "kiln launch has ended, so nothing was started");
    }
    execvp(program->owned[0], program->owned);
    return status_error(STATUS_UNAVAILABLE, "cannot start %.200s: %s%s", program->owned[0], strerror(errno),
                        errno == ENOENT ? "; install it, or put its folder into PATH" : "");
}
