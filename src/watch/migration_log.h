/* migration_log: which kernel served each op of a run: `--migration-log FILE`.
 *
 * It replaces the log of the replaced platform's migration toolkit, for every device.  Each op with its
 * dtypes and shapes has an entry, with the place in the source that entered its layer, tagged `match` if the
 * device's first choice of kernel computed it.  The tag is `modified`, with the reason, if another kernel did
 * or if it computes otherwise than the cpu, and `mismatch` if the device did not compute it.
 * docs/formats.md. */
#ifndef KILN_WATCH_MIGRATION_LOG_H
#define KILN_WATCH_MIGRATION_LOG_H

#include "ops/backend.h"
#include "ops/op_watch.h"

enum { MIGRATION_LOG_ENTRIES = 4096, MIGRATION_LOG_PLACES = 4 * MIGRATION_LOG_ENTRIES };

/* The tags, and the levels of GPU_MIGRATION_LOG_LEVEL, which leave out the tags below them. */
enum migration_tag { MIGRATION_MATCH = 1, MIGRATION_MODIFIED, MIGRATION_MISMATCH };

struct migration_entry {
    struct op_call call;  /* the first */
    const char *by, *why; /* exec.served_by, exec.served_why */
    const char *layer;    /* layer of the first call */
    int64_t layer_index;
    const char *file;
    int line;
    double first_s; /* wall clock */
    int64_t n_calls;
};

struct migration_log {
    struct op_watch watch;
    struct backend on;
    const char *path, *command;      /* borrowed; path NULL: off */
    enum migration_tag level;        /* the first tag that is written; all until the caller sets another */
    struct migration_entry *entries; /* [n_entries] in the order of their first calls */
    int16_t *places;                 /* [MIGRATION_LOG_PLACES] entry + 1 by hash; 0: none */
    int64_t n_entries;
    int64_t n_left_out; /* calls of further shapes, when the table was full */
};

/* Wraps b->ops in the log; does nothing if path is NULL.  Writes a first version of the file now, so that a
 * path that cannot be written fails now: STATUS_IO. */
struct status migration_log_open(struct migration_log *log, const char *path, const char *command,
                                 struct backend *b);

/* Writes the file, which says how the run ended, and frees everything; safe on a zeroed struct.  Nothing may
 * use the table any more.  A failure is only a warning, since the run itself is fine. */
void migration_log_close(struct migration_log *log, struct status outcome);

#endif
