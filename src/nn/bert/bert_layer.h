/* bert_layer: a layer of BERT: its weights and activations, and the two ways in which its sublayers are
 * wired: post-LN (nn/bert/bert_layer_post.c) and pre-LN (nn/bert/bert_layer_pre.c).
 *
 * Vaswani et al. 2017 (arXiv:1706.03762) section 3.1; Devlin et al. 2018 (arXiv:1810.04805).
 *
 * Calls: nn/bert/bert_model.c has an array of layers and calls the wiring once for each: from the first up in
 * a forward, from the last down in a backward.  Which layers run, and when one is recomputed, is decided in
 * pass/stage.c.
 *
 * Memory: nothing here owns any.  Weights and their gradients view the flat buffers of the network.
 * Activations are carved for each batch from the arena of its activation slot.  In training each layer has a
 * set of its own.  With recomputation of k layers at a time, layer i + k shares the set of layer i, and only
 * every k-th output is kept.  Inference has two sets, which layers use alternately.  All layers share one
 * layer_scratch, so what a layer leaves there is lost in the next one, but for `dh` of pre-LN layers.
 *
 * Rows: attention computes all T rows of the batch.  What follows it in the last layer may compute, in
 * training, only the R rows that heads read (nn/row_picks.h).  These are then the first R rows of the same
 * tensors. */
#ifndef KILN_NN_BERT_LAYER_H
#define KILN_NN_BERT_LAYER_H

#include "nn/feed_forward.h"
#include "nn/self_attention.h"
#include "nn/weights.h"

/* Weights, or their gradients. */
struct bert_layer_weights {
    struct self_attention_weights attention;
    struct norm_weights norm_1;
    struct feed_forward_weights ff;
    struct norm_weights norm_2;
};

extern const struct weight_row bert_layer_rows[];
enum { BERT_LAYER_N_ROWS = sizeof(struct bert_layer_weights) / sizeof(tensor) };

/* Activations: results of the forward that the backward reads.  In a pre-LN layer the forward reads the sums
 * too.  `out` is the input of the layer above, whose backward reads it again: it must hold what the forward
 * left until both backwards have run. */
struct bert_layer_acts {
    struct self_attention_acts attention;
    struct norm_acts norm_1;
    tensor h; /* [T, H] */
    struct feed_forward_acts ff;
    struct norm_acts norm_2;
    tensor out; /* [T, H] */
};

/* Carve a layer's activations without the norms'; those of the norms; and only its output, if it shares the
 * others with another layer. */
void bert_layer_carve(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                      struct layer_memory memory);
void bert_layer_carve_norms(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                            struct layer_memory memory);
void bert_layer_carve_output(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                             struct layer_memory memory);

/* Makes `a` share the activations of another layer; it keeps its own weights in fp8. */
void bert_layer_share_acts(struct bert_layer_acts *a, const struct bert_layer_acts *of);

/* Views of the rows that a layer computes after its attention: all, or the selected ones. */
struct bert_layer_acts bert_layer_picked(const struct bert_layer_acts *a, const struct row_picks *picks);

/* Returns a->out, marked so that the op that writes it also rounds it for the next layer. */
tensor bert_layer_output(const struct bert_layer_acts *a, const struct layer_call *call);

/* Inputs of a layer. */
struct bert_layer_io {
    tensor in;       /* [T, H] `out` of the layer below, or the output of the input layer */
    tensor residual; /* [T, H] the sum of the layer below, in pre-LN layers; null in the first */
};

/* Functions that join the sublayers into a layer. */
struct bert_layer_wiring {
    /* Carve a layer's activations; and only those that it passes to the next layer, if it shares the others
     * with another layer. */
    void (*carve_acts)(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                       struct layer_memory memory);
    void (*carve_output)(struct bert_layer_acts *a, struct arena *arena, const struct layer_form *form,
                         struct layer_memory memory);

    /* Computes a->out = layer(in). */
    void (*forward)(struct exec *x, const struct bert_layer_acts *a, const struct layer_scratch *s,
                    struct bert_layer_io io, const struct bert_layer_weights *w,
                    const struct layer_call *call);

    /* Turns dx [T, H], the gradient of a->out, into that of `in`.  The gradients of the weights are added to
     * g; those of matrices are assigned unless call->adds.  The products of weight gradients may still run
     * beside the ops of the next layer (dev/queue.h): the caller joins them before anything overwrites `a` or
     * `in`. */
    void (*backward)(struct exec *x, tensor dx, const struct bert_layer_weights *g,
                     const struct layer_scratch *s, const struct bert_layer_acts *a, tensor in,
                     const struct bert_layer_weights *w, const struct layer_call *call);
};

/* In pre-LN layers the gradient of the residual stream stays in the scratch, as dh, from the last layer to
 * the first: a backward must run over all layers, from the last down. */
extern const struct bert_layer_wiring bert_layer_post, bert_layer_pre;

/* The sublayers of a layer with these weights, gradients (NULL in a forward) and results. */
struct bert_sublayers {
    struct self_attention attention;
    struct feed_forward ff;
    struct norm norm_1, norm_2;
};

/* Views the sublayers of a layer; g is NULL in a forward. */
struct bert_sublayers bert_layer_sublayers(const struct bert_layer_weights *w,
                                           const struct bert_layer_weights *g,
                                           const struct bert_layer_acts *a);

#endif
