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

/* Where a program that kiln is part of wants all output: one call at a time, which must not log. */
struct log_sink {
    void (*line)(void *self, enum log_level level, const char *text);
    void (*event)(void *self, const char *json); /* an event of a run (report/metrics.h); NULL: none */
    void *self;
};

/* NULL: lines go to standard error, and results to standard output.  The sink that was there gets nothing any
 * more. */
void log_set_sink(const struct log_sink *sink);

/* Whether log_set_sink has set one. */
bool log_has_sink(void);

/* Gives the sink what else goes to standard output or error, or an event; false: there is no sink. */
bool log_to_sink(enum log_level level, const char *text);
void log_event(const char *json);

/* This process is one of several ranks: all but the first show only warnings, with their rank in front. */
void log_set_rank(int rank);

/* One line each; a newline is added.  A live progress line (core/progress.h) is cleared first. */
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line of results, on standard output whatever the level is. */
void log_result(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a text that may have names from outside, for results too: what a terminal would obey (control
 * characters of ASCII, and those that UTF-8 spells with 0xC2) is an escape, but for tabs.  So is the end of a
 * line, with which a name would make a line of its own. */
void log_put_text(FILE *file, const char *text);
void log_append_text(struct buf *b, const char *text);

/* `kiln: error: <message>`, what main prints for a failed command; nothing at LOG_QUIET. */
void log_error(struct status s);

#endif
