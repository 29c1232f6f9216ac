/* answer_examples: what a decoder is to answer, from lines of JSON: {"prompt": ..., "completion": ...}, or
 * {"messages": [...]} of OpenAI, whose text a chat template makes.  A prompt and its completion may be lists
 * of messages too, as in TRL.
 *
 * The rule: an example is a row of parts that are in turn context and answer, of which the first may be
 * empty; answers alone have a loss.  Each part is encoded by itself, so that an answer follows the very
 * tokens that `kiln generate` makes of its prompt.  The token that ends a text follows a completion; and the
 * last answer of a conversation, where the template ends it with no such token.
 *
 * Source: "prompt-completion" and "assistant_only_loss" of TRL's SFTTrainer; "weight": 0 of OpenAI, for a
 * message of the assistant without a loss. */
#ifndef KILN_DATA_GPT_ANSWER_EXAMPLES_H
#define KILN_DATA_GPT_ANSWER_EXAMPLES_H

#include "text/chat_template.h"
#include "text/tokenizer.h"

/* An example: part k is ids[ends[k - 1] .. ends[k]), and an answer if k is odd. */
struct answer_example {
    const int32_t *ids; /* [ends[n_parts - 1]] */
    const int64_t *ends;
    int64_t n_parts;
};

struct answer_counts {
    int64_t n_examples, n_tokens, n_learned; /* examples, their tokens, and those with a loss */
    int64_t n_cut, n_without;                /* cut at the limit; left out, for the limit cut all answers */
    int64_t longest;                         /* tokens of the longest example */
};

struct answer_reading {
    struct tokenizer_scratch *scratch;
    const struct chat_template *chat; /* NULL: there is none, and a line with messages fails by `no_chat` */
    struct status no_chat;
    int64_t limit;               /* most tokens of an example: the rest is cut */
    struct answer_counts counts; /* so far */
    struct status (*take)(void *self, const struct answer_example *e);
    void *self;
};

/* Whether the first line of a file of lines of JSON is such an example, not a text with the key text_field;
 * NULL: "text".  STATUS_DATA: it is neither. */
struct status answer_examples_found(bool *found, const char *path, const char *text_field);

/* Reads all examples of a file.  STATUS_DATA names file, line and key. */
struct status answer_examples_read(struct answer_reading *r, const char *path);

/* Appends an example as one line of text, with >>> and <<< around its answers; long parts are shown by both
 * ends. */
struct status answer_examples_show(struct buf *out, const struct tokenizer *t,
                                   const struct answer_example *e);

#endif
