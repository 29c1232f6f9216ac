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
extern const struct weight_row distilbert_embed_rows[]; /* the same without `type`, which is then null */
enum {
    BERT_EMBED_N_ROWS = sizeof(struct bert_embed_weights) / sizeof(tensor),
    DISTILBERT_EMBED_N_ROWS = BERT_EMBED_N_ROWS - 1
};

struct bert_embed_acts {
    struct norm_acts norm; /* null without a backward, where one op does all */
    tensor out;            /* [T, H] */
};

/* Carves the activations of one batch; in_steps: words are in slices, or segments have no table. */
void bert_embed_carve_acts(struct bert_embed_acts *a, struct arena *arena, const struct layer_form *form,
                           struct layer_memory memory, bool in_steps);

/* Computes a->out = dropout(LN(word[id] + position[p] + type[segment])), without the last term where `type`
 * is null; n_words are the rows of `word` on
 * all peers, which have a slice of them each. */
void bert_embed_forward(struct exec *x, const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                        const struct layer_call *call, int64_t n_words);

/* Adds the gradients of the weights to g; dx is the gradient of a->out and is overwritten. */
void bert_embed_backward(struct exec *x, tensor dx, const struct bert_embed_weights *g,
                         const struct bert_embed_acts *a, const struct bert_embed_weights *w,
                         const struct layer_call *call, int64_t n_words);

#endif
