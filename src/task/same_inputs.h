/* same_inputs: comparisons of the files that each rank reads and writes (dist/same_run.h), before ranks train
 * together. */
#ifndef KILN_TASK_SAME_INPUTS_H
#define KILN_TASK_SAME_INPUTS_H

#include "dist/same_run.h"
#include "nn/model.h"
#include "text/tokenizer.h"

/* Adds the model's configuration, key by key, and the vocabulary. */
void same_inputs_add_model(struct same_run *same, const struct model *m, const struct tokenizer *t);

/* All ranks call it, once the first one has made the directory that --FLAG names.  STATUS_DATA unless it is
 * the same directory on all: by its inode and, where all ranks are on one node, its device. */
struct status same_inputs_directory(const struct comm *world, const char *flag, const char *path);

/* Whether this rank is the lowest of those that see the same file at `path`, and so the one that reads it for
 * all of them.  All ranks call it. */
struct status same_inputs_reader(const struct comm *world, const char *path, bool *reads);

#endif
