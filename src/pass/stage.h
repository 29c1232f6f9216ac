/* stage: the layer loop.  It runs input layer, layers and heads of a model, or a range of them, forward and
 * backward, over a micro-batch in an activation slot; recomputation, pipelines and overlapped reductions
 * belong here and nowhere else.  A rank may have several ranges (network_config.part), each with slots of its
 * own: a chunk of a pipeline (Narayanan et al. 2021, arXiv:2104.04473, section 2.2).
 *
 * Between stage_begin and the end of a micro-batch nothing allocates or waits for the device, and numbers
 * that change from call to call reach it only in the block of stage_begin, so the work can be recorded once
 * for each capacity and replayed (dev/queue.h), in segments if the host must act between layers.
 *
 * The calls of one micro-batch, where those in brackets run only if stage_graph_begin gives true:
 *
 *     training     stage_begin, stage_graph_begin, [stage_round_weights in the first micro-batch,
 *                  stage_forward, stage_learn, stage_backward, stage_graph_end]
 *     evaluation   stage_begin, stage_round_changed, stage_graph_begin, [stage_forward, stage_measure,
 *                  stage_graph_end]
 *     inference    stage_infer, then stage_head_output
 *     pipeline     two recordings, forward and backward, and stage_select before each: other micro-batches
 *                  run between them in other slots
 *
 * A slot's memory, in the order of carving: block of the batch | input layer | layers | heads | scratch | dx.
 * stage_begin carves it anew for the capacity of its batch, so a tensor that one of these functions returned
 * holds until the next stage_begin of the slot. */
#ifndef KILN_PASS_STAGE_H
#define KILN_PASS_STAGE_H

#include "core/batch.h"
#include "core/param_buckets.h"
#include "dev/peers.h"
#include "dev/precision.h"
#include "nn/model.h"
#include "pass/stage_batch.h"

/* Configuration of a network.  It is stored once: the network, its layer loop and a trainer read it and copy
 * none of it. */
struct network_config {
    const struct model *model; /* borrowed */
    const struct device *device;
    const struct ops *ops;
    struct precision precision;
    struct batch_limits limits; /* limits of every batch */

    /* Fields for training; all zero otherwise. */
    bool learns; /* there is a backward; else inference only */

    /* Layers of a chunk: only its input is kept, and the backward computes its activations again (Chen et al.
     * 2016, arXiv:1604.06174).  0: the activations of all layers are kept. */
    int64_t recompute;

    /* Part of the model that is here (core/param.h); other ranks have the rest.  Each range of layers is run
     * by itself (a chunk).  All zero: the complete model. */
    struct param_part part;

    /* The part.n_slices ranks with slices of the same layers; until their functions are set they only count
     * and exchange nothing (dev/peers.h).  The struct must not move; NULL: there are none. */
    const struct peers *peers;

    /* Ranks with slices of the layers divide the rows of the residual stream, too (nn/stream.h), whose number
     * must be a multiple of the number of ranks in every batch. */
    bool sequence_parallel;

    int64_t n_slots; /* micro-batches in flight, in each range of layers; 0: one */

    /* The heads keep the logits of all words at once, for a caller that reads them; else there is memory for
     * a chunk of them (nn/word_head.h). */
    bool whole_logits;
    bool losses_only; /* inference: the heads leave the losses of labels, and no other output */

    /* Pages of BATCH_PAGE tokens of a cache of keys and values, for sequences that come in several batches
     * (limits.n_pages); 0: there is none. */
    int64_t cache_pages;
};

/* The activations of one micro-batch in flight, in one range of layers. */
struct stage_slot {
    struct param_range range; /* range in network_config.part */
    struct stage_block block; /* the batch on the device */
    void *acts;               /* the model's */
    tensor dx; /* the gradient that flows back through the layers: [T, H], or own rows (nn/stream.h) */
    struct arena arena;    /* memory of all of these */
    struct batch capacity; /* sizes for which the slot was carved */
};

