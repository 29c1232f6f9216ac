#define _GNU_SOURCE
#include "fetch/download.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "fetch/http.h"
#include "fetch/sum_list.h"
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double LONGEST_WAIT_S = 60;
enum { LONGEST_RETRY_AFTER_S = 300 };

/* One file on its way. */
struct way {
    const struct download *d;
    const struct download_manner *manner;
    char part[FILE_PATH_BYTES], from[FILE_PATH_BYTES];
    int fd;
    int64_t have;        /* bytes in the part */
    int64_t total;       /* of the whole; -1: not told */
    char validator[256]; /* of what the part is of; "": it cannot be gone on with */
    bool is_resumed;     /* the part comes of several answers */
    bool begin_anew;     /* the last answer did not go on where the part ends */
    struct progress progress;
    int64_t begun_ns, begun_at;
};

/* ---- what is there ---- */

struct status download_check(const struct download *d)
{
    struct stat info;
    if (stat(d->path, &info) != 0 || !S_ISREG(info.st_mode)) {
        return status_error(STATUS_DATA, "%s is no file", d->path);
    }
    if (d->bytes >= 0 && info.st_size != d->bytes) {
        return status_error(STATUS_DATA, "%s has %lld bytes, but should have %lld", d->path,
                            (long long)info.st_size, (long long)d->bytes);
    }
    return d->sum == NULL ? status_ok() : sum_check_file(d->path, d->sum);
}

static struct status check_existing(const struct download *d)
{
    struct status s = download_check(d);
    return s.code == STATUS_DATA
               ? status_error(STATUS_DATA, "%s; remove it, and it is fetched again", s.message)
               : s;
}

/* ---- the part and what it is of ---- */

static struct status make_names(struct way *w)
{
    const char *path = w->d->path;
    if (strlen(path) + sizeof ".part.from" > FILE_PATH_BYTES) {
        return status_error(STATUS_USAGE, "the path %.60s... is too long: %d bytes are left for it", path,
                            (int)(FILE_PATH_BYTES - sizeof ".part.from"));
    }
    snprintf(w->part, sizeof w->part, "%s.part", path);
    snprintf(w->from, sizeof w->from, "%s.part.from", path);
    return status_ok();
}

/* Three lines: where from, how long, which version.  Whatever else the file is, the part is begun anew. */
static void read_from(struct way *w)
{
    struct file_map m;
    struct buf text = {0};
    char *line[3] = {NULL, NULL, NULL}, *save = NULL;
    if (!file_exists(w->from) || failed(file_map_open(&m, w->from))) {
        return;
    }
    buf_append(&text, m.n > 0 ? (const char *)m.data : "", m.n < 4096 ? m.n : 0);
    file_map_close(&m);
    char *rest = text.data;
    for (int i = 0; i < 3 && rest != NULL; i++) {
        line[i] = strtok_r(i == 0 ? rest : NULL, "\n", &save);
    }
    if (line[2] != NULL && strcmp(line[0], w->d->url) == 0 && strlen(line[2]) < sizeof w->validator) {
        w->total = strtoll(line[1], NULL, 10);
        memcpy(w->validator, line[2], strlen(line[2]) + 1);
    }
    buf_fini(&text);
}

static struct status write_from(const struct way *w)
{
    struct buf text = {0};
    if (w->validator[0] == '\0') {
        return unlink(w->from) == 0 || errno == ENOENT
                   ? status_ok()
                   : status_error(STATUS_IO, "cannot remove %s: %s", w->from, strerror(errno));
    }
    buf_printf(&text, "%s\n%lld\n%s\n", w->d->url, (long long)w->total, w->validator);
    struct status s = buf_status(&text);
    if (!failed(s)) {
        s = file_write_atomic(w->from, text.data, text.n);
    }
    buf_fini(&text);
    return s;
}

static struct status cut_part(struct way *w)
{
    w->have = 0;
    w->is_resumed = false;
    w->validator[0] = '\0';
    w->total = -1;
    return ftruncate(w->fd, 0) == 0
               ? status_ok()
               : status_error(STATUS_IO, "cannot empty %s: %s", w->part, strerror(errno));
}

