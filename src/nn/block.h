/* block: a layer of a transformer, of attention and a feed-forward: its weights and activations, and the ways
 * in which its sublayers are wired, a file each with its equations.
 *
 * Vaswani et al. 2017 (arXiv:1706.03762) section 3.1; Devlin et al. 2018 (arXiv:1810.04805); Radford et al.
 * 2019 section 2.3.
 *
 * Calls: nn/block_model.c has an array of layers and calls the wiring once for each: from the first up in a
 * forward, from the last down in a backward.  Which layers run, and when one is recomputed, is decided in
 * pass/stage.c.
 *
 * Memory: nothing here owns any.  Weights and their gradients view the flat buffers of the network.
 * Activations are carved for each batch from the arena of its activation slot.  In training each layer has a
 * set of its own.  With recomputation of k layers at a time, layer i + k shares the set of layer i, and only
 * every k-th output is kept.  Inference has two sets, which layers use alternately.  All layers share one
 * layer_scratch, so what a layer leaves there is lost in the next one, but for `dh` of block_post_sums.
 *
 * Rows: attention computes all T rows of the batch.  What follows it in the last layer may compute, in
 * training, only the rows that heads read (nn/row_picks.h).  These are then the first rows of the same
 * tensors.  R: the rows of the residual stream that are here, all T or a peer's own (nn/stream.h). */
#ifndef KILN_NN_BLOCK_H
#define KILN_NN_BLOCK_H

#include "nn/feed_forward.h"
#include "nn/self_attention.h"
#include "nn/weights.h"

/* Weights, or their gradients.  The norms are numbered in the order of computation. */
struct block_weights {
    struct norm_weights norm_1;
    struct self_attention_weights attention;
    struct norm_weights norm_2;
    struct feed_forward_weights ff;
};

/* The rows of a table that names every weight of a block but the norms of queries and keys. */
enum { BLOCK_N_ROWS = sizeof(struct block_weights) / sizeof(tensor) - 2 };

/* Results of the forward that the backward reads.  `out` is the input of the layer above, whose backward
 * reads it again: it must hold what the forward left until both backwards have run. */
struct block_acts {
    struct norm_acts norm_1;
    tensor h_1; /* [R, H] what attention reads, if that is not the layer's input; else null */
    struct self_attention_acts attention;
    struct norm_acts norm_2;
    tensor h_2;                /* [R, H] what the feed-forward reads; null where that is norm_2.sum */
    tensor branch_1, branch_2; /* [T, H] the sublayers' outputs where a norm reads them; else null */
    struct feed_forward_acts ff;
    tensor out; /* [R, H] */
};

/* A layer in one pass. */
struct block {
    const struct block_weights *w, *g; /* g: the gradients of w, in a backward */
    const struct block_acts *acts;
    const struct layer_scratch *scratch;
    tensor in;       /* [R, H] `out` of the layer below, or the output of the input layer */
    tensor residual; /* norm_2.sum of the layer below, which block_post_sums reads; null in the first */
    /* norm of the last layer's output, which block_pre may have; else its weights are NULL */
    struct norm norm_out;
};

/* Functions that join the sublayers into a layer. */
struct block_wiring {
    const char *name;   /* name for messages, if a family has another usual wiring: "pre-LN"; else NULL */
    bool hands_on_more; /* a layer reads more of the one below than its output */

    /* Carve a layer's activations; and only those that it passes to the next layer, if it shares the others
     * with another layer. */
    void (*carve)(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                  struct layer_memory memory);
    void (*carve_output)(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                         struct layer_memory memory);

    /* Computes acts->out. */
    void (*forward)(struct exec *x, const struct block *b, const struct layer_call *call);

    /* Turns dx [R, H], the gradient of acts->out, into that of `in`.  The gradients of the weights are added
     * to g; those of matrices are assigned unless call->adds.  The products of weight gradients may still run
     * beside the ops of the next layer (dev/queue.h): the caller joins them before anything overwrites the
     * activations or `in`. */
    void (*backward)(struct exec *x, const struct block *b, tensor dx, const struct layer_call *call);
};

/* A first norm of null is none: attention reads the layer's input (block_pre).
 *
 * post: a norm behind each sublayer and its residual.  post_sums: the same, but the residual stream is that
 * of the sums in front of the norms; its gradient stays in the scratch, as dh, so a backward must run over
 * all layers, from the last down.  pre: a norm in front of each sublayer.  reordered: a norm of each
 * sublayer's output, in front of the residual sum.  parallel: both
 * sublayers read the layer's input, a norm in front of each. */
extern const struct block_wiring block_post, block_post_sums, block_pre, block_reordered, block_parallel;

/* Carves the output, rows of the residual stream: what layers pass on whose norms are in the sublayers. */
void block_carve_output(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                        struct layer_memory memory);

/* Carve what block_post and block_post_sums have: all but the norms; and the output alone. */
void block_post_carve(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                      struct layer_memory memory);
void block_post_carve_output(struct block_acts *a, struct arena *arena, const struct layer_form *form,
                             struct layer_memory memory);

/* Makes `a` share the activations of another layer; it keeps its own weights in fp8 and its cache. */
void block_share(struct block_acts *a, const struct block_acts *of);

/* Views of the rows that a layer computes after its attention: all, or the selected ones. */
struct block_acts block_picked(const struct block_acts *a, const struct row_picks *picks);

/* Returns a->out, marked so that the op that writes it also rounds it for the next layer. */
tensor block_output(const struct block_acts *a, const struct layer_call *call);

/* The sublayers of a layer with these weights and results, and with gradients in a backward. */
struct block_sublayers {
    struct self_attention attention;
    struct feed_forward ff;
    struct norm norm_1, norm_2;
};

/* Views the sublayers of a layer whose norms end one sublayer each. */
struct block_sublayers block_sublayers(const struct block *b, const struct block_acts *a);

#endif