/* Functions that look at the results of a pass: at the activations of the input layer (as layer -1), of a
 * layer or of the heads (as the layer after the last) once their forward is queued, and at the gradients once
 * their backward is.  Later layers may overwrite them.  A recomputation in a backward shows its activations
 * again. */
struct stage_tap {
    void (*activations)(struct stage_tap *tap, int64_t layer);
    void (*gradients)(struct stage_tap *tap, int64_t layer);
    /* scales of fp8 are found anew, not from the histories, which belong to earlier steps */
    bool finds_scales;
};

/* A model and the memory to run it: all that a training step and an evaluation need. */
struct stage {
    struct exec *x;
    const struct network_config *config; /* the network's configuration, with the numbers that 0 stands for */
    const void *weights;
    const void *grads;    /* gradients, with config->learns */
    enum fp8_factors fp8; /* factors of the products of layers */
    /* layers that no backward runs through: the input layer and the layers next to it, counted from below */
    int64_t n_frozen;
    struct stage_slot *slots; /* [ranges * config->n_slots] slots, those of the first range first */
    struct stage_slot *slot;  /* used by the calls below: the first until stage_select */
    tensor histories;         /* f32 [n_layers * n_factors, 2] fp8 histories; null: scales are found */
    const int64_t *version;   /* version of the weights: changes with them */
    int64_t rounded;          /* the version rounded to fp8; 0: none */

    /* Called in a backward for each bucket in order, from the heads down, once the gradients of its layers
     * are queued.  What it queues runs after them; so a recording has a segment for each bucket.  NULL:
     * nobody asks, and a recording is one segment. */
    void (*gradient_done)(void *context, int bucket);
    void *gradient_done_context;
    /* buckets of the layers of this range; they do not change while the stage is used */
    struct param_buckets buckets;

    struct stage_tap *tap; /* NULL: nobody looks, and only then is work recorded */
};

/* Creates the slots, without memory; the caller sets the memory and all other fields.  STATUS_MEMORY. */
struct status stage_init(struct stage *s);
void stage_fini(struct stage *s);

/* Gives each slot its share of the memory of activations; of a measuring arena, a measuring arena. */
void stage_share_arena(struct stage *s, struct arena arena);

/* Selects the range of layers and the slot of the calls below, which has the activations of its last
 * batch. */
void stage_select(struct stage *s, int chunk, int64_t slot);

/* Carves memory for the weights in fp8, which outlives batches. */
void stage_carve_weights(struct stage *s, struct arena *arena);

/* Carves the cache of keys and values (network_config.cache_pages), which outlives batches. */
void stage_carve_cache(struct stage *s, struct arena *arena);

/* Fills tensors that were carved with these and never change (model_type.fill_constants). */
void stage_fill_constants(struct stage *s);

/* Carves memory for the histories of factors in fp8, which outlives steps; nothing without fp8. */
void stage_carve_histories(struct stage *s, struct arena *arena);

/* Ends a step: the largest magnitudes of this step become those of the step before. */
void stage_advance_histories(struct stage *s);

/* Forgets the largest magnitudes of a step that is not taken. */
void stage_forget_histories(struct stage *s);

/* Carves the first slot of each range for the largest batch, and selects the first range's; on a measuring
 * arena, only counts: no batch needs more. */
void stage_carve_largest(struct stage *s);

/* Bytes of all slots, if those of a range are carved like its first. */
size_t stage_bytes(const struct stage *s);

/* Carves for the largest batch, and allocates copies of such a batch, so that no later batch allocates. */
void stage_reserve(struct stage *s);

/* Carves the slot for a batch and sends it to the device with the numbers of its step. */
void stage_begin(struct stage *s, const struct batch *batch, const struct stage_numbers *numbers);

/* Sends the numbers of a step that has no batch on this rank, to where the last batch had its own. */
void stage_send_numbers(struct stage *s, const struct stage_numbers *numbers);

