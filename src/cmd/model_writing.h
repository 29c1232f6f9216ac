/* model_writing: what `kiln export` and `kiln convert` have in common: any model that kiln reads is written
 * as a directory. */
#ifndef KILN_CMD_MODEL_WRITING_H
#define KILN_CMD_MODEL_WRITING_H

#include "cmd/settings.h"
#include "core/option.h"
#include "model/model_dir.h"

#include <stddef.h>

struct model_writing_flags {
    const char *model, *config_file, *vocab_file;
    const char *output_dir, *task;
    int64_t max_shard_size;
    bool dry_run;
};

/* `at` is the offset of the struct in the command's own struct. */
#define MODEL_WRITING_ROWS(at)                                                                               \
    OPTION_REQUIRED_ROW("model", (at) + offsetof(struct model_writing_flags, model), "PATH",                 \
                        "a checkpoint or model directory, or another program's checkpoint"),                 \
        OPTION_STRING_ROW("init_checkpoint", (at) + offsetof(struct model_writing_flags, model), NULL,       \
                          "PATH", "the same as --model"),                                                    \
        OPTION_STRING_ROW("config_file", (at) + offsetof(struct model_writing_flags, config_file), NULL,     \
                          "FILE", "read the configuration from this file, if none is beside the weights"),   \
        OPTION_STRING_ROW("vocab_file", (at) + offsetof(struct model_writing_flags, vocab_file), NULL,       \
                          "FILE", "read the vocabulary from this file, if none is beside the weights"),      \
        OPTION_REQUIRED_ROW("output_dir", (at) + offsetof(struct model_writing_flags, output_dir), "DIR",    \
                            "write the model into this directory; it may exist if it holds only an older "   \
                            "model of the same form, which is replaced"),                                    \
        OPTION_CHOICE_ROW("task", (at) + offsetof(struct model_writing_flags, task), NULL,                   \
                          "pretraining|masked_lm|question_answering|encoder",                                \
                          "write this class: BertForPreTraining, BertForMaskedLM, BertForQuestionAnswering " \
                          "or BertModel; by default all heads that the model has"),                          \
        OPTION_INT_ROW("max_shard_size", (at) + offsetof(struct model_writing_flags, max_shard_size), "5e9", \
                       1, 1e15,                                                                              \
                       "write a model of more than N bytes as several files: safetensors with an index"),    \
        DRY_RUN_ROW((at) + offsetof(struct model_writing_flags, dry_run),                                    \
                    "read and check everything, and write nothing")

/* Opens the model and writes it in a form, unless it is a dry run; and with `verify` reads the weights back.
 * Says what it wrote.  Then calls `after`, if it is not NULL, with the model that was read. */
struct model_writing {
    const struct model_writing_flags *flags;
    struct model_dir_form form;
    bool verify;
    bool with_progress;       /* the state of the run goes along: the model must be a checkpoint of kiln */
    int n_ranks;              /* with it, in DeepSpeed's form */
    const char *const *files; /* [n_files] the data that the run goes on with */
    int64_t n_files;
    struct status (*after)(const struct model_writing *w, const struct model_dir *m, enum model_task task);
    const void *context; /* of `after` */
};

/* Opens, writes and verifies, as the struct says. */
struct status model_writing_run(struct model_writing *w);

#endif
