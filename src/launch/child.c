#define _GNU_SOURCE
#include "launch/child.h"

#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int child_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* This process's environment with the variables on top; of two with one name the later. */
static void make_environment(struct words *out, const struct words *variables)
{
    for (char **e = environ; *e != NULL; e++) {
        if (variables == NULL || !words_set_variable(variables, *e)) {
            words_add(out, "%s", *e);
        }
    }
    for (int i = 0; variables != NULL && i < variables->n; i++) {
        struct words later = {.owned = variables->owned + i + 1, .n = variables->n - i - 1};
        if (!words_set_variable(&later, variables->owned[i])) {
            words_add(out, "%s", variables->owned[i]);
        }
    }
}

static int spawn(pid_t *pid, int out, int err, const struct words *line, char *const *environment,
                 bool is_apart)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        if (is_apart) {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        }
        if (out >= 0) {
            posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        }
        if (err >= 0) {
            posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
        }
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(&attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                      (is_apart ? POSIX_SPAWN_SETPGROUP : 0)));
        error = posix_spawnp(pid, line->list[0], &actions, &attributes, line->owned, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* A pipe whose ends are closed in other programs; *in and *out are -1 if it is not wanted. */
static struct status open_pipe(int *in, int *out, bool wanted)
{
    int ends[2] = {-1, -1};
    FAIL_IF(wanted && pipe2(ends, O_CLOEXEC) != 0, STATUS_INTERNAL, "cannot make a pipe: %s",
            strerror(errno));
    *in = ends[0];
    *out = ends[1];
    return status_ok();
}

static void close_end(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static struct status explain(int error, const struct words *line)
{
    return error == 0
               ? status_ok()
               : status_error(STATUS_UNAVAILABLE, "cannot start %.200s: %s%s", line->list[0], strerror(error),
                              error == ENOENT ? "; install it, or put its folder into PATH" : "");
}

struct status child_start_rank(pid_t *pid, const struct words *line)
{
    TRY(words_status(line));
    return explain(spawn(pid, -1, -1, line, environ, false), line);
}

struct status child_start(pid_t *pid, int *out, int *err, const struct words *line,
                          const struct words *variables)
{
    struct words environment = {0};
    int ends[2][2] = {{-1, -1}, {-1, -1}};
    make_environment(&environment, variables);
    struct status s = words_status(&environment);
    s = failed(s) ? s : words_status(line);
    s = failed(s) ? s : open_pipe(&ends[0][0], &ends[0][1], out != NULL);
    s = failed(s) ? s : open_pipe(&ends[1][0], &ends[1][1], err != NULL && err != out);
    if (!failed(s)) {
        int error =
            spawn(pid, ends[0][1], err == out ? ends[0][1] : ends[1][1], line, environment.owned, true);
        s = explain(error, line);
    }
    words_fini(&environment);
    close_end(ends[0][1]);
    close_end(ends[1][1]);
    if (failed(s)) {
        close_end(ends[0][0]);
        close_end(ends[1][0]);
        return s;
    }
    if (out != NULL) {
        *out = ends[0][0];
    }
    if (err != NULL && err != out) {
        *err = ends[1][0];
    }
    return s;
}

/* A job that runs. */
struct running {
    struct child_job *job; /* NULL: the place is free */
    pid_t pid;
    int out;
    int64_t begin_ns;
};

static void end_job(struct running *r, bool timed_out)
{
    int status = 0;
    if (timed_out) {
        kill(-r->pid, SIGKILL);
    }
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(r->out);
    r->job->timed_out = timed_out;
    r->job->code = timed_out ? -1 : child_code(status);
    r->job->seconds = clock_since_s(r->begin_ns);
    r->job = NULL;
}

static struct status begin_job(struct running *r, struct child_job *job)
{
    job->code = -1;
    TRY(child_start(&r->pid, &r->out, &r->out, &job->line, NULL));
    r->job = job;
    r->begin_ns = clock_ns();
    return status_ok();
}

/* Reads what there is, for at most 50 ms; ends jobs that closed their output or have run for too long. */
static void attend(struct running *places, struct pollfd *polls, int n, double limit_s, bool is_late)
{
    enum { OUTPUT_LIMIT = 1 << 20 };
    char bytes[4096];
    for (int i = 0; i < n; i++) {
        polls[i] = (struct pollfd){.fd = places[i].job == NULL ? -1 : places[i].out, .events = POLLIN};
    }
    poll(polls, (nfds_t)n, 50);
    for (int i = 0; i < n; i++) {
        struct running *r = &places[i];
        if (r->job == NULL) {
            continue;
        }
        ssize_t got = polls[i].revents == 0 ? -1 : read(r->out, bytes, sizeof bytes);
        if (got > 0 && r->job->output.n < OUTPUT_LIMIT) {
            buf_append(&r->job->output, bytes, (size_t)got);
        }
        if (got == 0 || is_late || clock_since_s(r->begin_ns) > limit_s) {
            end_job(r, got != 0);
        }
    }
}

struct status child_jobs_run(struct child_job *jobs, int n, int n_parallel, double limit_s, double deadline_s)
{
    int n_places = n < n_parallel ? n : n_parallel, next = 0, n_running;
    struct running *places = calloc((size_t)n_places + 1, sizeof *places);
    struct pollfd *polls = calloc((size_t)n_places + 1, sizeof *polls);
    struct status s =
        places != NULL && polls != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory");
    int64_t begin = clock_ns();
    do {
        bool is_late = clock_since_s(begin) > deadline_s;
        n_running = 0;
        for (int i = 0; !failed(s) && i < n_places; i++) {
            if (places[i].job == NULL && next < n && !is_late) {
                s = begin_job(&places[i], &jobs[next++]);
            }
            n_running += places[i].job != NULL;
        }
        if (n_running > 0) {
            attend(places, polls, n_places, limit_s, is_late || failed(s));
        }
    } while (n_running > 0);
    for (; next < n; next++) {
        jobs[next].code = -1;
        jobs[next].timed_out = true;
    }
    free(places);
    free(polls);
    return s;
}

void child_jobs_fini(struct child_job *jobs, int n)
{
    for (int i = 0; i < n; i++) {
        words_fini(&jobs[i].line);
        buf_fini(&jobs[i].output);
    }
}
