/* log: lines for people on standard error (or standard output for results), in lower case.  The sink is the
 * only mutable global of the program.  The machine-readable twin, JSON lines, is written by
 * report/metrics. */
#ifndef KILN_CORE_LOG_H
#define KILN_CORE_LOG_H

#include "core/status.h"

enum log_level { LOG_QUIET, LOG_WARNING, LOG_INFO };

/* LOG_QUIET until the program says otherwise: a library is silent. */
void log_set_level(enum log_level level);

/* This process is one of several ranks: all but the first show only warnings, with their rank in front. */
void log_set_rank(int rank);

/* One line each; a newline is added.  A live progress line (core/progress.h) is cleared first. */
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `kiln: error: <message>`, what main prints for a failed command; nothing at LOG_QUIET. */
void log_error(struct status s);

#endif
