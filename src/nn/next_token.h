/* next_token: the head of a decoder, which predicts the token behind each one that is read, y the last
 * layer's output:
 *
 *     z = LN_f(y);  logits = z E^T
 *
 * LN_f is the norm of the form, or nothing; E the word embeddings, or a matrix of its own.
 *
 * A family's struct of weights begins with a struct next_token_weights, its struct of activations with a
 * struct next_token_acts. */
#ifndef KILN_NN_NEXT_TOKEN_H
#define KILN_NN_NEXT_TOKEN_H

#include "nn/block_model.h"
#include "nn/word_head.h"

/* Weights, or their gradients. */
struct next_token_weights {
    struct block_weight_table table; /* first */
    tensor word;                     /* [V, H] E */
    tensor decoder;                  /* [V, H] the matrix of the last product; null: E */
    struct norm_weights norm_out;    /* LN_f; null: there is none */
};

struct next_token_acts {
    struct block_stack stack; /* first */
    tensor read, z, dz;       /* [M, H] the rows of y that are read, their norm, and its gradient */
    struct norm_acts norm;
    struct word_head_acts head;
};

/* Functions of struct model_type. */
void next_token_carve(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                      const struct batch *sizes);
void next_token_forward(const struct model_pass *p);
void next_token_measure(const struct model_pass *p, tensor sums);
void next_token_learn(const struct model_pass *p, tensor dx, tensor sums);
tensor next_token_output(const void *acts, enum model_output output);
void next_token_visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                      void *context);

/* Rows of a struct model_type. */
#define NEXT_TOKEN_FUNCTIONS                                                                                 \
    .carve_heads = next_token_carve, .heads_forward = next_token_forward,                                    \
    .heads_measure = next_token_measure, .heads_learn = next_token_learn, .head_output = next_token_output,  \
    .visit = next_token_visit, .visit_gradients = block_model_visit_gradients

#endif
