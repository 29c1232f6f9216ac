/* profile_trace: a profile as a file in the Chrome trace event format (object form), which Perfetto and
 * chrome://tracing show.  Rows: micro-steps with their phases, layers with their ops, and the background
 * save; times in microseconds from the beginning of the window.  Source: "Trace Event Format", Google,
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. */
#ifndef KILN_WATCH_PROFILE_TRACE_H
#define KILN_WATCH_PROFILE_TRACE_H

#include "watch/profile.h"

/* Writes the spans and ops of a window that has ended; atomically. */
struct status profile_trace_write(const struct profile *p, const char *path);

#endif
