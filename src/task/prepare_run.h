/* prepare_run: text into everything that training reads, in one pass: token stores, HDF5 shards of one or
 * more phases, and the cleaned text itself.
 *
 * All is made in OUTPUT_DIR/.prepare and moved from there when it is complete, so nothing has its final name
 * before. A run that was stopped, killed or could not write resumes from its last state, which is in .prepare
 * too (corpus/pass_state.h).  docs/decisions/0051_prepare.md. */
#ifndef KILN_TASK_PREPARE_RUN_H
#define KILN_TASK_PREPARE_RUN_H

#include "core/option.h"
#include "corpus/store_pass.h"
#include "data/shard_set.h"

enum { PREPARE_NAME_BYTES = 256 };

/* A phase of HDF5 files, padded or packed. */
struct prepare_set {
    char name[PREPARE_NAME_BYTES];  /* directory of the set in output_dir; "": it has none of its own */
    struct shard_set_config shards; /* store_dir and directory are set later */
};

struct prepare_config {
    const char *const *inputs; /* [n_inputs] */
    int n_inputs;
    struct source_options source;
    struct command_flags common;
    struct store_pass_config pass; /* directory is set later; with a tokenizer for stores and sets */
    bool wants_store;
    struct prepare_set *sets; /* [n_sets] */
    int n_sets;
    bool overwrite, resume;
    struct pass_report *report; /* is filled in; NULL: nobody wants it */
    bool check;                 /* nothing is written, as with dry_run, but all of the text is read */
    json_t *settings;           /* settings that decide the bytes of the output, for --resume; borrowed */
};

/* Makes the outputs from the inputs; with dry_run or check it writes nothing.  STATUS_USAGE: outputs are
 * there already, or one would be written over an input; STATUS_DATA: a file is not text, or there is no text;
 * STATUS_IO: the disk cannot hold the output; STATUS_PREEMPTED after a signal. */
struct status prepare_run(const struct prepare_config *config);

#endif
