/* run_outputs: what a run writes to, checked before its first step. */
#ifndef KILN_TASK_RUN_OUTPUTS_H
#define KILN_TASK_RUN_OUTPUTS_H

#include "io/dir_lock.h"

#include <stdint.h>

struct run_outputs {
    const char *directory;     /* --output_dir */
    const char *json_summary;  /* NULL: none */
    const char *migration_log; /* NULL: none */
    const char *trace_dir;     /* --tensorboard_logdir; NULL or "": below the directory, or none */
    uint64_t bytes;            /* that the checkpoints and models of this run will take at one time */
};

/* Whether the directory can be had at all: its name and the right to write there.  For the beginning, before inputs are
 * read.  Leaves nothing behind. */
struct status run_outputs_check(const char *directory);

/* Checks everything, makes the directory and locks it for this run. */
struct status run_outputs_open(const struct run_outputs *o, struct dir_lock *lock);

/* Bytes of the most checkpoints that a run from the beginning has on the disk at one time, the one that is being written
 * included: `n_saves` of them are written and `keep_last` kept.  keep_last 0 keeps all: how many of them stay is not
 * known here, so one is counted. */
uint64_t run_outputs_checkpoint_bytes(int64_t n_saves, int64_t keep_last, uint64_t bytes_each);

#endif
