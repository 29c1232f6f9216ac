#define _GNU_SOURCE
#include "launch/supervise.h"

#include "core/clock.h"
#include "core/log.h"
#include "launch/child.h"
#include "launch/host_check.h"
#include "launch/job_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* After a request to end: until SIGKILL. */
static const double kill_after_s = 2;

/* mpirun dies of a SIGUSR1 that comes before all its hosts have answered, and ranks before they handle it;
 * there is nothing to save so early. */
static const double start_s = 1, remote_start_s = 5;

/* One start of the job. */
struct attempt {
    pid_t pid;
    int err;     /* standard error of the launcher */
    int signals; /* a signalfd of the signals to this process */
    int64_t begin_ns;
    int64_t log_bytes;  /* size of the log before this start */
    int n_told;         /* signals to leave that this process received */
    bool has_passed_on; /* the ranks were signalled, too */
    int64_t term_ns;    /* when the launcher was asked to end; 0: not yet */
    int64_t kill_ns;    /* when the launcher was killed; 0: not yet */
    bool has_ended;
    int code;
    struct job_watch watch;
};

static void write_all(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(STDERR_FILENO, bytes, n);
        if (written < 0 && errno != EINTR) {
            return; /* nobody reads; the job continues, as training does */
        }
        bytes += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
}

/* Takes what the job printed, as it came; at the end of its output the descriptor is closed. */
static void pass_on(struct attempt *a)
{
    char bytes[8192];
    ssize_t n = read(a->err, bytes, sizeof bytes);
    if (n > 0) {
        write_all(bytes, (size_t)n);
        job_watch_take(&a->watch, bytes, (size_t)n);
    } else if (n == 0 || errno != EINTR) {
        close(a->err);
        a->err = -1;
    }
}

/* The first signal asks the ranks to save and leave; mpirun and srun pass SIGUSR1 on to them.  SIGTERM would
 * not do: mpirun kills its ranks a second later.  The second signal ends the job at once. */
static void hear(struct attempt *a)
{
    struct signalfd_siginfo info;
    if (read(a->signals, &info, sizeof info) != (ssize_t)sizeof info || info.ssi_signo == SIGCHLD) {
        return;
    }
    a->n_told++;
    if (a->n_told == 1) {
        log_info("%s: the ranks save and leave; a second signal ends them at once",
                 strsignal((int)info.ssi_signo));
    } else if (info.ssi_signo != SIGUSR1 && a->term_ns == 0) {
        kill(a->pid, SIGTERM);
        a->term_ns = clock_ns();
    }
}

static void tell_ranks(struct attempt *a, const struct launch_job *job)
{
    if (a->n_told > 0 && !a->has_passed_on && !a->has_ended &&
        clock_since_s(a->begin_ns) > (job->is_remote ? remote_start_s : start_s)) {
        kill(a->pid, SIGUSR1);
        a->has_passed_on = true;
    }
}

static void reap(struct attempt *a)
{
    int status;
    if (!a->has_ended && waitpid(a->pid, &status, WNOHANG) == a->pid) {
        a->has_ended = true;
        a->code = child_code(status);
    }
}

/* A launcher that waits for a host that is gone, although its ranks gave up, is ended. */
static void end_overdue(struct attempt *a, double grace_s)
{
    if (a->has_ended) {
        return;
    }
    if (a->term_ns == 0 && a->watch.failed_ns != 0 && clock_since_s(a->watch.failed_ns) > grace_s) {
        log_warning("a rank failed %.0f s ago, and the others have not ended: ending them", grace_s);
        kill(a->pid, SIGTERM);
        a->term_ns = clock_ns();
    } else if (a->term_ns != 0 && a->kill_ns == 0 && clock_since_s(a->term_ns) > kill_after_s) {
        kill(-a->pid, SIGKILL);
        a->kill_ns = clock_ns();
    }
}

/* Ranks of a launcher that was killed have become children of this process (PR_SET_CHILD_SUBREAPER).  They
 * must not continue: the next start needs their devices and the lock of the output directory. */
static void end_orphans(void)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int round = 0; round < 100; round++) {
        FILE *f = fopen(path, "re");
        long pid;
        int n = 0;
        while (f != NULL && fscanf(f, "%ld", &pid) == 1) {
            kill((pid_t)pid, SIGKILL);
            n++;
        }
        if (f != NULL) {
            fclose(f);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (n == 0) {
            return;
        }
        usleep(20000);
    }
}

