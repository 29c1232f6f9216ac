#define _GNU_SOURCE
#include "launch/job_watch.h"

#include "core/clock.h"
#include "core/regular_file.h"
#include "launch/rank_guard.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void job_watch_fini(struct job_watch *w)
{
    buf_fini(&w->line);
    *w = (struct job_watch){.rank = -1};
}

static void note_failure(struct job_watch *w)
{
    w->failed_ns = w->failed_ns != 0 ? w->failed_ns : clock_ns();
}

/* Keeps the first error that a rank reports, and the launcher's own words only while no rank has reported
 * any. */
static void note_cause(struct job_watch *w, const char *text, bool is_certain)
{
    note_failure(w);
    if (w->cause[0] == '\0' || (is_certain && !w->is_certain)) {
        snprintf(w->cause, sizeof w->cause, "%.300s", text);
        w->is_certain = is_certain;
    }
}

static void note_rank(struct job_watch *w, int64_t rank)
{
    note_failure(w);
    w->rank = w->rank >= 0 || w->is_settled ? w->rank : rank;
}

/* Takes the word after `after` as the host; the first host that is reported counts. */
static void note_host(struct job_watch *w, const char *line, const char *after)
{
    const char *at = strstr(line, after);
    if (at != NULL && w->host[0] == '\0') {
        at += strlen(after);
        snprintf(w->host, sizeof w->host, "%.*s", (int)strcspn(at, " \t\r:,"), at);
    }
}

/* "Process name: [[28370,1],2]": the rank of the job, which is its second number. */
static void read_process_name(struct job_watch *w, const char *line)
{
    const char *at = strstr(line, "Process name: [[");
    long long family, job, rank;
    if (at != NULL && sscanf(at, "Process name: [[%lld,%lld],%lld]", &family, &job, &rank) == 3) {
        note_rank(w, rank);
    }
}

static void read_open_mpi(struct job_watch *w, const char *line)
{
    static const char noticed[] = "noticed that process rank ";
    const char *at = strstr(line, noticed);
    if (at != NULL) {
        const char *signal = strstr(line, " exited on ");
        note_rank(w, strtoll(at + sizeof noticed - 1, NULL, 10));
        note_host(w, line, " on node ");
        note_cause(w, signal != NULL ? signal + 1 : "it ended", false);
    }
    read_process_name(w, line);
    if (strstr(line, "lost communication with a remote daemon") != NULL) {
        note_cause(w, "the host does not answer any more", false);
    } else if (strstr(line, "Remote daemon:") != NULL) {
        note_failure(w);
        note_host(w, line, " on node ");
        w->is_settled = true; /* ranks that end now are ended by mpirun */
    }
}

static void read_srun(struct job_watch *w, const char *line)
{
    char host[HOST_NAME_BYTES];
    long long rank;
    int at = 0;
    if (sscanf(line, "srun: error: %253[^: ]: task %lld: %n", host, &rank, &at) == 2 && at > 0) {
        note_rank(w, rank);
        if (w->host[0] == '\0') {
            snprintf(w->host, sizeof w->host, "%s", host);
        }
        note_cause(w, line + at, false);
    } else if (sscanf(line, "srun: error: task %lld launch failed: %n", &rank, &at) == 1 && at > 0) {
        w->has_not_begun = true;
        note_rank(w, rank);
        note_cause(w, line + sizeof "srun: error: " - 1, false);
    } else if (strncmp(line, "srun: error: Node failure on ", 29) == 0) {
        note_host(w, line, "Node failure on ");
        note_cause(w, "the host does not answer any more", false);
    }
}

/* Recognises errors that no new start mends. */
static void read_hopeless(struct job_watch *w, const char *line)
{
    static const char *const signs[] = {
        "unable to find the specified executable",
        "could not find the executable",
        "There are not enough slots available",
        "unrecognized option",
        "unrecognized argument",
    };
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (strstr(line, signs[i]) != NULL) {
            w->is_hopeless = true;
            note_cause(w, line, false);
        }
    }
}

/* Exit code as a shell has it; 0 if `ending` has none. */
static int code_of_ending(const char *ending)
{
    int number;
    if (sscanf(ending, "ended with exit code %d", &number) == 1) {
        return number;
    }
    return sscanf(ending, "ended by signal %d", &number) == 1 ? 128 + number : 0;
}

/* Reads from its guard's line how a rank ended: "kiln: error: rank 1 on h2 ended by signal 9, Killed". */
static bool read_guard(struct job_watch *w, const char *line)
{
    const char *at = strstr(line, RANK_GUARD_LINE), *how = at == NULL ? NULL : strstr(at, " ended ");
    if (how == NULL) {
        return false;
    }
    if (!w->is_settled) {
        w->is_settled = true;
        w->rank = strtoll(at + sizeof RANK_GUARD_LINE - 1, NULL, 10);
        w->host[0] = '\0';
        note_host(w, at, " on ");
        snprintf(w->ending, sizeof w->ending, "%.80s", how + 1);
        w->code = code_of_ending(w->ending);
    }
    note_failure(w);
    return true;
}

/* "kiln: error: rank 2 of 4 on h3 has been silent for 10.0 s": the one that was lost, and not the one that
 * says so and then ends. */
