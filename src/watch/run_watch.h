/* run_watch: the wrappers that a run's flags put around its backend's op table: `--plain_ops`,
 * `--migration-log` and `--sync_ops`. */
#ifndef KILN_WATCH_RUN_WATCH_H
#define KILN_WATCH_RUN_WATCH_H

#include "ops/op_watch.h"
#include "ops/plain_ops.h"
#include "watch/migration_log.h"

/* The flags of a command. */
struct run_watch_options {
    const char *plain_ops; /* NULL: none */
    /* file that says which kernel served each op; NULL: none, or at a level, below RUN_WATCH_LOGS */
    const char *migration_log;
    const char *log_level; /* "1", "2" or "3" (enum migration_tag); NULL: 1 */
    bool sync_ops;         /* wait after every op, so that a device's error is named with it */
};

/* Directory in which the replaced platform's toolkit put its log, as gpu_migration_PID.log. */
#define RUN_WATCH_LOGS "gpu_migration_logs"

struct run_watch {
    struct plain_ops plain;
    char log_path[64]; /* path of the log that only a level asked for */
    struct migration_log migration;
    struct op_watch sync;
};

/* Wraps b->ops, which the run then uses.  STATUS_IO if the log cannot be written, STATUS_USAGE if there is no
 * op that --plain_ops names. */
struct status run_watch_open(struct run_watch *w, struct backend *b, const char *command,
                             const struct run_watch_options *o);

/* Says in the log how the run ended; safe on a zeroed struct.  Nothing may use the tables any more. */
void run_watch_close(struct run_watch *w, struct status outcome);

#endif
