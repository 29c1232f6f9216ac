/* gpt_finetune: a decoder continues to learn from a text of the user's: a model directory and a text become a
 * model directory, with its perplexity on held-out text before and after.
 *
 * The rule: a text becomes a store of tokens, by the model's own tokenizer, in OUTPUT_DIR/data; the rest is a
 * run of pre-training (task/pretrain.h) whose configuration, vocabulary and weights are the model's. */
#ifndef KILN_TASK_GPT_FINETUNE_H
#define KILN_TASK_GPT_FINETUNE_H

#include "task/gpt/gpt_pretrain.h"

struct gpt_finetune_options {
    /* init_checkpoint and output_dir must be given; max_seq_length 0: the model's positions, 1,024 at most;
     * eval_steps 0: only before and after.  kind, own, configuration and data are set by the run. */
    struct pretrain_options run;
    struct gpt_pretrain_options gpt;
    const char *train_file;       /* lines of JSON, a text, or the prefix of a store (data/text_ids.h) */
    const char *validation_file;  /* text to evaluate on, in the same forms; NULL: a part of train_file */
    int64_t validation_percent;   /* percentage of train_file in that part, its last one */
    double n_epochs;              /* used with run.run.max_steps -1 and 0 */
    bool no_parse_special_tokens; /* special tokens in the texts are plain text */
};

/* Fine-tunes, and saves OUTPUT_DIR/model.  STATUS_PREEMPTED after a signal, with the state saved. */
struct status gpt_finetune_run(const struct gpt_finetune_options *o);

#endif
