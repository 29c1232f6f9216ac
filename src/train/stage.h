/* stage: the layer loop.  It runs embeddings, layers and heads of a micro-batch in a slot of activations,
 * forward and backward; recomputation, pipelines and overlapped reductions belong here and nowhere else. */
#ifndef KILN_TRAIN_STAGE_H
#define KILN_TRAIN_STAGE_H

#include "data/bert_batch.h"
#include "nn/bert.h"

/* The activations of one micro-batch in flight. */
struct stage_slot {
    struct bert_stream stream; /* the batch on the device */
    struct bert_embed_acts embed;
    struct bert_layer_acts *layers; /* [num_hidden_layers] */
    struct bert_head_acts heads;    /* of the task: the others are null tensors */
    struct bert_qa_acts qa;
    struct bert_layer_scratch scratch;
    tensor dx; /* [T, H] the gradient that flows back through the layers */
};

/* A model with the memory to run it: what a training step and an evaluation need. */
struct stage {
    struct exec *x;
    const struct bert_config *config;
    enum bert_task task;
    const struct bert_weights *weights;
    const struct bert_weights *grads; /* NULL: inference only */
    enum dtype dtype;                 /* of activations */
    int64_t
        recompute; /* layers of a chunk; only its input is kept, its activations are made again in backward
                        * (Chen et al. 2016, arXiv:1604.06174); 0: the activations of all layers are kept */
    struct arena arena; /* activations of the slot */
    struct stage_slot slot;
};

/* Room for the slot's array of layers; the arena and the rest are set by the caller. */
struct status stage_init(struct stage *s);
void stage_fini(struct stage *s);

/* Carves a slot for a batch of these sizes and sets its stream's shapes; on a measuring arena, only counts.
 */
void stage_carve(struct stage *s, const struct bert_batch *batch);

/* Bytes that stage_carve needs for every batch within the limits. */
size_t stage_bytes(struct stage *s, struct bert_batch_limits limits);

/* A batch of exactly these limits without arrays: for planning. */
struct bert_batch stage_largest_batch(struct bert_batch_limits limits);

/* Copies the batch to the device and runs forward; `training` turns dropout on.  Logits stay in slot.heads.
 */
void stage_forward(struct stage *s, const struct bert_batch *batch, bool training);

/* Adds losses and correct answers to metrics (f64 [BERT_N_METRICS]) and leaves the gradients of the logits.
 */
void stage_loss(struct stage *s, tensor metrics, struct bert_loss_scale scale);

/* Adds the gradients of all weights to s->grads; after stage_loss of the same batch. */
void stage_backward(struct stage *s, bool training);

#endif
