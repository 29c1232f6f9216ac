/* model_writing: any model that kiln reads is written as a directory, by `kiln export`, which is here, and
 * `kiln convert`. */
#ifndef KILN_CMD_MODEL_WRITING_H
#define KILN_CMD_MODEL_WRITING_H

#include "core/option.h"
#include "model/model_dir.h"

struct model_writing_flags {
    const char *model, *task;
    struct model_dir_given given;
    int64_t max_shard_size;
    struct command_flags common;
};

extern const struct option model_writing_flags[];

/* Opens the model and writes it in a form, unless it is a dry run; and with `verify` reads the weights back.
 * Says what it wrote.  Then calls `after`, if it is not NULL, with the model that was read. */
struct model_writing {
    const struct model_writing_flags *flags;
    struct model_dir_form form;
    bool verify;
    bool with_progress;       /* the state of the run goes along: the model must be a checkpoint of kiln */
    int n_ranks;              /* ranks in DeepSpeed's form, with the state of the run */
    const char *const *files; /* [n_files] the data that the run continues with */
    int64_t n_files;
    struct status (*after)(const struct model_writing *w, const struct model_dir *m, enum model_task task);
    const void *context; /* argument of `after` */
};

/* Opens, writes and verifies, as the struct says. */
struct status model_writing_run(struct model_writing *w);

#endif
