/* model: all that the engine (train/), the loaders and the checkpoints know of a model: a few numbers and a table of
 * functions, which nn/bert_model.c fills for BERT.
 *
 * A model is an input layer, `n_layers` layers of one kind, and heads.  Passes run over a range of them; the loop over
 * layers is the engine's (train/stage.h), so recomputation, pipelines and overlap need nothing of a model.
 *
 * The rule: a model has no memory of its own.  `acts` views what the engine carved for one micro-batch in flight,
 * `weights` and `grads` view flat buffers of the parameters' layout. */
#ifndef KILN_NN_MODEL_H
#define KILN_NN_MODEL_H

#include "core/arena.h"
#include "core/json.h"
#include "core/param.h"
#include "nn/linear.h"
#include "nn/stream.h"

enum { MODEL_MOST_SUMS = 8, MODEL_INPUT_LAYER = -1 };

/* What a step or an evaluation adds up on the device.  A loss is followed by the number of its labels that were answered
 * correctly, where it counts them. */
struct model_sum {
    const char *name; /* of its mean over the labels, in logs: "mlm_loss", "mlm_accuracy" */
    const char *text; /* for messages: "MLM loss" */
    int labels;       /* the batch's field that holds the labels */
    bool is_loss;     /* what is minimised is the sum of all losses' means */
};

/* How activations are held. */
struct model_memory {
    enum dtype dtype;
    enum fp8_factors fp8;        /* of the products of layers */
    bool kept;                   /* for a backward; else only what forward reads */
    const struct device *device; /* of all passes over them */
};

/* One pass over a micro-batch. */
struct model_pass {
    struct exec *x;
    const struct model *model;
    void *acts;
    const void *weights;
    const void *grads; /* backward only */
    const struct stream *stream;
    tensor
        loss_scales; /* f64, one of each loss in the order of model->sums: gradients of its logits are multiplied by it */
    tensor histories;   /* f32 [n_layers * n_factors, 2] of factors in fp8, or null (ops.h, quantize) */
    int64_t first, end; /* layers that are given in a row: each but the last rounds its output for the next */
    bool training;      /* dropout on */
    bool adds; /* gradients are added to those of earlier micro-batches; else matrices' are assigned */
};

/* Told the name and the value of an activation; a null tensor where the model has no such one. */
typedef void model_visitor(void *context, const char *name, tensor value);

struct model_type {
    const char *name; /* "bert" */

    /* config.json, as Hugging Face has it; NULL if memory runs out. */
    json_t *(*to_json)(const struct model *m);

    /* Declares the parameters, under the names that files have. */
    struct status (*declare)(const struct model *m, struct param_table *table);

    /* Points weights, or their gradients, into flat buffers of the table's layout: matrices into `matrices`, vectors into
     * `vectors`, biases that products add to activations into `biases`, which is one of the two.  STATUS_MEMORY. */
    struct status (*create_weights)(const struct model *m, void **weights, const struct param_table *table,
                                    tensor matrices, tensor vectors, tensor biases);
    void (*destroy_weights)(void *weights);

    /* The views of a micro-batch's activations, null until carved; STATUS_MEMORY. */
    struct status (*create_acts)(const struct model *m, void **acts);
    void (*destroy_acts)(void *acts);

    /* Room for a layer's weights in fp8, which outlives batches; and rounding them after a change.  Nothing without fp8. */
    void (*carve_weights)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                          enum fp8_factors fp8);
    void (*round_weights)(const struct model_pass *p, int64_t layer);

    /* Room for the activations of a batch of these sizes: of the input layer or a layer; of what a layer
     * hands to the next, where it otherwise shares the activations of another; of the heads; of what no layer keeps. */
    void (*carve_layer)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        struct model_memory memory, const struct batch *sizes);
    void (*share_layer)(void *acts, int64_t layer, int64_t of);
    void (*carve_output)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                         struct model_memory memory, const struct batch *sizes);
    void (*carve_heads)(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes);
    void (*carve_scratch)(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                          const struct batch *sizes);

    /* What the input layer or a layer computes, [T, hidden_size], which the next one reads; whatever else it hands on is the
     * model's own. */
    tensor (*output)(const void *acts, int64_t layer);

    /* Forward. */
    void (*input_forward)(const struct model_pass *p);
    void (*layer_forward)(const struct model_pass *p, int64_t layer);
    void (*heads_forward)(const struct model_pass *p);

    /* Adds to `sums`, f64 [n_sums], and leaves the gradients of the logits, times loss_scales. */
    void (*loss)(const struct model_pass *p, tensor sums);

    /* Backward: dx is the gradient of the last layer's output on return of heads_backward, and is taken back through a
     * layer, from the last down, and into the input, by the others.  Gradients of the weights are added to grads. */
    void (*heads_backward)(const struct model_pass *p, tensor dx);
    void (*layer_backward)(const struct model_pass *p, int64_t layer, tensor dx);
    void (*input_backward)(const struct model_pass *p, tensor dx);

    /* Names the activations of the input layer, a layer, or with n_layers the heads, in the order of computation. */
    void (*visit)(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                  void *context);

    /* What the heads have computed, by the numbers of the model (enum bert_output); null where it has no such head. */
    tensor (*head_output)(const void *acts, int output);
};

struct model {
    const struct model_type *type;
    int64_t n_layers, hidden_size;
    int64_t max_length;        /* tokens of the longest sequence */
    int64_t feed_forward_size; /* the widest of a layer's products */
    int n_factors;             /* of a layer's products, that have histories in fp8 */
    bool hands_on_more;        /* than outputs, from layer to layer, so one stage runs all of them */
    struct batch_layout layout;
    const char *
        tied; /* the parameter of the input layer that the heads read too, and add to its gradient; NULL: none */
    int n_sums;
    struct model_sum sums[MODEL_MOST_SUMS];
};

#endif
