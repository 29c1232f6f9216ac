/* bert_embed: the input of BERT, the sum of word, position and segment embeddings, normalised.
 * Devlin et al. 2018 (arXiv:1810.04805), figure 2. */
#ifndef KILN_NN_BERT_EMBED_H
#define KILN_NN_BERT_EMBED_H

#include "nn/layer.h"
#include "nn/weights.h"

struct bert_embed_weights {
    tensor word;        /* [V, H], also the decoder of the MLM head */
    tensor position;    /* [P, H] */
    tensor type;        /* [S, H] */
    tensor gamma, beta; /* [H] */
};

extern const struct weight_row bert_embed_rows[];
enum { BERT_EMBED_N_ROWS = sizeof(struct bert_embed_weights) / sizeof(tensor) };

struct bert_embed_acts {
    struct norm_acts norm; /* null without a backward, where all words are here */
    tensor out;            /* [T, H] */
};

/* Carves the activations of one batch. */
void bert_embed_carve_acts(struct bert_embed_acts *a, struct arena *arena, const struct layer_form *form,
                           struct layer_memory memory, bool in_slices);

/* Computes a->out = dropout(LN(word[id] + position[p] + type[segment])); n_words are the rows of `word` on
 * all peers, which have a slice of them each. */
void bert_embed_forward(struct exec *x, const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                        const struct layer_call *call, int64_t n_words);

/* Adds the gradients of the weights to g; dx is the gradient of a->out and is overwritten. */
void bert_embed_backward(struct exec *x, tensor dx, const struct bert_embed_weights *g,
                         const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                         const struct layer_call *call, int64_t n_words);

#endif
