/* model: the interface of a model for the engine (train/), the loaders and the checkpoints: a few numbers and
 * a table of functions.  nn/block_model.h has most of them for models of attention and feed-forward layers.
 *
 * A model is an input layer, `n_layers` layers of one kind, and heads.  Passes run over a range of them; the
 * loop over layers is in the engine (pass/stage.h), so a model needs no code for recomputation, pipelines or
 * overlap.
 *
 * The rule: a model owns no memory.  `acts` views memory that the engine carved for one micro-batch in
 * flight; `weights` and `grads` view flat buffers of the parameters' layout. */
#ifndef KILN_NN_MODEL_H
#define KILN_NN_MODEL_H

#include "core/arena.h"
#include "core/json.h"
#include "core/param.h"
#include "nn/label_names.h"
#include "nn/linear.h"
#include "nn/model_heads.h"
#include "nn/stream.h"

enum { MODEL_MOST_SUMS = 8, MODEL_INPUT_LAYER = -1 };

/* A sum that a step or an evaluation computes on the device.  A loss that counts correct answers is followed
 * by that count. */
struct model_sum {
    const char *name; /* the name of its mean over the labels, in logs: "mlm_loss", "mlm_accuracy" */
    const char *text; /* name in messages: "MLM loss" */
    int labels;       /* the batch's field that holds the labels */
    bool is_loss;     /* training minimises the sum of the means of all losses */
};

/* Storage of activations. */
struct model_memory {
    enum dtype dtype;
    enum dtype stream;           /* dtype of a decoder's residual stream and its gradient (ops.h, R) */
    enum fp8_factors fp8;        /* factors of the products of layers */
    bool kept;                   /* kept for a backward; else only what the forward reads */
    bool whole_logits;           /* the logits of all words at once; else a chunk of rows at a time */
    int n_row_parts;             /* peers that divide the rows of the residual stream (nn/stream.h); else 1 */
    const struct device *device; /* device that runs all passes over them */
};

/* One pass over a micro-batch. */
struct model_pass {
    struct exec *x;
    const struct model *model;
    void *acts;
    const void *weights;
    const void *grads; /* backward only */
    const struct stream *stream;
    /* f64, one for each loss in the order of model->sums: factors of the gradients of the loss's logits */
    tensor loss_scales;
    /* f32 [n_layers * n_factors, 2] histories of factors in fp8, or null (ops.h, quantize) */
    tensor histories;
    /* consecutive layers of this pass: each except the last rounds its output for the next */
    int64_t first, end;
    bool training; /* dropout on */
    bool adds;     /* gradients are added to those of earlier micro-batches; else matrices' are assigned */
};

enum { MODEL_MODULE_BYTES = PARAM_NAME_BYTES };

/* Gets an activation: its name for messages, or NULL for a part of the activation before; the module whose
 * output it is, a path as in names of parameters ("bert.encoder.layer.3.intermediate"), or NULL if there is
 * none; the unit of its rows; and its value, a matrix that may have strided rows: a null tensor if the model
 * does not have it. */
typedef void model_visitor(void *context, const char *name, const char *module, enum batch_rows rows,
                           tensor value);

/* Gets a gradient that a backward left: that of a module's output or, with `of_input`, of its input. */
typedef void model_gradient_visitor(void *context, const char *module, enum batch_rows rows, bool of_input,
                                    tensor value);

/* The matrices that may be int8: only linear, linear_gelu and gathers read them. */
enum model_int8 {
    MODEL_INT8_NONE,
    MODEL_INT8_ALL,    /* rows that meet them have 16 bits (ops/ops.h) */
    MODEL_INT8_LAYERS, /* those of layers, and rows that meet them are int8; others stay with the vectors */
};

struct model_type {
    const char *name;     /* "bert" */
    bool in_slices;       /* ranks may have slices of its layers (core/param.h, param_part) */
    bool divides_rows;    /* such ranks may also divide the rows of the residual stream (nn/stream.h) */
    bool reads_master;    /* weights are read in fp32, so every rank has all of them in fp32 */
    bool learns_vectors;  /* heads take the gradient of the last layer's output (nn/vector_head.h) */
    enum model_int8 int8; /* the matrices that may be int8 */

    /* The model's configuration, a struct of its family, owned by the model.  NULL for a network that has no
     * family. */
    const void *(*config)(const struct model *m);

    /* config.json in Hugging Face's format; NULL if memory runs out. */
    json_t *(*to_json)(const struct model *m);

    /* Declares the parameters of table->part, under their names in files. */
    struct status (*declare)(const struct model *m, struct param_table *table);

    /* Points weights, or their gradients, into flat buffers of the table's layout: matrices into `matrices`,
     * vectors into `vectors`, and biases that products add to activations into `biases`, which equals one of
     * the two.  STATUS_MEMORY. */
    struct status (*create_weights)(const struct model *m, void **weights, const struct param_table *table,
                                    tensor matrices, tensor vectors, tensor biases);
    void (*destroy_weights)(void *weights);

