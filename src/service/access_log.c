#include "service/access_log.h"

#include "core/log.h"
#include "service/call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* O_NONBLOCK: a pipe that nobody reads loses lines, as a full disk does, and holds up no request. */
struct status access_log_open(struct access_log *log, const char *path)
{
    *log = (struct access_log){.fd = STDERR_FILENO};
    if (strcmp(path, "-") != 0) {
        log->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    }
    return log->fd >= 0 ? status_ok()
                        : status_error(STATUS_IO, "cannot append to %s: %s", path, strerror(errno));
}

void access_log_close(struct access_log *log)
{
    if (log->fd != STDERR_FILENO) {
        close(log->fd);
    }
}

static void write_line(struct access_log *log, const struct buf *line)
{
    ssize_t n = write(log->fd, line->data, line->n);
    bool fails = n != (ssize_t)line->n;
    if (atomic_exchange(&log->fails, fails) != fails && fails) {
        log_warning("lines of the access log are lost: %s", n < 0 ? strerror(errno) : "one was cut");
    }
}

static json_t *line_of(const struct http_exchange *x, int status, size_t n_bytes, double seconds)
{
    char time_text[32];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%S", &utc);
    return json_pack("{s:s+, s:o, s:o, s:o, s:i, s:I, s:f}", "time", time_text, "Z", "address",
                     json_text(http_address(x)), "method", json_text(http_method(x)), "path",
                     json_text(http_path(x)), "status", status, "bytes", (json_int_t)n_bytes, "seconds",
                     seconds);
}

static void add_call(json_t *line, const struct call *c)
{
    const struct call_times t = call_times(c);
    json_object_set_new(line, "model", c->model == NULL ? json_null() : json_text(c->model->name));
    json_object_set_new(line, "texts", json_integer(c->n_texts));
    json_object_set_new(line, "tokens", json_integer(c->n_tokens));
    json_object_set_new(line, "new_tokens", json_integer(c->n_new_tokens));
    json_object_set_new(line, "queue_s", json_real(t.queue_s));
    json_object_set_new(line, "compute_s", json_real(t.compute_s));
}

void access_log_write(struct access_log *log, const struct http_exchange *x, const struct call *c, int status,
                      size_t n_bytes, double seconds)
{
    json_t *json = line_of(x, status, n_bytes, seconds);
    if (json != NULL && c != NULL) {
        add_call(json, c);
    }
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    struct buf line = {0};
    if (text != NULL) {
        buf_printf(&line, "%s\n", text);
        write_line(log, &line);
    }
    buf_fini(&line);
    free(text);
    json_decref(json);
}
