#define _GNU_SOURCE
#include "fetch/download.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/host.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "fetch/http_get.h"
#include "io/sum_list.h"
#include "io/file.h"
#include "io/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const double LONGEST_WAIT_S = 60;
enum { LONGEST_RETRY_AFTER_S = 300 };

/* A file that is being downloaded. */
struct partial {
    const struct download *d;
    const struct download_manner *manner;
    char part[FILE_PATH_BYTES], from[FILE_PATH_BYTES];
    int fd;
    int64_t have;        /* bytes in the partial file */
    int64_t total;       /* bytes of the whole file; -1: unknown */
    char validator[256]; /* name of the version that the bytes belong to; "": they cannot be resumed */
    bool is_resumed;     /* the bytes come from several answers */
    uint64_t keep_free;  /* bytes of the disk that a file of unknown length leaves */
    int64_t look_at;     /* how many bytes to have before the disk is looked at again */
    bool restart;        /* the last answer did not continue where the bytes end */
    struct progress progress;
    int64_t begun_ns, begun_at;
};

/* ---- existing files ---- */

/* Whether an existing file has the length and the checksum; STATUS_DATA says what is wrong. */
static struct status check_file(const struct download *d)
{
    struct stat info;
    FAIL_IF(stat(d->path, &info) != 0 || !S_ISREG(info.st_mode), STATUS_DATA, "%s is not a regular file",
            d->path);
    FAIL_IF(d->bytes >= 0 && info.st_size != d->bytes, STATUS_DATA, "%s has %lld bytes, but should have %lld",
            d->path, (long long)info.st_size, (long long)d->bytes);
    return d->sum == NULL ? status_ok() : sum_check_file(d->path, d->sum);
}

static struct status check_existing(const struct download *d)
{
    struct status s = check_file(d);
    return s.code == STATUS_DATA ? status_error(STATUS_DATA, "%s; remove it to download it again", s.message)
                                 : s;
}

/* ---- the partial file and its record ---- */

static struct status make_names(struct partial *f)
{
    const char *path = f->d->path;
    FAIL_IF(strlen(path) + sizeof ".part.from" > FILE_PATH_BYTES, STATUS_USAGE,
            "the path %.60s... is too long; the limit is %d bytes", path,
            (int)(FILE_PATH_BYTES - sizeof ".part.from"));
    snprintf(f->part, sizeof f->part, "%s.part", path);
    snprintf(f->from, sizeof f->from, "%s.part.from", path);
    return status_ok();
}

/* Five lines: URL, length, version, boot, bytes that an fsync followed: those after it may be lost in a crash
 * of the machine, but not of the process.  Returns how many bytes of the partial file can be trusted: none if
 * the file holds anything else. */
static int64_t read_from(struct partial *f)
{
    enum { URL, TOTAL, VALIDATOR, BOOT, SYNCED, N_LINES };
    struct file_map m;
    struct buf text = {0};
    char *line[N_LINES] = {NULL}, *save = NULL;
    int64_t trusted = 0;
    if (!file_exists(f->from) || failed(file_map_open(&m, f->from))) {
        return 0;
    }
    buf_append(&text, m.n > 0 ? (const char *)m.data : "", m.n < 4096 ? m.n : 0);
    file_map_close(&m);
    for (int i = 0; i < N_LINES && text.n > 0; i++) {
        line[i] = strtok_r(i == 0 ? text.data : NULL, "\n", &save);
    }
    if (line[SYNCED] != NULL && strcmp(line[URL], f->d->url) == 0 &&
        strlen(line[VALIDATOR]) < sizeof f->validator) {
        f->total = strtoll(line[TOTAL], NULL, 10);
        memcpy(f->validator, line[VALIDATOR], strlen(line[VALIDATOR]) + 1);
        struct host_text boot = host_boot();
        bool is_same_boot = strcmp(boot.text, "-") != 0 && strcmp(boot.text, line[BOOT]) == 0;
        trusted = is_same_boot ? INT64_MAX : strtoll(line[SYNCED], NULL, 10);
    }
    buf_fini(&text);
    return trusted;
}

static struct status write_from(const struct partial *f, int64_t synced)
{
    struct buf text = {0};
    if (f->validator[0] == '\0') {
        return unlink(f->from) == 0 || errno == ENOENT
                   ? status_ok()
                   : status_error(STATUS_IO, "cannot remove %s: %s", f->from, strerror(errno));
    }
    buf_printf(&text, "%s\n%lld\n%s\n%s\n%lld\n", f->d->url, (long long)f->total, f->validator,
               host_boot().text, (long long)synced);
    struct status s = buf_status(&text);
    if (!failed(s)) {
        s = file_write_atomic(f->from, text.data, text.n);
    }
    buf_fini(&text);
    return s;
}