/* The line is run through this program, as `launch --as_launcher` (become_launcher of cmd/run_launch.c). */
static struct status start(struct attempt *a, const struct words *line, const struct supervise *s)
{
    struct words guarded = {0};
    words_add(&guarded, "/proc/self/exe");
    words_add(&guarded, "launch");
    words_add(&guarded, "--as_launcher");
    for (int i = 0; i < line->n; i++) {
        words_add(&guarded, "%s", line->owned[i]);
    }
    struct status t = child_start(&a->pid, NULL, &a->err, &guarded, &s->job->variables);
    words_fini(&guarded);
    return t;
}

static struct status attempt_run(struct attempt *a, const struct words *line, const struct supervise *s)
{
    a->log_bytes = job_watch_log_bytes(s->program->output_dir);
    TRY(start(a, line, s));
    a->begin_ns = clock_ns();
    int64_t ended_ns = 0;
    while (!a->has_ended || a->err >= 0) {
        struct pollfd polls[] = {{.fd = a->signals, .events = POLLIN}, {.fd = a->err, .events = POLLIN}};
        poll(polls, 2, 100);
        if (polls[0].revents != 0) {
            hear(a);
        }
        if (polls[1].revents != 0) {
            pass_on(a);
        }
        reap(a);
        tell_ranks(a, s->job);
        end_overdue(a, s->grace_s);
        ended_ns = a->has_ended && ended_ns == 0 ? clock_ns() : ended_ns;
        if (a->err >= 0 && ended_ns != 0 && polls[1].revents == 0 && clock_since_s(ended_ns) > 0.5) {
            close(a->err); /* an orphan still holds the pipe */
            a->err = -1;
        }
    }
    end_orphans();
    job_watch_take(&a->watch, "\n", 1);
    job_watch_find_host(&a->watch, &s->job->hosts);
    a->code = job_watch_code(&a->watch, a->code);
    return status_ok();
}

/* "rank 1 on h2 failed at step 120 (killed by signal 9): cause" */
static struct status describe(const struct attempt *a, const struct supervise *s)
{
    struct buf text = {0};
    const struct job_watch *w = &a->watch;
    int64_t step = job_watch_last_step(s->program->output_dir, a->log_bytes);
    if (w->rank >= 0) {
        buf_printf(&text, "rank %" PRId64 "%s%s failed", w->rank, w->host[0] != '\0' ? " on " : "", w->host);
    } else if (w->host[0] != '\0') {
        buf_printf(&text, "host %s failed", w->host);
    } else {
        buf_puts(&text, "the job failed");
    }
    if (step >= 0) {
        buf_printf(&text, " after step %" PRId64, step);
    }
    if (w->ending[0] != '\0') {
        buf_printf(&text, ": it %s", w->ending);
    } else if (a->code > 128 && a->code < 128 + 32) {
        buf_printf(&text, " (exit code %d: %s)", a->code, strsignal(a->code - 128));
    } else {
        buf_printf(&text, " (exit code %d)", a->code);
    }
    if (w->cause[0] != '\0') {
        buf_printf(&text, ": %s", w->cause);
    }
    struct status failure = status_error((enum status_code)a->code, "%s", buf_text(&text));
    buf_fini(&text);
    return failure;
}

/* The state over all starts. */
struct course {
    int64_t n_restarts, n_in_row;
    int64_t newest; /* checkpoint at the last start */
    int signals;
};

/* Waits, and returns false at a signal. */
static bool wait_s(const struct course *c, double seconds)
{
    struct signalfd_siginfo info;
    for (int64_t begin = clock_ns(); clock_since_s(begin) < seconds;) {
        struct pollfd p = {.fd = c->signals, .events = POLLIN};
        poll(&p, 1, 50);
        if (p.revents != 0 && read(c->signals, &info, sizeof info) == (ssize_t)sizeof info &&
            info.ssi_signo != SIGCHLD) {
            return false;
        }
    }
    return true;
}

