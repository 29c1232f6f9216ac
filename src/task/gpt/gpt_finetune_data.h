/* gpt_finetune_data: what a decoder is fine-tuned on becomes a store of tokens, by the model's own tokenizer:
 * texts, or examples with answers (data/gpt/answer_examples.h).
 *
 * The rule: files are texts or examples, all of them; the first line of the first file of lines of JSON says
 * which.  Of a folder, files that are neither are left out with a warning. */
#ifndef KILN_TASK_GPT_FINETUNE_DATA_H
#define KILN_TASK_GPT_FINETUNE_DATA_H

#include "core/option.h"
#include "task/gpt/gpt_pretrain.h"

struct gpt_finetune_data {
    const struct tokenizer *tokenizer;
    const struct option_words *files; /* files and folders */
    const char *text_field; /* key of the text in a line of JSON; NULL: "text", where it is no example */
    int64_t length;         /* most tokens of an example */
};

/* Writes the store PREFIX; one that is there must be of an earlier run, or of the same text.  STATUS_DATA
 * names file, line and key. */
struct status gpt_finetune_data_write(const struct gpt_finetune_data *d, const char *prefix);

/* Reads everything and tells what the store would hold; measures it with this split. */
struct status gpt_finetune_data_count(const struct gpt_finetune_data *d, struct gpt_samples *samples,
                                      const char *prefix, const char *split);

#endif
