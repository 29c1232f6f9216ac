/* Cases that fail, crash or hang cost no other case its verdict. */
#define _GNU_SOURCE
#include "case_workers.h"
#include "test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOOD, WRONG, CRASHES, HANGS, N_KINDS };

static const int kinds[] = {GOOD, WRONG, GOOD, CRASHES, HANGS, GOOD, WRONG};

enum { N = sizeof kinds / sizeof kinds[0] };

static int *passed; /* [N], seen by every process */

static void work(void *context, int first)
{
    const int *skips_from = context;
    if (skips_from != NULL && first >= *skips_from) {
        exit(TEST_SKIPPED);
    }
    for (int i = first; i < N; i++) {
        case_workers_begin(i);
        EXPECT(kinds[i] != WRONG, "case %d", i);
        if (kinds[i] == CRASHES) {
            signal(SIGSEGV, SIG_DFL); /* no sanitizer's */
            raise(SIGSEGV);
        } else if (kinds[i] == HANGS) {
            pause();
        }
        passed[i]++;
    }
}

static const char *title(void *context, int i)
{
    static char text[16];
    (void)context;
    snprintf(text, sizeof text, "case %d", i);
    return text;
}

/* The exit code of a run in a process of its own. */
static int code_of(struct case_workers w)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        case_workers_run(&w);
        exit(0);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "lost");
    return WEXITSTATUS(status);
}

int main(void)
{
    passed = mmap(NULL, N * sizeof *passed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(passed != MAP_FAILED, "no memory");
    int n_failed = case_workers_run(&(struct case_workers){work, title, NULL, 2});
    EXPECT(n_failed == 4, "%d failed", n_failed);
    for (int i = 0; i < N; i++) {
        EXPECT(passed[i] == (kinds[i] == GOOD), "case %d passed %d times", i, passed[i]);
    }
    /* what ends a process before its first case ends the program: here at once, and behind a failure, which
     * counts */
    EXPECT(code_of((struct case_workers){work, title, &(int){0}, 2}) == TEST_SKIPPED, "no skip");
    EXPECT(code_of((struct case_workers){work, title, &(int){2}, 2}) == 1, "a failure is forgotten");
    return 0;
}
