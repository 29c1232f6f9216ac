/* ending: how a process ends that does something, for tests of what ends the program. */
#ifndef KILN_TESTS_ENDING_HPP
#define KILN_TESTS_ENDING_HPP

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

/* A signal, or what run() returns. */
template <typename RUN> static inline int end_of(const RUN &run)
{
    fflush(stdout);
    pid_t child = fork();
    expect(child >= 0, "fork");
    if (child == 0) {
        close(STDERR_FILENO);
        _exit(run());
    }
    int how = 0;
    expect(waitpid(child, &how, 0) == child, "waitpid");
    return WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
}

#endif