static struct status cut_part(struct partial *f)
{
    f->have = 0;
    f->is_resumed = false;
    f->validator[0] = '\0';
    f->total = -1;
    return ftruncate(f->fd, 0) == 0
               ? status_ok()
               : status_error(STATUS_IO, "cannot empty %s: %s", f->part, strerror(errno));
}

static struct status open_part(struct partial *f)
{
    char parent[FILE_PATH_BYTES];
    struct stat info;
    file_parent(parent, f->d->path);
    TRY(file_make_directories(parent));
    f->fd = open(f->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    FAIL_IF(f->fd < 0 || fstat(f->fd, &info) != 0 || !S_ISREG(info.st_mode), STATUS_IO,
            "cannot write to %s: %s", f->part, f->fd < 0 ? strerror(errno) : "it is not a regular file");
    if (!file_lock_try(f->fd) && errno == EWOULDBLOCK) {
        close(f->fd);
        f->fd = -1; /* it belongs to the other process */
        return status_error(STATUS_IO, "another process is fetching %s", f->d->path);
    }
    f->have = info.st_size;
    int64_t trusted = read_from(f);
    f->have = f->have < trusted ? f->have : trusted;
    if (f->have <= 0 || f->validator[0] == '\0' || (f->total >= 0 && f->have > f->total)) {
        return cut_part(f);
    }
    FAIL_IF(ftruncate(f->fd, f->have) != 0, STATUS_IO, "cannot shorten %s: %s", f->part, strerror(errno));
    log_info("%s: resuming after %.1f MB", f->d->path, (double)f->have * 1e-6);
    f->is_resumed = true;
    return status_ok();
}

/* ---- an answer ---- */

static struct status check_space(const struct partial *f)
{
    char parent[FILE_PATH_BYTES];
    file_parent(parent, f->d->path);
    uint64_t available = file_free_bytes(parent);
    int64_t wanted = f->total - f->have;
    return f->total < 0 || wanted <= 0 || (uint64_t)wanted <= available
               ? status_ok()
               : status_error(STATUS_IO,
                              "%s needs %lld more bytes, but its file system has only %llu free; free some, "
                              "or choose another --output_dir",
                              f->d->path, (long long)wanted, (unsigned long long)available);
}

static struct status too_long(const struct partial *f)
{
    return status_error(STATUS_DATA, "%s has more than the %lld bytes that --max_bytes allows", f->d->url,
                        (long long)f->manner->most_bytes);
}

/* A file of unknown length may have no end: it ends where --max_bytes does, or before the disk is full. */
static struct status check_endless(struct partial *f)
{
    enum { BETWEEN_LOOKS = 1 << 20 };
    char parent[FILE_PATH_BYTES];
    if (f->manner->most_bytes > 0 && f->have > f->manner->most_bytes) {
        return too_long(f);
    }
    if (f->total >= 0 || f->have < f->look_at) {
        return status_ok();
    }
    f->look_at = f->have + (f->keep_free / 2 < BETWEEN_LOOKS ? (int64_t)(f->keep_free / 2) : BETWEEN_LOOKS);
    file_parent(parent, f->d->path);
    uint64_t available = file_free_bytes(parent);
    return available >= f->keep_free
               ? status_ok()
               : status_error(STATUS_IO,
                              "%s: stopped after %lld bytes: the server does not say how many there are, and "
                              "only %llu bytes are free; free some, or give --max_bytes",
                              f->d->url, (long long)f->have, (unsigned long long)available);
}

/* Whether the bytes that follow belong to the wanted file and continue the partial one. */
static struct status judge(struct partial *f, const struct http_answer *answer)
{
    const struct download *d = f->d;
    FAIL_IF(answer->code != 200 && answer->code != 206, STATUS_DATA,
            "%s: the server answers with code %ld instead of a file", d->url, answer->code);
    FAIL_IF(d->bytes >= 0 && answer->total >= 0 && answer->total != d->bytes, STATUS_DATA,
            "%s: the server says that the file has %lld bytes, but it should have %lld", d->url,
            (long long)answer->total, (long long)d->bytes);
    FAIL_IF(!answer->marks_end && d->bytes < 0 && d->sum == NULL, STATUS_DATA,
            "%s: the server does not say how long the file is, so kiln cannot tell whether it is complete; "
            "give its --sha256 or --md5",
            d->url);
    if (answer->code == 206 && (answer->begin != f->have || (f->total >= 0 && answer->total != f->total))) {
        f->restart = true;
        return status_error(STATUS_IO, "%s: the server sends another range than kiln asked for", d->url);
    }
    if (answer->code == 206 && f->have > 0 &&
        strcmp(answer->validator, f->validator) != 0) { /* RFC 9110 section 15.3.7.3 */
        f->restart = true;
        return status_error(STATUS_IO, "%s: the server sends the rest of another version of this file",
                            d->url);
    }
    if (f->manner->most_bytes > 0 && answer->total > f->manner->most_bytes) {
        return too_long(f);
    }
    return status_ok();
}

static void set_limits(struct partial *f)
{
    enum { KEPT_SHARE = 20 }; /* a twentieth of what is free stays free */
    char parent[FILE_PATH_BYTES];
    file_parent(parent, f->d->path);
    f->keep_free = file_free_bytes(parent) / KEPT_SHARE;
    f->look_at = 0;
}

static struct status begin(void *context, const struct http_answer *answer)
{
    struct partial *f = context;
    TRY(judge(f, answer));
    if (answer->code == 200) {
        if (f->have > 0) {
            log_info("%s: the server does not resume it; downloading from the start", f->d->path);
        }
        TRY(cut_part(f));
    } else {
        f->is_resumed = f->is_resumed || f->have > 0;
    }
    f->total = answer->total >= 0 ? answer->total : f->d->bytes;
    memcpy(f->validator, answer->validator, sizeof f->validator);
    f->begun_ns = clock_ns();
    f->begun_at = f->have;
    TRY(check_space(f));
    set_limits(f);
    bool is_synced = f->have > 0 && fsync(f->fd) == 0;
    return write_from(f, is_synced ? f->have : 0);
}

static void show(struct partial *f)
{
    const char *slash = strrchr(f->d->path, '/'), *name = slash == NULL ? f->d->path : slash + 1;
    double rate = (double)(f->have - f->begun_at) / fmax(clock_since_s(f->begun_ns), 1e-3);
    if (f->total < 0) {
        progress_show(&f->progress, "%s: %.1f MB, %.1f MB/s", name, (double)f->have * 1e-6, rate * 1e-6);
        return;
    }
    struct progress_time left = progress_time((double)(f->total - f->have) / fmax(rate, 1));
    progress_show(&f->progress, "%s: %.1f of %.1f MB, %.1f MB/s, %s left", name, (double)f->have * 1e-6,
                  (double)f->total * 1e-6, rate * 1e-6, left.text);
}

static struct status put(void *context, const void *bytes, size_t n)
{
    struct partial *f = context;
    const char *p = bytes;
    FAIL_IF(f->total >= 0 && (int64_t)n > f->total - f->have, STATUS_DATA,
            "%s: the server sends more than the %lld bytes that it announced", f->d->url,
            (long long)f->total);
    while (n > 0) {
        ssize_t written = pwrite(f->fd, p, n, f->have);
        FAIL_IF(written < 0 && errno != EINTR, STATUS_IO, "writing %s failed after %lld bytes: %s", f->part,
                (long long)f->have, strerror(errno));
        if (written > 0) {
            p += written;
            n -= (size_t)written;
            f->have += written;
        }
    }
    if (progress_due(&f->progress)) {
        show(f);
    }
    return check_endless(f);
}

/* ---- tries ---- */

static struct status stopped(const struct partial *f)
{
    return status_error(STATUS_PREEMPTED,
                        "stopped by a signal after %lld bytes of %s; the same command resumes",
                        (long long)f->have, f->d->path);
}

static struct status wait_s(const struct partial *f, double seconds)
{
    for (int64_t start = clock_ns(); !stop_requested() && clock_since_s(start) < seconds;) {
        double left = fmin(seconds - clock_since_s(start), 0.2);
        struct timespec t = {.tv_nsec = (long)(fmax(left, 0) * 1e9)};
        nanosleep(&t, NULL);
    }
    return stop_requested() ? stopped(f) : status_ok();
}

/* Codes of errors that may be temporary (RFC 9110 section 15, and 429 of RFC 6585). */
static bool is_temporary(long code)
{
    return code == 408 || code == 429 || code == 500 || code == 502 || code == 503 || code == 504;
}

/* Whether to retry after an attempt that failed with *s; if not, *s is the error to report. */
static bool should_retry(struct partial *f, enum http_end end, const struct http_answer *answer,
                         struct status *s)
{
    if (stop_requested()) {
        *s = stopped(f);
        return false;
    }
    if (f->restart) {
        return true;
    }
    if (end == HTTP_REFUSED && answer->code == 416 && f->have > 0) { /* the server's file is shorter */
        f->restart = true;
        return true;
    }
    if (end == HTTP_REFUSED && is_temporary(answer->code)) {
        bool is_long = answer->retry_after_s > LONGEST_RETRY_AFTER_S;
        *s = status_error(STATUS_UNAVAILABLE, "%s: the server answers with code %ld%s", f->d->url,
                          answer->code, is_long ? " and asks to wait for more than 5 minutes" : "");
        return !is_long;
    }
    return end == HTTP_BROKEN || (end == HTTP_UNREACHABLE && f->have > 0) || end == HTTP_WHOLE;
}

static struct status try_once(struct partial *f, enum http_end *end, struct http_answer *answer)
{
    f->restart = false;
    struct http_get get = {
        .url = f->d->url,
        .from = f->have,
        .validator = f->validator,
        .proxy = f->manner->proxy,
        .stall_s = f->manner->stall_s,
        .context = f,
        .begin = begin,
        .put = put,
    };
    struct status s = http_get(&get, end, answer);
    progress_end(&f->progress);
    FAIL_IF(!failed(s) && f->total >= 0 && f->have < f->total, STATUS_IO,
            "%s: the server stopped after %lld of %lld bytes", f->d->url, (long long)f->have,
            (long long)f->total);
    return s;
}

/* Retries until all bytes are there.  Only attempts without a byte beyond all earlier ones count towards the
 * limit. */
static struct status get_bytes(struct partial *f)
{
    int64_t furthest = f->have, failures = 0;
    double wait = f->manner->retry_wait_s;
    for (;;) {
        enum http_end end;
        struct http_answer answer;
        if (f->have > 0 && f->have == f->total) {
            return status_ok(); /* an earlier process died before the rename */
        }
        struct status s = try_once(f, &end, &answer);
        if (!failed(s)) {
            return s;
        }
        bool moved = f->have > furthest;
        furthest = moved ? f->have : furthest;
        failures = moved ? 0 : failures + 1;
        wait = moved ? f->manner->retry_wait_s : wait;
        if (!should_retry(f, end, &answer, &s)) {
            return s;
        }
        if (failures >= f->manner->tries) {
            return status_context(s, "gave up after %lld attempts", (long long)failures);
        }
        double pause =
            end == HTTP_REFUSED && answer.retry_after_s > wait ? (double)answer.retry_after_s : wait;
        log_warning("%s; retrying in %.0f s", s.message, pause);
        if (f->restart) {
            TRY(cut_part(f));
        }
        TRY(wait_s(f, pause));
        wait = fmin(2 * wait, LONGEST_WAIT_S);
    }
}

/* ---- the end ---- */

static struct status check_part(struct partial *f)
{
    struct download part = *f->d;
    part.path = f->part;
    FAIL_IF(fsync(f->fd) != 0, STATUS_IO, "fsync of %s failed: %s", f->part, strerror(errno));
    return check_file(&part);
}

static struct status put_in_place(struct partial *f)
{
    char parent[FILE_PATH_BYTES];
    FAIL_IF(rename(f->part, f->d->path) != 0, STATUS_IO, "cannot rename %s to %s: %s", f->part, f->d->path,
            strerror(errno));
    unlink(f->from);
    file_parent(parent, f->d->path);
    return file_sync_directory(parent);
}

/* Bytes from several answers may belong to several versions of the file, whatever the server said: if the
 * checksum is wrong, one download from the start follows. */
static struct status get_and_check(struct partial *f)
{
    TRY(get_bytes(f));
    struct status s = check_part(f);
    if (s.code == STATUS_DATA && f->is_resumed) {
        log_warning("%s; downloading it again from the start", s.message);
        TRY(cut_part(f));
        TRY(get_bytes(f));
        s = check_part(f);
    }
    if (s.code == STATUS_DATA) { /* nothing to resume from */
        unlink(f->part);
        unlink(f->from);
        return status_error(STATUS_DATA, "removed %s, downloaded from %s: %s", f->part, f->d->url, s.message);
    }
    return s;
}

struct status download_file(const struct download *d, const struct download_manner *manner, bool *was_there)
{
    struct partial f = {.d = d, .manner = manner, .fd = -1, .total = -1, .progress = progress_begin(true)};
    *was_there = file_exists(d->path);
    if (*was_there) {
        return check_existing(d);
    }
    TRY(make_names(&f));
    struct status s = open_part(&f);
    if (!failed(s)) {
        s = get_and_check(&f);
    }
    if (!failed(s)) {
        s = put_in_place(&f);
    } else if (f.fd >= 0 && (f.have == 0 || f.validator[0] == '\0')) { /* nothing that could be resumed */
        unlink(f.part);
        unlink(f.from);
    } else if (f.fd >= 0 && fsync(f.fd) == 0 && file_exists(f.from)) {
        (void)write_from(&f,
                         f.have); /* without it, the bytes are fetched again after a crash of the machine */
    }
    if (f.fd >= 0) {
        close(f.fd);
    }
    return s;
}
