/* run_watch: the wrappers that a run's flags put around its backend's op table: `--migration-log` and
 * `--sync_ops`. */
#ifndef KILN_WATCH_RUN_WATCH_H
#define KILN_WATCH_RUN_WATCH_H

#include "ops/op_sync.h"
#include "watch/migration_log.h"

struct run_watch {
    struct migration_log migration;
    struct op_watch sync;
};

/* Wraps b->ops, which the run then uses; `migration_log` may be NULL.  STATUS_IO if that file cannot be
 * written. */
struct status run_watch_open(struct run_watch *w, struct backend *b, const char *command,
                             const char *migration_log, bool sync_ops);

/* Says in the log how the run ended; safe on a zeroed struct.  Nothing may use the tables any more. */
void run_watch_close(struct run_watch *w, struct status outcome);

#endif
