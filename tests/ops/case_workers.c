#define _GNU_SOURCE
#include "case_workers.h"

#include "test.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int report =
    -1; /* of a process that runs the cases: where it tells which one begins; -1: nobody asks */

void case_workers_begin(int i)
{
    EXPECT(report < 0 || write(report, &i, sizeof i) == sizeof i, "nobody listens to case %d", i);
}

/* Follows a process to its end; `last` receives the case that it had begun.  False: it was killed for its
 * time. */
static bool follow(int from, pid_t pid, int seconds, int *last)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    for (;;) {
        int ready = poll(&p, 1, seconds > 0 ? 1000 * seconds : -1);
        if (ready == 0) {
            kill(pid, SIGKILL);
            return false;
        }
        if (ready > 0 && read(from, last, sizeof *last) != sizeof *last) {
            return true;
        }
    }
}

static void describe_end(char text[64], bool in_time, int seconds, int status)
{
    if (!in_time) {
        snprintf(text, 64, "not done after %d s", seconds);
    } else if (WIFSIGNALED(status)) {
        snprintf(text, 64, "%s", strsignal(WTERMSIG(status)));
    } else {
        snprintf(text, 64, "exit code %d", WEXITSTATUS(status));
    }
}

/* One process from case `first` on.  True if it did all of them, else `last` is the case that it ended in,
 * below `first` if it began none, and `code` its exit code. */
static bool run_worker(const struct case_workers *w, int first, int *last, int *code, char how[64])
{
    int ends[2], status = 0;
    fflush(NULL); /* or both processes print what is waiting */
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t pid = fork();
    EXPECT(pid >= 0, "no process");
    if (pid == 0) {
        close(ends[0]);
        report = ends[1];
        w->work(w->context, first);
        exit(0);
    }
    close(ends[1]);
    *last = -1;
    bool in_time = follow(ends[0], pid, w->seconds, last);
    close(ends[0]);
    EXPECT(waitpid(pid, &status, 0) == pid, "the process is lost");
    *code = in_time && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    describe_end(how, in_time, w->seconds, status);
    return *code == 0;
}

int case_workers_run(const struct case_workers *w)
{
    int n_failed = 0, first = 0, last, code;
    char how[64];
    while (!run_worker(w, first, &last, &code, how)) {
        if (last < first) {
            printf("no case began: %s\n", how);
            exit(n_failed > 0 ? 1 : code);
        }
        printf("FAILED %s: %s\n", w->title(w->context, last), how);
        n_failed++;
        first = last + 1;
    }
    return n_failed;
}
