/* pair_encoder: a text, or a pair of them, as a classifier reads it: [CLS] a [SEP], and b [SEP] behind it as
 * segment 1.
 *
 * The rule: a pair that is too long loses the ends of its longer text, both where both are, as
 * `transformers`' truncation "longest_first" cuts; or the beginnings. */
#ifndef KILN_DATA_PAIR_ENCODER_H
#define KILN_DATA_PAIR_ENCODER_H

#include "data/labelled_texts.h"
#include "text/tokenizer.h"

/* What a text of too many tokens loses; TEXT_CUT_NOTHING: it is refused. */
enum text_cut { TEXT_CUT_END, TEXT_CUT_BEGINNING, TEXT_CUT_NOTHING };

struct pair_encoder {
    struct tokenizer_scratch *scratch; /* borrowed */
    struct input_frame frame;          /* of the tokenizer */
    int64_t max_length;                /* tokens of a text, special ones included */
    enum text_cut cut;                 /* the ends are lost, unless the caller sets it */
    int64_t n_cut;                     /* texts that were too long */
    struct id_list a, b, whole;        /* of the text under way */
};

/* STATUS_DATA: the vocabulary lacks what frames a text. */
struct status pair_encoder_init(struct pair_encoder *e, struct tokenizer_scratch *scratch,
                                int64_t max_length);
void pair_encoder_fini(struct pair_encoder *e);

/* Appends text a, with `b` behind it unless that is NULL, and its labels (labelled_texts_add). STATUS_USAGE:
 * max_length leaves no room for the special tokens. STATUS_DATA: nothing is to be cut, and it is too long. */
struct status pair_encoder_add(struct pair_encoder *e, struct labelled_texts *out, struct text_bytes a,
                               const struct text_bytes *b, const int32_t *labels);

/* Lengths of two texts after truncation to `room` tokens in all. */
void pair_encoder_cut(int64_t *a, int64_t *b, int64_t room);

#endif
