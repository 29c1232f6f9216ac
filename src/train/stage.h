/* stage: the layer loop.  It runs input, layers and heads of a model over a micro-batch in a slot of activations,
 * forward and backward; recomputation, pipelines and overlapped reductions belong here and nowhere else.
 *
 * Between stage_begin and the end of a micro-batch nothing allocates, waits for the device or passes it a
 * number that changes from call to call but in the block of stage_begin, so the work can be recorded once for
 * each capacity and replayed (dev/queue.h). */
#ifndef KILN_TRAIN_STAGE_H
#define KILN_TRAIN_STAGE_H

#include "nn/model.h"
#include "train/stage_batch.h"

/* The activations of one micro-batch in flight. */
struct stage_slot {
    struct stage_block block; /* the batch on the device */
    void *acts;               /* the model's */
    tensor dx;                /* [T, H] the gradient that flows back through the layers */
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
    struct arena arena;         /* activations of the slot */
    struct stage_slot slot;
    struct batch capacity;  /* what the slot was carved for */
    const int64_t *version; /* of the weights: another number after each change */
    int64_t rounded;        /* the version that is in fp8; 0: none */

    /* Told of the model's input layer, as layer -1, of each layer once its forward was given, and of the heads, as the
     * layer behind the last; NULL: nobody asks. */
    void (*layer_done)(void *context, int64_t layer);
    void *layer_done_context;
};

/* The views of the slot; the arena and the rest are set by the caller. */
struct status stage_init(struct stage *s);
void stage_fini(struct stage *s);

/* Room for the weights in fp8, which outlives batches. */
void stage_carve_weights(struct stage *s, struct arena *arena);

/* Carves the slot for the largest batch; on a measuring arena, only counts: no batch needs more. */
void stage_carve_largest(struct stage *s);

/* The same, and makes room for copies of such a batch, so that no later one allocates. */
void stage_reserve(struct stage *s);

/* Carves the slot for a batch and sends it to the device with the numbers of its step. */
void stage_begin(struct stage *s, const struct batch *batch, const struct stage_numbers *numbers);

/* The work of a batch, or the update after the last, as one piece: true if its ops must now be given, and then
 * queue_graph_end; false if they were replayed.  Where ops are watched they are always given. */
enum stage_work { STAGE_INFER, STAGE_EVALUATE, STAGE_TRAIN_FIRST, STAGE_TRAIN_NEXT, STAGE_UPDATE };
bool stage_graph_begin(struct stage *s, enum stage_work work);

/* Rounds the weights of all layers to fp8, before the first pass after they have changed, as the first micro-batch of a step
 * does; nothing without fp8. */
void stage_round_weights(struct stage *s);

/* The same, of weights that are not what was rounded last; outside of what is recorded. */
void stage_round_changed(struct stage *s);

/* The passes, after stage_begin.  Forward; `training` turns dropout on.  Logits stay in the slot. */
tensor stage_head_output(const struct stage *s, int output);

/* What the last layer gives, [T, H]. */
tensor stage_output(const struct stage *s);
void stage_forward(struct stage *s, bool training);

/* Adds losses and correct answers to `sums` (f64 [MODEL_MOST_SUMS], those of the model) and leaves the gradients of the
 * logits. */
void stage_loss(struct stage *s, tensor sums);

/* Adds the gradients of all weights to s->grads; after stage_loss of the same batch.  Where nothing was there before,
 * in the first micro-batch of a step, `adds` is false and those that are products are assigned (param.by_product). */
void stage_backward(struct stage *s, bool training, bool adds);

/* All that an answer needs: begins with the batch and runs forward without dropout. */
void stage_infer(struct stage *s, const struct batch *batch);

#endif
