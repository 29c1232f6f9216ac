/* embed_input: the tokens of texts of which vectors are wanted: a prompt and the text between the special
 * tokens of the model, and no more than the plan reads. */
#ifndef KILN_SERVE_EMBED_INPUT_H
#define KILN_SERVE_EMBED_INPUT_H

#include "serve/embed_plan.h"

struct embed_input {
    const struct embed_plan *plan; /* borrowed, like tokenizer */
    const struct tokenizer *tokenizer;
    struct encoded_texts texts;
    int64_t *n_skipped;      /* [texts.n] number of each text's first tokens that are not pooled */
    int64_t *order;          /* [texts.n] order of packing: the shortest first */
    int64_t capacity;        /* texts that can be added */
    int64_t n_skipped_whole; /* tokens not pooled of a text that is not cut */
    struct buf bytes;        /* prompt and text together */
};

/* An input without texts, for n_texts of a session of MODEL_TASK_ENCODER.  STATUS_MEMORY.  Fini is safe on a
 * zeroed struct and after a failed init. */
struct status embed_input_init(struct embed_input *in, const struct session *s,
                               struct tokenizer_scratch *scratch, const struct embed_plan *plan,
                               size_t n_texts);
void embed_input_fini(struct embed_input *in);

/* Appends a text.  STATUS_DATA: the plan cuts nothing, and there are too many tokens; or there are none. */
struct status embed_input_add(struct embed_input *in, struct tokenizer_scratch *scratch,
                              const struct text_bytes *text);

/* Appends a text of ids that its caller has made; special tokens are put around it unless it has them.
 * STATUS_DATA also where an id is not one of the vocabulary. */
struct status embed_input_add_ids(struct embed_input *in, struct tokenizer_scratch *scratch,
                                  const int32_t *ids, size_t n);

/* A request for outputs of all texts, which have been added; take gets the number of a text.  The input is
 * borrowed and must not move. */
struct request embed_input_request(struct embed_input *in, unsigned outputs,
                                   struct status (*take)(void *self, int64_t text,
                                                         const tensor outputs[MODEL_N_OUTPUTS]),
                                   void *self);

#endif
