/* progress: one line that shows how far a long job has come.  On a terminal it is rewritten in place, at most
 * ten times a second; elsewhere it is a plain line every few seconds. */
#ifndef KILN_CORE_PROGRESS_H
#define KILN_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool enabled;
    bool terminal;
    int64_t last_ns; /* time when the line was last written */
    int64_t plain_every_ns;
};

/* `enabled` false makes every call do nothing. */
struct progress progress_begin(bool enabled);

/* True if the line is due, so that callers format it only then. */
bool progress_due(const struct progress *p);

/* Shows a line that replaces the last one, on a terminal. */
void progress_show(struct progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Clears a live line, so that the next output starts on a clean one. */
void progress_end(struct progress *p);

/* Clears whatever live line is on the terminal; called by the log before it writes. */
void progress_clear_line(void);

/* "3:05", "2:03:05" or "4 d 2 h" */
struct progress_time {
    char text[24];
};
struct progress_time progress_time(double seconds);

#endif
