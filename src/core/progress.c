#include "core/progress.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t LIVE_EVERY_NS = 100000000;
static const int64_t PLAIN_EVERY_NS = 10000000000;

/* Part of the log sink: whether the terminal's last line is a live progress line. */
static atomic_bool live_line;

struct progress progress_begin(bool enabled)
{
    return (struct progress){
        .enabled = enabled,
        .terminal = isatty(STDERR_FILENO) == 1 && !log_has_sink(),
        .last_ns = clock_ns() - PLAIN_EVERY_NS / 2, /* the first plain line after half the interval */
        .plain_every_ns = PLAIN_EVERY_NS,
    };
}

bool progress_due(const struct progress *p)
{
    return p->enabled && clock_ns() - p->last_ns >= (p->terminal ? LIVE_EVERY_NS : p->plain_every_ns);
}

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

void progress_show(struct progress *p, const char *format, ...)
{
    if (!p->enabled) {
        return;
    }
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    p->last_ns = clock_ns();
    if (log_to_sink(LOG_INFO, line)) {
        return;
    }
    flockfile(stderr);
    if (p->terminal) { /* a line that wraps could not be rewritten */
        fprintf(stderr, "\r\033[K%.*s", terminal_columns() - 1, line);
    } else {
        fprintf(stderr, "%s\n", line);
    }
    fflush(stderr);
    funlockfile(stderr);
    atomic_store(&live_line, p->terminal);
}

void progress_clear_line(void)
{
    if (atomic_exchange(&live_line, false)) {
        fputs("\r\033[K", stderr);
    }
}

void progress_end(struct progress *p)
{
    if (p->enabled) {
        progress_clear_line();
    }
}

struct progress_time progress_time(double seconds)
{
    struct progress_time t;
    long s = seconds < 0 ? 0 : (long)(seconds + 0.5);
    if (s >= 86400) {
        snprintf(t.text, sizeof t.text, "%ld d %ld h", s / 86400, s % 86400 / 3600);
    } else if (s >= 3600) {
        snprintf(t.text, sizeof t.text, "%ld:%02ld:%02ld", s / 3600, s % 3600 / 60, s % 60);
    } else {
        snprintf(t.text, sizeof t.text, "%ld:%02ld", s / 60, s % 60);
    }
    return t;
}
