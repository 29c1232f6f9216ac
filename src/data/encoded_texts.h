/* encoded_texts: texts, pairs of texts and windows of texts as sequences of tokens, with their labels: what
 * a model is fine-tuned on and what it predicts.
 *
 * The rule: a text is tokenized once, and a sequence is one or two ranges of tokens in the tokenizer's
 * frame, such as [CLS] a [SEP] b [SEP]; windows of a text share its tokens.  A pair that is too long loses
 * the ends of its longer text, both where both are, as `transformers`' truncation "longest_first" cuts; or
 * the beginnings. */
#ifndef KILN_DATA_ENCODED_TEXTS_H
#define KILN_DATA_ENCODED_TEXTS_H

#include "core/buf.h"
#include "data/example_source.h"
#include "text/tokenizer.h"

/* The part that a text of too many tokens loses; TEXT_CUT_NOTHING: it is refused. */
enum text_cut { TEXT_CUT_END, TEXT_CUT_BEGINNING, TEXT_CUT_NOTHING };

struct token_range {
    int64_t first, n;
};

struct encoded_text {
    struct token_range a, b; /* ranges of `ids` */
    bool is_pair;
    int64_t row; /* tokens of the sequences before it, special ones included */
};

struct encoded_texts {
    struct input_frame frame; /* special tokens of the tokenizer */
    int64_t limit;            /* tokens of a sequence, special ones included */
    enum text_cut cut;        /* the ends are lost, unless the caller sets it */
    bool of_tokens;           /* `width` labels for each token of ids; else for each sequence */
    int64_t width;            /* 1, unless the caller sets it; 0: there are no labels */
    struct id_list ids;
    struct buf texts;  /* struct encoded_text */
    struct buf labels; /* int32_t, or the bits of float: as the batch's field TEXT_CLASS_LABELS has
                                   * them; empty where nothing has a label */
    int64_t n, n_rows, max_length; /* sequences, tokens of all, and of the longest */
    int64_t n_cut;                 /* texts that were too long */
};

/* An empty list.  STATUS_DATA: the vocabulary lacks what frames `what`, for messages. */
struct status encoded_texts_init(struct encoded_texts *t, const struct tokenizer *tokenizer, int64_t limit,
                                 const char *what);
void encoded_texts_fini(struct encoded_texts *t);

/* Appends the tokens of a text to ids.  STATUS_MEMORY. */
struct status encoded_texts_tokenize(struct encoded_texts *t, struct token_range *tokens,
                                     struct tokenizer_scratch *scratch, struct text_bytes text);

/* Appends a sequence of these tokens, which fit; `b` is NULL unless it is a pair.  STATUS_MEMORY. */
struct status encoded_texts_add_tokens(struct encoded_texts *t, struct token_range a,
                                       const struct token_range *b);

/* Appends text a, with `b` after it unless that is NULL, and cuts what is too long.  STATUS_USAGE: the
 * special tokens alone are more than the limit.  STATUS_DATA: nothing is to be cut, and it is too long. */
struct status encoded_texts_add(struct encoded_texts *t, struct tokenizer_scratch *scratch,
                                struct text_bytes a, const struct text_bytes *b);

/* Appends a sequence of tokens in ids, and cuts what is too long; `b` is NULL unless it is a pair.
 * STATUS_DATA: nothing is to be cut, and it is too long; or it has no tokens.  STATUS_MEMORY. */
struct status encoded_texts_fit(struct encoded_texts *t, struct token_range a, const struct token_range *b);

/* Lengths of two texts after truncation to `room` tokens in all. */
void encoded_texts_cut(int64_t *a, int64_t *b, int64_t room);

/* Moves to the next window of n tokens, at most `room` in each and `step` from one to the next, from a
 * zeroed range on; false after the last. */
bool encoded_texts_next_window(struct token_range *window, int64_t n, int64_t room, int64_t step);

/* Sequence i; borrowed until the next is added. */
const struct encoded_text *encoded_texts_get(const struct encoded_texts *t, int64_t i);

/* Number of tokens of sequence i; number of those in segment 0; place of text b in the sequence. */
int64_t encoded_texts_length(const struct encoded_texts *t, int64_t i);
int64_t encoded_texts_first_length(const struct encoded_texts *t, int64_t i);
int64_t encoded_texts_second_at(const struct encoded_texts *t, int64_t i);

/* Writes ids[length]. */
void encoded_texts_write(const struct encoded_texts *t, int64_t i, int32_t *ids);

/* Appends sequence i to a batch, without labels, and returns the place of its tokens there. */
int32_t *encoded_texts_append(const struct encoded_texts *t, int64_t i, int32_t key, struct batch *out);

/* A source of examples with their labels; `name` is for messages.  Borrows the texts. */
struct example_source encoded_texts_source(const struct encoded_texts *t, const char *name);

#endif
