/* record_log: a log that a run appends records to, lines or binary ones, and that a full disk does not end: a
 * record is there completely or not at all, records that cannot be written are counted, and the log continues
 * with the first that can be written again. */
#ifndef KILN_IO_RECORD_LOG_H
#define KILN_IO_RECORD_LOG_H

#include "io/file.h"

struct record_log {
    FILE *file; /* NULL: closed */
    char path[FILE_PATH_BYTES];
    bool is_regular; /* not a pipe or a device: what was written of a record can be taken back */
    int64_t n_lost;  /* records since the last one that was written */
};

/* Opens the log as file_lines_open opens a file. */
struct status record_log_open(struct record_log *l, const char *path, bool append);

/* Appends a record.  The first one that cannot be written is warned of, and so is the end of the loss.
 * Returns how many were lost before this one, if this one was written; does nothing to a closed log. */
int64_t record_log_append(struct record_log *l, const void *bytes, size_t n);

/* Safe on a zeroed struct. */
void record_log_close(struct record_log *l);

#endif
