/* toy_model: the smallest model that trains: an embedding, one layer and a head for the next token.  It is
 * the example of docs/howto/add_a_model.md, steps 1 to 4.
 *
 *     x = E[id],  y = LN(x + gelu(x W_1^T + b_1) W_2^T + b_2),  logits = y E^T
 *
 * There is no attention, so it learns which token follows which, and no more. */
#ifndef KILN_TESTS_TOY_MODEL_H
#define KILN_TESTS_TOY_MODEL_H

#include "nn/model.h"

/* Its config.json. */
struct toy_config {
    int64_t vocab_size, hidden_size, intermediate_size, max_position_embeddings;
    int64_t n_words;            /* of the vocabulary; not in the file */
    struct model_labels labels; /* none */
};

/* The same arguments as model_family.create. */
struct status toy_model_create(struct model **model, const void *config, enum model_task task);

#endif
