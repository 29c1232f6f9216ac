#include "watch/run_watch.h"

struct status run_watch_open(struct run_watch *w, struct backend *b, const char *command,
                             const struct run_watch_options *o)
{
    TRY(plain_ops_init(&w->plain, b, o->plain_ops));
    TRY(migration_log_open(&w->migration, o->migration_log, command, b));
    if (o->sync_ops) {
        op_sync_init(&w->sync, b->ops);
        b->ops = &w->sync.table;
    }
    return status_ok();
}

void run_watch_close(struct run_watch *w, struct status outcome)
{
    migration_log_close(&w->migration, outcome);
}