/* Leaves out hosts that do not answer, if enough are left.  STATUS_UNAVAILABLE: too few. */
static struct status check_hosts(const struct supervise *s)
{
    struct host_list *hosts = &s->job->hosts;
    if (!s->checks_hosts || !s->job->is_remote || s->job->kind != LAUNCH_MPIRUN) {
        return status_ok();
    }
    struct host_answer *answers = calloc((size_t)hosts->n + 1, sizeof *answers);
    FAIL_IF(answers == NULL, STATUS_MEMORY, "out of memory for %d hosts", hosts->n);
    struct status t = host_check_ask(answers, hosts, s->job->ssh_port, 4);
    int n_reached = 0, n = hosts->n;
    for (int i = 0; i < n && !failed(t); i++) {
        n_reached += answers[i].reached;
    }
    int needed = s->min_hosts > 0 && s->min_hosts < n ? (int)s->min_hosts : n;
    for (int i = n - 1; i >= 0 && !failed(t); i--) {
        if (answers[i].reached) {
            continue;
        }
        log_warning("%s does not answer: %s", hosts->hosts[i].name, answers[i].problem.text);
        if (n_reached < needed) {
            t = status_error(STATUS_UNAVAILABLE, "%d of %d hosts answer, but %d are needed%s", n_reached, n,
                             needed,
                             s->min_hosts > 0 ? "" : "; --min_hosts lets the job continue with fewer");
        } else {
            host_list_remove(hosts, i);
        }
    }
    free(answers);
    return t;
}

/* Before a restart: counts it, waits, and checks the hosts; too few of them cost a restart too. */
static struct status prepare_restart(struct course *c, const struct supervise *s, struct status failure)
{
    for (;;) {
        int64_t newest = job_watch_newest_checkpoint(s->program->output_dir, s->program->command);
        c->n_in_row = newest > c->newest ? 1 : c->n_in_row + 1;
        c->newest = newest;
        if (c->n_in_row > s->max_restarts) {
            return status_context(failure, "%s",
                                  s->max_restarts == 0 ? "not restarted (--max_restarts 0)"
                                                       : "no more restarts (--max_restarts)");
        }
        double wait =
            c->n_in_row < 2 ? 0 : s->backoff_s * (double)(1 << (c->n_in_row < 8 ? c->n_in_row - 2 : 6));
        c->n_restarts++;
        log_warning("%s", failure.message);
        if (newest >= 0) {
            log_info("restart %" PRId64 ", attempt %" PRId64 " of %" PRId64
                     " without a new checkpoint, in %.1f s, from ckpt_%" PRId64 " or the newest valid one",
                     c->n_restarts, c->n_in_row, s->max_restarts, wait, newest);
        } else {
            log_info("restart %" PRId64 ", attempt %" PRId64 " of %" PRId64
                     ", in %.1f s, from the beginning: no checkpoint was seen",
                     c->n_restarts, c->n_in_row, s->max_restarts, wait);
        }
        FAIL_IF(!wait_s(c, wait), STATUS_PREEMPTED,
                "stopped by a signal before a restart; start again to resume");
        struct status t = check_hosts(s);
        if (t.code != STATUS_UNAVAILABLE) {
            return t;
        }
        failure = t;
    }
}

static struct status run_attempts(struct course *c, const struct supervise *s)
{
    for (bool resume = false;; resume = s->program->first_flag > 0) {
        struct words line = {0};
        struct attempt a = {.err = -1, .signals = c->signals, .watch = {.rank = -1}};
        struct status t = mpi_command_make(&line, s->job, resume);
        t = failed(t) ? t : attempt_run(&a, &line, s);
        words_fini(&line);
        struct status failure = failed(t) ? t : describe(&a, s);
        enum job_next next = job_watch_next(&a.watch, a.code);
        job_watch_fini(&a.watch);
        if (failed(t) || next == JOB_NEVER) {
            return failure;
        }
        if (next == JOB_DONE) {
            return status_ok();
        }
        if (a.n_told > 0) {
            return a.code == STATUS_PREEMPTED
                       ? status_error(STATUS_PREEMPTED, "stopped by a signal; the state is saved; start "
                                                        "again with --resume_from_checkpoint to resume")
                       : failure;
        }
        TRY(prepare_restart(c, s, failure));
    }
}

struct status supervise_run(const struct supervise *s)
{
    static const int heard[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof heard / sizeof heard[0]; i++) {
        struct sigaction old;
        sigaction(heard[i], NULL, &old);
        if (heard[i] != SIGHUP || old.sa_handler != SIG_IGN) { /* under nohup it stays ignored */
            sigaddset(&set, heard[i]);
        }
    }
    sigprocmask(SIG_BLOCK, &set, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    struct course c = {.newest = job_watch_newest_checkpoint(s->program->output_dir, s->program->command),
                       .signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    struct status t =
        c.signals < 0 ? status_error(STATUS_INTERNAL, "signalfd: %s", strerror(errno)) : run_attempts(&c, s);
    if (c.signals >= 0) {
        close(c.signals);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return t;
}
