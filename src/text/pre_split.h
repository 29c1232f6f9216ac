/* pre_split: where a pre_tokenizer of tokenizer.json cuts a text into pieces, by steps, of which each cuts
 * what the one before has left (https://huggingface.co/docs/tokenizers/api/pre-tokenizers).
 *
 * The rule: the pieces are those of Hugging Face's `tokenizers`; each step sees one piece and nothing
 * beside it.  Where a step is a regular expression, a run of bytes that are no UTF-8 is a piece. */
#ifndef KILN_TEXT_PRE_SPLIT_H
#define KILN_TEXT_PRE_SPLIT_H

#include "core/json.h"
#include "text/split_regex.h"

#include <stdint.h>

enum pre_split_kind {
    PRE_SPLIT_GPT2,   /* matches are the pieces of bpe_split.h */
    PRE_SPLIT_BLOOM,  /* the same */
    PRE_SPLIT_REGEX,  /* matches of an expression */
    PRE_SPLIT_DIGIT,  /* each numeral is a match: Unicode's categories N* */
    PRE_SPLIT_NUMBER, /* each run of them is one */
};

/* What becomes of a match, and of what lies between two. */
enum pre_split_behavior {
    PRE_SPLIT_ISOLATED, /* a piece each */
    PRE_SPLIT_REMOVED,  /* matches vanish */
    PRE_SPLIT_TO_PREVIOUS,
    PRE_SPLIT_TO_NEXT,
    PRE_SPLIT_CONTIGUOUS, /* adjacent matches are one piece */
};

struct pre_split_step {
    enum pre_split_kind kind;
    enum pre_split_behavior behavior;
    bool invert; /* what lies between the matches is meant */
    struct split_regex *regex;
};

enum { PRE_SPLIT_MOST = 16 };

struct pre_split {
    struct pre_split_step steps[PRE_SPLIT_MOST]; /* [n] */
    int n;
    bool has_regex;
};

/* Reads a pre_tokenizer that ends with ByteLevel, which itself may cut by GPT-2's pattern.  STATUS_DATA names
 * what kiln does not know, or would do otherwise. */
struct status pre_split_read(struct pre_split *p, const json_t *pre_tokenizer, const char *source);

/* Safe on a zeroed struct and after a failed read. */
void pre_split_fini(struct pre_split *p);

/* Takes text[begin..end), a piece. */
struct pre_split_sink {
    struct status (*take)(void *self, const char *text, size_t begin, size_t end);
    void *self;
};

/* Gives the sink the pieces of text[0..n), any bytes, in their order.  STATUS_DATA as split_regex_find says,
 * and what the sink returns. */
struct status pre_split_each(const struct pre_split *p, struct split_regex_scratch *regex, const char *text,
                             size_t n, const struct pre_split_sink *sink);

#endif