static struct status open_part(struct way *w)
{
    char parent[FILE_PATH_BYTES];
    struct stat info;
    file_parent(parent, w->d->path);
    TRY(file_make_directories(parent));
    w->fd = open(w->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (w->fd < 0 || fstat(w->fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        return status_error(STATUS_IO, "cannot write to %s: %s", w->part,
                            w->fd < 0 ? strerror(errno) : "it is no file");
    }
    if (flock(w->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(w->fd);
        w->fd = -1; /* the part is not ours */
        return status_error(STATUS_IO, "another process is fetching %s", w->d->path);
    }
    w->have = info.st_size;
    read_from(w);
    if (w->have == 0 || w->validator[0] == '\0' || (w->total >= 0 && w->have > w->total)) {
        return cut_part(w);
    }
    log_info("%s: going on behind %.1f MB that are there", w->d->path, (double)w->have * 1e-6);
    w->is_resumed = true;
    return status_ok();
}

/* ---- an answer ---- */

static struct status check_space(const struct way *w)
{
    char parent[FILE_PATH_BYTES];
    file_parent(parent, w->d->path);
    uint64_t available = file_free_bytes(parent);
    int64_t wanted = w->total - w->have;
    return w->total < 0 || wanted <= 0 || (uint64_t)wanted <= available
               ? status_ok()
               : status_error(
                     STATUS_IO,
                     "%s needs %lld bytes more, but its file system has only %llu free; free some, or "
                     "choose another --output_dir",
                     w->d->path, (long long)wanted, (unsigned long long)available);
}

/* What the bytes that come are of, against what is there and what is known. */
static struct status judge(struct way *w, const struct http_answer *answer)
{
    const struct download *d = w->d;
    if (answer->code != 200 && answer->code != 206) {
        return status_error(STATUS_DATA, "%s: the server answers with code %ld, and no file", d->url,
                            answer->code);
    }
    if (d->bytes >= 0 && answer->total >= 0 && answer->total != d->bytes) {
        return status_error(STATUS_DATA,
                            "%s: the server says that it has %lld bytes, but it should have %lld", d->url,
                            (long long)answer->total, (long long)d->bytes);
    }
    if (!answer->marks_end && d->bytes < 0 && d->sum == NULL) {
        return status_error(
            STATUS_DATA,
            "%s: the server does not say how long it is, so nothing tells whether it came whole; give its "
            "--sha256 or --md5",
            d->url);
    }
    if (answer->code == 206 && (answer->begin != w->have || (w->total >= 0 && answer->total != w->total))) {
        w->begin_anew = true;
        return status_error(STATUS_IO, "%s: the server sends another part than it was asked for", d->url);
    }
    return status_ok();
}

static struct status begin(void *context, const struct http_answer *answer)
{
    struct way *w = context;
    TRY(judge(w, answer));
    if (answer->code == 200) {
        if (w->have > 0) {
            log_info("%s: the server sends it from its beginning", w->d->path);
        }
        TRY(cut_part(w));
    } else {
        w->is_resumed = w->is_resumed || w->have > 0;
    }
    w->total = answer->total >= 0 ? answer->total : w->d->bytes;
    memcpy(w->validator, answer->validator, sizeof w->validator);
    w->begun_ns = clock_ns();
    w->begun_at = w->have;
    TRY(check_space(w));
    return write_from(w);
}

static void show(struct way *w)
{
    const char *slash = strrchr(w->d->path, '/'), *name = slash == NULL ? w->d->path : slash + 1;
    double rate = (double)(w->have - w->begun_at) / fmax(clock_since_s(w->begun_ns), 1e-3);
    if (w->total < 0) {
        progress_show(&w->progress, "%s: %.1f MB, %.1f MB/s", name, (double)w->have * 1e-6, rate * 1e-6);
        return;
    }
    struct progress_time left = progress_time((double)(w->total - w->have) / fmax(rate, 1));
    progress_show(&w->progress, "%s: %.1f of %.1f MB, %.1f MB/s, %s left", name, (double)w->have * 1e-6,
                  (double)w->total * 1e-6, rate * 1e-6, left.text);
}

static struct status put(void *context, const void *bytes, size_t n)
{
    struct way *w = context;
    const char *p = bytes;
    if (w->total >= 0 && (int64_t)n > w->total - w->have) {
        return status_error(STATUS_DATA, "%s: more bytes come than the %lld that it has", w->d->url,
                            (long long)w->total);
    }
    while (n > 0) {
        ssize_t written = pwrite(w->fd, p, n, w->have);
        if (written < 0 && errno != EINTR) {
            return status_error(STATUS_IO, "writing %s failed after %lld bytes: %s", w->part,
                                (long long)w->have, strerror(errno));
        }
        if (written > 0) {
            p += written;
            n -= (size_t)written;
            w->have += written;
        }
    }
    if (progress_due(&w->progress)) {
        show(w);
    }
    return status_ok();
}

/* ---- tries ---- */

static struct status stopped(const struct way *w)
{
    return status_error(STATUS_PREEMPTED,
                        "stopped by a signal with %lld bytes of %s there; the same command goes on",
                        (long long)w->have, w->d->path);
}

static struct status wait_s(const struct way *w, double seconds)
{
    for (int64_t start = clock_ns(); !stop_requested() && clock_since_s(start) < seconds;) {
        double left = fmin(seconds - clock_since_s(start), 0.2);
        struct timespec t = {.tv_nsec = (long)(fmax(left, 0) * 1e9)};
        nanosleep(&t, NULL);
    }
    return stop_requested() ? stopped(w) : status_ok();
}

/* Codes that another try may change (RFC 9110 section 15, and 429 of RFC 6585). */
static bool is_passing(long code)
{
    return code == 408 || code == 429 || code == 500 || code == 502 || code == 503 || code == 504;
}

/* Whether a try that failed with `s` is worth another; else *s is what to tell. */
static bool is_worth_another(struct way *w, enum http_end end, const struct http_answer *answer,
                             struct status *s)
{
    if (stop_requested()) {
        *s = stopped(w);
        return false;
    }
    if (w->begin_anew) {
        return true;
    }
    if (end == HTTP_REFUSED && answer->code == 416 &&
        w->have > 0) { /* the part is not the beginning of what is there */
        w->begin_anew = true;
        return true;
    }
    if (end == HTTP_REFUSED && is_passing(answer->code)) {
        bool is_long = answer->retry_after_s > LONGEST_RETRY_AFTER_S;
        *s = status_error(STATUS_UNAVAILABLE, "%s: the server answers with code %ld%s", w->d->url,
                          answer->code, is_long ? " and asks to come back in more than 5 minutes" : "");
        return !is_long;
    }
    return end == HTTP_BROKEN || (end == HTTP_UNREACHABLE && w->have > 0) || end == HTTP_WHOLE;
}

static struct status try_once(struct way *w, enum http_end *end, struct http_answer *answer)
{
    w->begin_anew = false;
    struct http_get get = {
        .url = w->d->url,
        .from = w->have,
        .validator = w->validator,
        .proxy = w->manner->proxy,
        .stall_s = w->manner->stall_s,
        .context = w,
        .begin = begin,
        .put = put,
    };
    struct status s = http_get(&get, end, answer);
    progress_end(&w->progress);
    if (!failed(s) && w->total >= 0 && w->have < w->total) {
        return status_error(STATUS_IO, "%s: the server ended it after %lld of %lld bytes", w->d->url,
                            (long long)w->have, (long long)w->total);
    }
    return s;
}

/* Until all bytes are there.  A try counts as failed for good only if no byte came that no try had brought before. */
static struct status get_bytes(struct way *w)
{
    int64_t furthest = w->have, failures = 0;
    double wait = w->manner->retry_wait_s;
    for (;;) {
        enum http_end end;
        struct http_answer answer;
        if (w->have > 0 && w->have == w->total) {
            return status_ok(); /* an earlier process died before it gave the file its name */
        }
        struct status s = try_once(w, &end, &answer);
        if (!failed(s)) {
            return s;
        }
        bool moved = w->have > furthest;
        furthest = moved ? w->have : furthest;
        failures = moved ? 0 : failures + 1;
        wait = moved ? w->manner->retry_wait_s : wait;
        if (!is_worth_another(w, end, &answer, &s)) {
            return s;
        }
        if (failures >= w->manner->tries) {
            return status_context(s, "given up after %lld tries", (long long)failures);
        }
        double pause =
            end == HTTP_REFUSED && answer.retry_after_s > wait ? (double)answer.retry_after_s : wait;
        log_warning("%s; trying again in %.0f s", s.message, pause);
        if (w->begin_anew) {
            TRY(cut_part(w));
        }
        TRY(wait_s(w, pause));
        wait = fmin(2 * wait, LONGEST_WAIT_S);
    }
}

/* ---- the end ---- */

static struct status check_part(struct way *w)
{
    struct download part = *w->d;
    part.path = w->part;
    if (fsync(w->fd) != 0) {
        return status_error(STATUS_IO, "fsync of %s failed: %s", w->part, strerror(errno));
    }
    return download_check(&part);
}

static struct status put_in_place(struct way *w)
{
    char parent[FILE_PATH_BYTES];
    if (rename(w->part, w->d->path) != 0) {
        return status_error(STATUS_IO, "cannot rename %s to %s: %s", w->part, w->d->path, strerror(errno));
    }
    unlink(w->from);
    file_parent(parent, w->d->path);
    return file_sync_directory(parent);
}

/* A part of several answers may be of several versions of the file, whatever the server said of them: it gets one more
 * chance, from the beginning. */
static struct status get_and_check(struct way *w)
{
    TRY(get_bytes(w));
    struct status s = check_part(w);
    if (s.code == STATUS_DATA && w->is_resumed) {
        log_warning("%s; fetching it from its beginning", s.message);
        TRY(cut_part(w));
        TRY(get_bytes(w));
        s = check_part(w);
    }
    if (s.code == STATUS_DATA) { /* nothing of it is worth going on with */
        unlink(w->part);
        unlink(w->from);
        return status_error(STATUS_DATA, "%s, fetched from %s, was removed again: %s", w->part, w->d->url,
                            s.message);
    }
    return s;
}

struct status download_file(const struct download *d, const struct download_manner *manner, bool *was_there)
{
    struct way w = {.d = d, .manner = manner, .fd = -1, .total = -1, .progress = progress_begin(true)};
    *was_there = file_exists(d->path);
    if (*was_there) {
        return check_existing(d);
    }
    TRY(make_names(&w));
    struct status s = open_part(&w);
    if (!failed(s)) {
        s = get_and_check(&w);
    }
    if (!failed(s)) {
        s = put_in_place(&w);
    } else if (w.fd >= 0 && w.have == 0) {
        unlink(w.part); /* nothing came: nothing is left lying about */
        unlink(w.from);
    }
    if (w.fd >= 0) {
        close(w.fd);
    }
    return s;
}
