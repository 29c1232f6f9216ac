/* gpt_finetune: a decoder continues to learn from the user's texts, or learns to answer from examples: a
 * model directory and files become a model directory, with its perplexity on what is held out before and
 * after.
 *
 * The rule: the files become a store of tokens, by the model's own tokenizer, in OUTPUT_DIR/data; the rest is
 * a run of pre-training (task/pretrain.h) whose configuration, vocabulary and weights are the model's. */
#ifndef KILN_TASK_GPT_FINETUNE_H
#define KILN_TASK_GPT_FINETUNE_H

#include "task/gpt/gpt_pretrain.h"

struct gpt_finetune_options {
    /* init_checkpoint and output_dir must be given; max_seq_length 0: the model's positions, 1,024 at most;
     * eval_steps 0: only before and after.  kind, own, configuration and data are set by the run. */
    struct pretrain_options run;
    struct gpt_pretrain_options gpt;
    /* texts or examples (task/gpt/gpt_finetune_data.h), or the prefix of a store */
    struct option_words train_files;
    struct option_words validation_files; /* to evaluate on, in the same forms; none: a part of train_files */
    const char *text_field;               /* key of the text in a line of JSON; NULL: "text" */
    /* percentage of train_files in that part: of texts the last one, of examples a random one */
    int64_t validation_percent;
    double n_epochs;              /* used with run.run.max_steps -1 and 0 */
    bool no_parse_special_tokens; /* special tokens in the texts are plain text */
};

/* Fine-tunes, and saves OUTPUT_DIR/model.  STATUS_PREEMPTED after a signal, with the state saved. */
struct status gpt_finetune_run(const struct gpt_finetune_options *o);

#endif
