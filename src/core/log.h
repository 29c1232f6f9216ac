/* log: lines for people on standard error (or standard output for results), in lower case.  The sink is the
 * only mutable global of the program.  The machine-readable twin, JSON lines, is written by
 * report/metrics. */
#ifndef KILN_CORE_LOG_H
#define KILN_CORE_LOG_H

#include "core/buf.h"
#include "core/status.h"

#include <stdio.h>

enum log_level { LOG_QUIET, LOG_WARNING, LOG_INFO };

/* LOG_QUIET until the program says otherwise: a library is silent. */
void log_set_level(enum log_level level);

/* Where lines go instead of standard error: one call at a time, which must not log. */
struct log_sink {
    void (*line)(void *self, enum log_level level, const char *text);
    void *self;
};

/* NULL: standard error.  The sink that was there gets no line any more. */
void log_set_sink(const struct log_sink *sink);

/* This process is one of several ranks: all but the first show only warnings, with their rank in front. */
void log_set_rank(int rank);

/* One line each; a newline is added.  A live progress line (core/progress.h) is cleared first. */
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a text that may have names from outside, for results too: what a terminal would obey (control
 * characters of ASCII, and those that UTF-8 spells with 0xC2) is an escape, but for tabs.  So is the end of a
 * line, with which a name would make a line of its own. */
void log_put_text(FILE *file, const char *text);
void log_append_text(struct buf *b, const char *text);

/* `kiln: error: <message>`, what main prints for a failed command; nothing at LOG_QUIET. */
void log_error(struct status s);

#endif