static void read_silence(struct job_watch *w, const char *cause)
{
    char host[HOST_NAME_BYTES];
    long long rank;
    int at = 0;
    if (!w->is_settled &&
        sscanf(cause, "rank %lld of %*d on %253s has been silent %n", &rank, host, &at) == 2 && at > 0) {
        w->rank = rank;
        snprintf(w->host, sizeof w->host, "%s", host);
        w->is_settled = true;
    }
}

static void read_line(struct job_watch *w)
{
    static const char own[] = "kiln: error: ";
    const char *line = buf_text(&w->line), *error = strstr(line, own);
    if (read_guard(w, line)) {
        return;
    }
    if (error != NULL) {
        read_silence(w, error + sizeof own - 1);
        note_cause(w, error + sizeof own - 1, true);
        return;
    }
    read_open_mpi(w, line);
    read_srun(w, line);
    read_hopeless(w, line);
}

void job_watch_take(struct job_watch *w, const char *bytes, size_t n)
{
    enum { LONGEST = 4096 };
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') { /* a live line ends with the latter */
            read_line(w);
            buf_clear(&w->line);
        } else if (w->line.n < LONGEST) {
            buf_putc(&w->line, bytes[i]);
        }
    }
}

void job_watch_find_host(struct job_watch *w, const struct host_list *hosts)
{
    int64_t first = 0;
    for (int i = 0; i < hosts->n && w->host[0] == '\0'; i++) {
        int64_t next = first + hosts->hosts[i].n_slots;
        if (w->rank >= first && w->rank < next) {
            snprintf(w->host, sizeof w->host, "%s", hosts->hosts[i].name);
        }
        first = next;
    }
}

/* The number after the last `"step":` of a text; -1: none. */
static int64_t find_last_step(const char *text)
{
    static const char key[] = "\"step\":";
    int64_t step = -1;
    for (const char *at = strstr(text, key); at != NULL; at = strstr(at + 1, key)) {
        char *end;
        long long value = strtoll(at + sizeof key - 1, &end, 10);
        step = end != at + sizeof key - 1 ? value : step;
    }
    return step;
}

/* Never waits: if a pipe or a device has the name of the log, it is not read. */
static int open_log(size_t *n, const char *output_dir)
{
    struct buf path = {0};
    int fd = -1;
    *n = 0;
    buf_printf(&path, "%s/log.jsonl", output_dir == NULL ? "" : output_dir);
    if (output_dir == NULL || path.failed || failed(regular_file_open(&fd, n, buf_text(&path)))) {
        fd = -1;
    }
    buf_fini(&path);
    return fd;
}

int64_t job_watch_log_bytes(const char *output_dir)
{
    size_t n;
    int fd = open_log(&n, output_dir);
    if (fd >= 0) {
        close(fd);
    }
    return (int64_t)n;
}

int64_t job_watch_last_step(const char *output_dir, int64_t begin)
{
    enum { TAIL = 1 << 16 };
    size_t n;
    int fd = open_log(&n, output_dir);
    if (fd < 0) {
        return -1;
    }
    struct buf text = {0};
    int64_t from = (int64_t)n - TAIL > begin ? (int64_t)n - TAIL : begin;
    char *tail = buf_extend(&text, TAIL);
    ssize_t got = tail == NULL ? 0 : pread(fd, tail, TAIL, from);
    close(fd);
    text.n = got > 0 ? (size_t)got : 0;
    buf_putc(&text, '\0');
    int64_t step = text.failed ? -1 : find_last_step(text.data);
    buf_fini(&text);
    return step;
}

static int64_t newest_checkpoint(const char *directory)
{
    int64_t newest = -1;
    DIR *d = directory == NULL ? NULL : opendir(directory);
    for (struct dirent *e = d == NULL ? NULL : readdir(d); e != NULL; e = readdir(d)) {
        char *end = e->d_name;
        long long n = strncmp(e->d_name, "ckpt_", 5) == 0 ? strtoll(e->d_name + 5, &end, 10) : -1;
        newest = n > newest && *end == '\0' ? n : newest;
    }
    if (d != NULL) {
        closedir(d);
    }
    return newest;
}

int64_t job_watch_newest_checkpoint(const char *output_dir, const char *command)
{
    struct buf below = {0};
    buf_printf(&below, "%s/%s", output_dir == NULL ? "" : output_dir, command == NULL ? "" : command);
    bool known = output_dir != NULL && command != NULL && !below.failed;
    int64_t newest = known ? newest_checkpoint(buf_text(&below)) : -1;
    buf_fini(&below);
    return newest >= 0 ? newest : newest_checkpoint(output_dir);
}

/* srun ends with the highest code, which is that of the ranks that it ended itself; and with 0 if it could
 * start none. */
int job_watch_code(const struct job_watch *w, int code)
{
    if (code == 0 && w->has_not_begun) {
        return STATUS_IO;
    }
    bool is_of_ended = code == 128 + SIGTERM;
    return is_of_ended && w->code != 0 ? w->code : code;
}

enum job_next job_watch_next(const struct job_watch *w, int code)
{
    enum { CODE_WATCHDOG = 97, CODE_PEER_LOST = 98, CODE_ABORTED = 128 + 6 };
    if (code == 0) {
        return JOB_DONE;
    }
    if (w->is_hopeless || code == CODE_ABORTED) { /* a bug of kiln itself comes again */
        return JOB_NEVER;
    }
    return code == STATUS_IO || code == STATUS_PREEMPTED || code == CODE_WATCHDOG || code == CODE_PEER_LOST ||
                   code > 128
               ? JOB_AGAIN
               : JOB_NEVER;
}