    /* The views of a micro-batch's activations in a part of the model, null until carved; STATUS_MEMORY. */
    struct status (*create_acts)(const struct model *m, const struct param_part *part, void **acts);
    void (*destroy_acts)(void *acts);

    /* Carve memory for a layer's weights in fp8, which outlives batches; and round them after a change.  They
     * do nothing without fp8. */
    void (*carve_weights)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                          enum fp8_factors fp8);
    void (*round_weights)(const struct model_pass *p, int64_t layer);

    /* Carves a layer's cache of keys and values, n_pages of BATCH_PAGE tokens, which outlives batches and
     * which a batch with stream.slots writes and reads.  NULL: the model has none. */
    void (*carve_cache)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        enum dtype dtype, int64_t n_pages);

    /* Fills the tensors that carve_weights carved in addition to the weights and that no pass changes; NULL:
     * there is nothing. */
    void (*fill_constants)(const struct model *m, void *acts, struct exec *x);

    /* Carve the activations of a batch of these sizes: those of the input layer or a layer; only those that a
     * layer passes to the next, if it shares the others with another layer; those of the heads; and temporary
     * tensors. */
    void (*carve_layer)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        struct model_memory memory, const struct batch *sizes);
    void (*share_layer)(void *acts, int64_t layer, int64_t of);
    void (*carve_output)(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                         struct model_memory memory, const struct batch *sizes);
    void (*carve_heads)(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes);
    void (*carve_scratch)(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                          const struct batch *sizes);

    /* The output of the input layer or a layer, [T, hidden_size] or a peer's own rows of it, which the next
     * one reads; the model may pass on other tensors internally.  Where activations are kept for a backward,
     * that of the last layer may be for its heads only. */
    tensor (*output)(const void *acts, int64_t layer);

    /* Forward. */
    void (*input_forward)(const struct model_pass *p);
    void (*layer_forward)(const struct model_pass *p, int64_t layer);

    /* The heads read the last layer's output.  Each of these runs all of their forward:
     * heads_forward leaves the outputs of head_output;
     * heads_measure adds losses and correct answers to `sums`, f64 [n_sums], unless it is null;
     * heads_learn does so too, sets dx to the gradient of the last layer's output, of losses times
     * loss_scales, and adds the gradients of the heads' weights to grads. */
    void (*heads_forward)(const struct model_pass *p);
    void (*heads_measure)(const struct model_pass *p, tensor sums);
    void (*heads_learn)(const struct model_pass *p, tensor dx, tensor sums);

    /* Backward: layer_backward, called from the last layer down, replaces dx by the gradient of the layer's
     * input; input_backward reads it.  Gradients of the weights are added to grads. */
    void (*layer_backward)(const struct model_pass *p, int64_t layer, tensor dx);
    void (*input_backward)(const struct model_pass *p, tensor dx);

    /* Visits the activations of the input layer, a layer or, for n_layers, the heads, in the order of
     * computation.  Logits of words are shown where they are complete. */
    void (*visit)(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                  void *context);

    /* Visits the gradients that the backward of the heads, a layer or the input layer has left, before the
     * next overwrites them; dx is what it returned. */
    void (*visit_gradients)(const struct model *m, const void *acts, int64_t layer, tensor dx,
                            model_gradient_visitor *visitor, void *context);

    /* An output that the task has (nn/model_heads.h), except HIDDEN; null where it is not complete. */
    tensor (*head_output)(const void *acts, enum model_output output);
};

/* A model is one block of memory: whoever created it frees it. */
struct model {
    const struct model_type *type;
    int64_t n_layers, hidden_size, n_heads;
    int64_t n_kv_heads;        /* heads of keys and values */
    int64_t kv_width;          /* columns of a token's keys, and of its values */
    int64_t max_length;        /* tokens of the longest sequence */
    int64_t feed_forward_size; /* the widest of a layer's activations */
    int n_factors;             /* factors of a layer's products that have histories in fp8; 0: no fp8 */
    /* form of the layers, for messages, where a family has several: "pre-LN"; NULL: the usual one */
    const char *form;
    bool hands_on_more; /* layers pass on more than outputs, so one stage must run all of them */
    enum model_task task;
    struct model_labels labels;  /* labels of a classifier */
    int64_t vocab_size, n_words; /* rows of the word embeddings, and how many of them can be predicted */
    struct batch_layout layout;
    /* a parameter of the input layer that the heads read and add gradients to as well; NULL: none */
    const char *tied;
    int n_sums;
    struct model_sum sums[MODEL_MOST_SUMS];
};

/* Whether a part of a model (core/param.h) has the input layer, and the heads. */
static inline bool model_part_has_input(const struct param_part *part)
{
    return param_part_has(part, MODEL_INPUT_LAYER);
}

static inline bool model_part_has_heads(const struct model *m, const struct param_part *part)
{
    return param_part_has(part, m->n_layers);
}

#endif
