#include "task/run_outputs.h"

#include "io/file.h"

#include <string.h>

/* The longest name below --output_dir, rounded up: worker_0/eval/events.out.tfevents.TIME.HOST.PID.0 with a
 * host of 64 letters. */
enum { LONGEST_NAME = 128 };

struct status run_outputs_check(const char *directory)
{
    return status_context(file_check_output_directory(directory, LONGEST_NAME, 0), "--output_dir");
}

/* Makes its directory, as dllog_open does. */
static struct status check_summary(const char *path)
{
    char parent[FILE_PATH_BYTES];
    if (strlen(path) < sizeof parent) {
        file_parent(parent, path);
        TRY(file_make_directories(parent));
    }
    return file_check_output(path, 0);
}

/* The directory first: the files may be in it. */
struct status run_outputs_open(const struct run_outputs *o, struct dir_lock *lock)
{
    TRY(status_context(file_check_output_directory(o->directory, LONGEST_NAME, o->bytes), "--output_dir"));
    TRY(file_make_directories(o->directory));
    TRY(lock->fd >= 0 ? status_ok() : dir_lock_acquire(lock, o->directory));
    if (o->json_summary != NULL) {
        TRY(status_context(check_summary(o->json_summary), "--json-summary"));
    }
    if (o->migration_log != NULL) {
        TRY(status_context(file_check_output(o->migration_log, 0), "--migration-log"));
    }
    return o->trace_dir == NULL || *o->trace_dir == '\0'
               ? status_ok()
               : status_context(file_check_output_directory(o->trace_dir, LONGEST_NAME, 0),
                                "--tensorboard_logdir");
}

uint64_t run_outputs_checkpoint_bytes(int64_t n_saves, int64_t keep_last, uint64_t bytes_each)
{
    const uint64_t others =
        5 << 18; /* of a checkpoint besides its tensors, as checkpoint_check_space counts */
    int64_t most = keep_last == 0 ? 1 : keep_last + 1, n = n_saves < most ? n_saves : most;
    return n == 0 ? 0 : (uint64_t)n * bytes_each + others;
}
