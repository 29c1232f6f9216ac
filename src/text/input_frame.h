/* input_frame: the special tokens that a model wants around a text and around a pair of texts, and which of
 * all tokens belong to segment 0.  BERT's are [CLS] A [SEP] and [CLS] A [SEP] B [SEP], where B and its [SEP]
 * are segment 1.
 * The rule: only this file knows where special tokens stand.  A frame is read from the post_processor of
 * Hugging Face's tokenizer.json (https://huggingface.co/docs/tokenizers/api/post-processors), and what cannot
 * be honoured is refused by name. */
#ifndef KILN_TEXT_INPUT_FRAME_H
#define KILN_TEXT_INPUT_FRAME_H

#include "core/json.h"
#include "core/status.h"
#include "text/token_list.h"

enum { INPUT_FRAME_MOST = 4 };

/* Special tokens at one place of a frame. */
struct input_specials {
    int n;
    int32_t ids[INPUT_FRAME_MOST];
};

/* Before A, A, between, B, after.  A form of one text has no B and nothing between. */
struct input_form {
    struct input_specials before, between, after;
    int n_first;           /* number of these special tokens that are in segment 0 */
    bool a_first, b_first; /* whether the texts are in segment 0 */
};

struct input_frame {
    bool given; /* a tokenizer.json gives the frame; else that of its kind is meant */
    struct input_form one, pair;
};

/* One that adds nothing. */
struct input_frame input_frame_bare(void);

/* BERT's, with the ids of [CLS] and [SEP]; and RoBERTa's, <s> A </s> and <s> A </s></s> B </s>, all of
 * segment 0. */
struct input_frame input_frame_bert(int32_t begin, int32_t separator);
struct input_frame input_frame_roberta(int32_t begin, int32_t separator);

/* Reads a post_processor: a TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, or a Sequence
 * of them; NULL or JSON's null gives none.  STATUS_DATA names what kiln does not know; `source` is the
 * file. */
struct status input_frame_parse(struct input_frame *f, const json_t *post_processor, const char *source);

/* STATUS_DATA unless all ids are below `n`, the number of pieces. */
struct status input_frame_check(const struct input_frame *f, int32_t n, const char *source);

/* The frame as a TemplateProcessing; `name` gives the piece of an id, NUL-terminated or cut at *n bytes.
 * NULL if memory runs out. */
json_t *input_frame_to_json(const struct input_frame *f,
                            const char *(*name)(const void *self, int32_t id, size_t *n), const void *self);

/* Whether both put the same tokens at the same places and in the same segments. */
bool input_frame_equal(const struct input_frame *a, const struct input_frame *b);

/* Moves all of segment 1 to segment 0, for a model that has no other. */
void input_form_join(struct input_form *f);

/* The number of special tokens. */
int64_t input_form_n_special(const struct input_form *f);

/* For texts of n_a and n_b tokens (n_b is 0 in a form of one text): the number of tokens in segment 0, and
 * the place of B. */
int64_t input_form_n_first(const struct input_form *f, int64_t n_a, int64_t n_b);
int64_t input_form_second_at(const struct input_form *f, int64_t n_a);

/* Writes the special tokens of a sequence to ids [input_form_n_special + n_a + n_b].  The caller writes text
 * A to ids + before.n, and B to ids + input_form_second_at. */
void input_form_write(const struct input_form *f, int32_t *ids, int64_t n_a, int64_t n_b);

/* Appends the special tokens of one place.  STATUS_MEMORY. */
struct status input_specials_append(struct id_list *out, const struct input_specials *s);

#endif
