#include "watch/run_watch.h"

#include "io/file.h"

#include <stdio.h>
#include <unistd.h>

/* The file of the log: the one that was named, or else the toolkit's, if a level was given. */
static struct status find_log(struct run_watch *w, const char **path, const struct run_watch_options *o)
{
    *path = o->migration_log;
    if (o->migration_log == NULL && o->log_level != NULL) {
        TRY(file_make_directories(RUN_WATCH_LOGS));
        snprintf(w->log_path, sizeof w->log_path, RUN_WATCH_LOGS "/gpu_migration_%ld.log", (long)getpid());
        *path = w->log_path;
    }
    return status_ok();
}

struct status run_watch_open(struct run_watch *w, struct backend *b, const char *command,
                             const struct run_watch_options *o)
{
    TRY(plain_ops_init(&w->plain, b, o->plain_ops));
    const char *log;
    TRY(find_log(w, &log, o));
    TRY(migration_log_open(&w->migration, log, command, b));
    if (o->log_level != NULL) {
        w->migration.level = (enum migration_tag)(o->log_level[0] - '0');
    }
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