/* Views of the selected slot on the device: the scalars of the update, f64 [OPTIM_N_SCALARS]; the factors of
 * losses, f64 [MODEL_MOST_SUMS]; and a field of the batch. */
tensor stage_scalars(const struct stage *s);
tensor stage_loss_scales(const struct stage *s);
tensor stage_field(const struct stage *s, int field);

/* Begins the work of a batch, or the update after the last, as one recording.  True: the caller must run its
 * ops and then call stage_graph_end; false: they were replayed, and gradient_done was called.  Where ops are
 * watched it is always true. */
enum stage_work {
    STAGE_INFER,
    STAGE_EVALUATE,
    STAGE_TRAIN_FIRST,
    STAGE_TRAIN_NEXT,
    STAGE_FORWARD_FIRST, /* forwards and backwards of a pipeline */
    STAGE_FORWARD_NEXT,
    STAGE_BACKWARD_FIRST,
    STAGE_BACKWARD_NEXT,
    STAGE_UPDATE
};
bool stage_graph_begin(struct stage *s, enum stage_work work);
void stage_graph_end(struct stage *s, enum stage_work work);

/* Rounds the weights of all layers here to fp8; called before the first pass after a change, in the first
 * micro-batch of a step; nothing without fp8. */
void stage_round_weights(struct stage *s);

/* Notes that the queued work has rounded the weights of the present version. */
void stage_weights_rounded(struct stage *s);

/* Rounds the weights to fp8 if they changed since they were rounded last; never part of a recording. */
void stage_round_changed(struct stage *s);

/* An output of the model, after stage_heads; null if its task has no such output. */
tensor stage_head_output(const struct stage *s, enum model_output output);

/* Shows a layer's activations, or the gradients that its backward leaves, those of the input layer and the
 * heads included (model_type.visit). */
void stage_visit(const struct stage *s, int64_t layer, model_visitor *visitor, void *context);
void stage_visit_gradients(const struct stage *s, int64_t layer, model_gradient_visitor *visitor,
                           void *context);

/* The gradient that flows back through the layers, [T, H] or this rank's own rows (nn/stream.h). */
tensor stage_gradient(const struct stage *s);

/* The output of the range's last layer, [T, H] or this rank's own rows (with `learns`, of the model's last
 * layer maybe only what the heads read), and the input of its first: where the range does not begin with the
 * model's first layer, the caller fills it before stage_forward. */
tensor stage_output(const struct stage *s);
tensor stage_input(const struct stage *s);

/* The passes, after stage_begin.  Forward: the input layer and the layers; `training` turns dropout on. */
void stage_forward(struct stage *s, bool training);

/* The heads, after stage_forward; all three do nothing if the range has none.  The first leaves their
 * outputs in the slot; the second adds losses and correct answers to `sums` (f64 [MODEL_MOST_SUMS], those of
 * the model; null where the loss of each label is enough); the third does so too, and begins the backward: it
 * leaves the gradient of the last layer's output in slot->dx. */
void stage_heads(struct stage *s, bool training);
void stage_measure(struct stage *s, tensor sums, bool training);
void stage_learn(struct stage *s, tensor sums, bool adds);

/* Runs the heads for inference: for their outputs or, with network_config.losses_only, for the losses of
 * labels. */
void stage_answer(struct stage *s);

/* Adds the gradients of the range's weights to s->grads; after stage_learn of the same batch, or with the
 * gradient of the range's output in slot->dx.  After it, if the range has no input layer, slot->dx is the
 * gradient of its input.  In the first micro-batch of a step `adds` is false, here and in stage_learn,
 * and gradients that are products are assigned (param.by_product).  gradient_done is called for all buckets
 * but the last, for which stage_graph_end calls it. */
void stage_backward(struct stage *s, bool training, bool adds);

/* Inference: begins with the batch and runs forward without dropout. */
void stage_infer(struct stage *s, const struct batch *batch);

#endif
