/* stage: the layer loop.  It runs input, layers and heads of a model, or a range of them, over a micro-batch in a slot of
 * activations, forward and backward; recomputation, pipelines and overlapped reductions belong here and nowhere else.
 *
 * Between stage_begin and the end of a micro-batch nothing allocates, waits for the device or passes it a
 * number that changes from call to call but in the block of stage_begin, so the work can be recorded once for
 * each capacity and replayed (dev/queue.h). */
#ifndef KILN_PASS_STAGE_H
#define KILN_PASS_STAGE_H

#include "nn/model.h"
#include "pass/stage_batch.h"

/* The activations of one micro-batch in flight. */
struct stage_slot {
    struct stage_block block; /* the batch on the device */
    void *acts;               /* the model's */
    tensor dx;                /* [T, H] the gradient that flows back through the layers */
    struct arena arena;       /* of all of these */
    struct batch capacity;    /* what they were carved for */
};

/* A model with the memory to run it: what a training step and an evaluation need. */
struct stage {
    struct exec *x;
    const struct model *model;
    const void *weights;
    const void *grads;    /* with `learns` */
    bool learns;          /* there is a backward; else inference only */
    enum dtype dtype;     /* of activations */
    enum fp8_factors fp8; /* of the products of layers */
    int64_t
        recompute; /* layers of a chunk; only its input is kept, its activations are made again in backward
                        * (Chen et al. 2016, arXiv:1604.06174); 0: the activations of all layers are kept */
    struct batch_limits limits; /* of every batch */
    int64_t first,
        end; /* of the model's layers, [first, end) run here; the input layer with the first of them, the
                                 * heads with the last; elsewhere what they would compute comes from another stage */
    int64_t n_slots;          /* micro-batches in flight */
    struct stage_slot *slots; /* [n_slots] */
    struct stage_slot *slot;  /* the one that the calls below are about: the first until stage_select */
    tensor histories;         /* f32 [n_layers * n_factors, 2] of factors in fp8; null: scales are found */
    const int64_t *version;   /* of the weights: another number after each change */
    int64_t rounded;          /* the version that is in fp8; 0: none */

    /* Told of the model's input layer, as layer -1, of each layer once its forward was given, and of the heads, as the
     * layer behind the last; NULL: nobody asks. */
    void (*layer_done)(void *context, int64_t layer);
    void *layer_done_context;

    /* Told in a backward, of the heads, each layer and the input layer in this order, that their gradients have been
     * given; NULL: nobody asks, and only then is work recorded. */
    void (*gradient_done)(void *context, int64_t layer);
    void *gradient_done_context;
};

/* The slots, without memory; it and the rest are set by the caller. */
struct status stage_init(struct stage *s);
void stage_fini(struct stage *s);

/* Gives each slot its share of the memory of activations; of a measuring arena, a measuring arena. */
void stage_share_arena(struct stage *s, struct arena arena);

/* Which slot the calls below are about; its activations are those of its last batch. */
void stage_select(struct stage *s, int64_t slot);

/* Room for the weights in fp8, which outlives batches. */
void stage_carve_weights(struct stage *s, struct arena *arena);

/* Room for what is known of factors in fp8, which outlives steps; nothing without fp8. */
void stage_carve_histories(struct stage *s, struct arena *arena);

/* At the end of a step what was the largest in it becomes the largest in the step before. */
void stage_advance_histories(struct stage *s);

/* Carves the slot for the largest batch; on a measuring arena, only counts: no batch needs more. */
void stage_carve_largest(struct stage *s);

/* What all slots take that are carved as this one is. */
size_t stage_bytes(const struct stage *s);

/* Carves the slot for the largest batch, and makes room for copies of such a batch, so that no later one allocates. */
void stage_reserve(struct stage *s);

/* Carves the slot for a batch and sends it to the device with the numbers of its step. */
void stage_begin(struct stage *s, const struct batch *batch, const struct stage_numbers *numbers);

/* The work of a batch, or the update after the last, as one piece: true if its ops must now be given, and then
 * queue_graph_end; false if they were replayed.  Where ops are watched they are always given. */
enum stage_work {
    STAGE_INFER,
    STAGE_EVALUATE,
    STAGE_TRAIN_FIRST,
    STAGE_TRAIN_NEXT,
    STAGE_FORWARD_FIRST, /* of a pipeline */
    STAGE_FORWARD_NEXT,
    STAGE_BACKWARD_FIRST,
    STAGE_BACKWARD_NEXT,
    STAGE_UPDATE
};
bool stage_graph_begin(struct stage *s, enum stage_work work);

/* Rounds the weights of all layers to fp8, before the first pass after they have changed, as the first micro-batch of a step
 * does; nothing without fp8. */
void stage_round_weights(struct stage *s);

/* The same, of weights that are not what was rounded last; outside of what is recorded. */
void stage_round_changed(struct stage *s);

/* The passes, after stage_begin.  Forward; `training` turns dropout on.  Logits stay in the slot. */
tensor stage_head_output(const struct stage *s, int output);

/* What the last layer of the range gives, [T, H], and what the first reads: where the range does not begin with the
 * model, that is to be there before stage_forward. */
tensor stage_output(const struct stage *s);
tensor stage_input(const struct stage *s);
void stage_forward(struct stage *s, bool training);

/* Adds losses and correct answers to `sums` (f64 [MODEL_MOST_SUMS], those of the model) and leaves the gradients of the
 * logits.  Nothing where the range is without the heads. */
void stage_loss(struct stage *s, tensor sums);

/* Adds the gradients of the range's weights to s->grads; after stage_loss of the same batch.  Where the range is without the
 * heads, slot->dx is to be the gradient of its output before; behind, where it does not begin with the model, it is that of
 * its input.  Where nothing was there before,
 * in the first micro-batch of a step, `adds` is false and those that are products are assigned (param.by_product). */
void stage_backward(struct stage *s, bool training, bool adds);

/* All that an answer needs: begins with the batch and runs forward without dropout. */
void stage_infer(struct stage *s, const struct batch *batch);

#endif
