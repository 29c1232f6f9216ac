/* run_outputs: the files and directories that a run writes, checked before its first step. */
#ifndef KILN_TASK_RUN_OUTPUTS_H
#define KILN_TASK_RUN_OUTPUTS_H

#include "io/dir_lock.h"

#include <stdint.h>

struct run_outputs {
    const char *directory;     /* --output_dir */
    const char *json_summary;  /* NULL: none */
    const char *migration_log; /* NULL: none */
    const char *trace_dir;     /* --tensorboard_logdir; NULL or "": below the directory, or none */
    uint64_t bytes;            /* the most disk space that its checkpoints and models take at one time */
};

/* Checks early, before inputs are read, that the directory's name is valid and that it can be written.
 * Leaves nothing behind. */
struct status run_outputs_check(const char *directory);

/* Checks everything, makes the directory and locks it for this run, unless it is locked. */
struct status run_outputs_open(const struct run_outputs *o, struct dir_lock *lock);

/* The most bytes of checkpoints that a fresh run has on disk at one time, including the one being written:
 * `n_saves` are written and `keep_last` kept. keep_last 0 keeps all; the user may remove some, so only one is
 * counted. */
uint64_t run_outputs_checkpoint_bytes(int64_t n_saves, int64_t keep_last, uint64_t bytes_each);

#endif
