/* block_model: a model whose layers are blocks (nn/block.h), as the engine sees a model (nn/model.h).  What
 * such models share is here: parameters, memory, and the walk through the layers.  A family adds the names of
 * its weights, the equations of its input, and its heads.
 *
 * A family's struct of a model begins with a struct block_model, its struct of all weights with a struct
 * block_weight_table, and its struct of activations with a struct block_stack. */
#ifndef KILN_NN_BLOCK_MODEL_H
#define KILN_NN_BLOCK_MODEL_H

#include "nn/block.h"
#include "nn/model.h"
#include "nn/rotary.h"

enum { BLOCK_MODEL_MOST_PARTS = 8, BLOCK_EVERY_LAYER = -2 };

/* A struct of tensors among the weights, and its rows. */
struct block_part {
    const struct weight_row *rows;
    int n_rows;
    const char *prefix; /* before the rows' names in files; of the layers' rows, before a layer's number */
    int64_t layer;      /* MODEL_INPUT_LAYER, BLOCK_EVERY_LAYER, the last layer, or n_layers: the heads */
    size_t place;       /* offset of the struct in the family's struct of weights; 0 for the layers */
    int not_first;      /* rows at the beginning that layer 0 lacks, of the layers' rows */
};

/* The beginning of a family's weights, or of their gradients. */
struct block_weight_table {
    struct block_weights *layers; /* [n_layers] */
    struct norm_weights norm_out; /* norm of the last layer's output (block_pre); null: none */
};

/* The beginning of a family's activations. */
struct block_stack {
    struct layer_form form, other; /* forms of the slice of layers that is here */
    int n_slices;                  /* slices of layers and words, on all ranks */
    tensor in;                     /* [R, H] the input layer's output */
    struct block_acts *layers;     /* [n_layers] */
    struct row_picks picks;        /* rows of the last layer that the heads read; none: all */
    tensor slopes;                 /* f32 [N] ALiBi's slopes of the heads that are here; null without it */
    /* f32 [P, R] of rotary positions (nn/rotary.h) of layers of the two forms; null without them */
    tensor turns, other_turns;
    struct norm_acts norm_out; /* norm of the last layer's output, which reads its sum */
    struct layer_scratch scratch;
};

/* Parameters are those of form.n_layers layers, of which passes run the first model.n_layers. */
struct block_model {
    struct model model; /* first */
    struct layer_form form;
    /* Layers of `others` have the form `other`.  Its positions may differ, and what attention sees; sizes and
     * dropouts may not, since layers share memory. */
    struct layer_form other;
    struct layer_cycle others;
    bool norms_output; /* the last layer's output is normed, by block_weight_table.norm_out */
    const struct block_wiring *wiring;
    struct rotary rotary, other_rotary; /* angles of the forms with rotary positions */
    struct weight_sizes sizes;
    struct block_part parts[BLOCK_MODEL_MOST_PARTS];
    int n_parts;
    size_t weight_bytes, act_bytes;         /* sizes of the family's structs */
    const char *input_module, *norm_module; /* names of the input layer and of a last norm; NULL: none */

    /* The number of a layer in names of parameters; NULL: the layer's own. */
    int64_t (*layer_number)(const struct block_model *m, int64_t layer);

    /* Carves stack.in, and what else the input's equations keep. */
    void (*carve_input)(const struct block_model *m, void *acts, struct arena *arena,
                        struct layer_memory memory);
};

static inline const struct block_model *block_model_of(const struct model *m)
{
    return (const struct block_model *)m;
}

/* Adds a part; the sizes of the rows' dims are those of m->sizes. */
void block_model_add(struct block_model *m, struct block_part part);

/* Gives the forms and the weights the model's sizes, and the model those of keys and the wiring's name.
 * Heads whose size is 0 share the hidden size; n_words 0 is all of the vocabulary.  vocab_rows: rows of the
 * word embeddings in memory, which may be more than the vocabulary's. */
void block_model_size(struct block_model *m, int64_t vocab_rows);

/* The path of a layer, as in names of parameters, without the last dot: "transformer.h.3". */
void block_model_path(char path[MODEL_MODULE_BYTES], const struct model *m, int64_t layer);

/* The arguments of a layer's pass; those of the heads are the last layer's. */
struct layer_call block_model_call(const struct model_pass *p, int64_t layer);

/* The output of the input layer or a layer. */
tensor block_model_output(const void *acts, int64_t layer);

/* The rows of a layer after its attention; NULL: all. */
const struct row_picks *block_model_picks(const struct model *m, const struct block_stack *a, int64_t layer);

/* Functions of struct model_type. */
struct status block_model_declare(const struct model *m, struct param_table *table);
struct status block_model_create_weights(const struct model *m, void **weights,
                                         const struct param_table *table, tensor matrices, tensor vectors,
                                         tensor biases);
void block_model_destroy_weights(void *weights);
struct status block_model_create_acts(const struct model *m, const struct param_part *part, void **acts);
void block_model_destroy_acts(void *acts);
void block_model_carve_weights(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                               enum fp8_factors fp8);
void block_model_round_weights(const struct model_pass *p, int64_t layer);
void block_model_carve_cache(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                             enum dtype dtype, int64_t n_pages);
void block_model_fill_constants(const struct model *m, void *acts, struct exec *x);
void block_model_carve_layer(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                             struct model_memory memory, const struct batch *sizes);
void block_model_share_layer(void *acts, int64_t layer, int64_t of);
void block_model_carve_output(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                              struct model_memory memory, const struct batch *sizes);
void block_model_carve_scratch(const struct model *m, void *acts, struct arena *arena,
                               struct model_memory memory, const struct batch *sizes);
void block_model_layer_forward(const struct model_pass *p, int64_t layer);
void block_model_layer_backward(const struct model_pass *p, int64_t layer, tensor dx);

void block_model_visit_gradients(const struct model *m, const void *acts, int64_t layer, tensor dx,
                                 model_gradient_visitor *visitor, void *context);

/* Rows of a struct model_type. */
#define BLOCK_MODEL_FUNCTIONS                                                                                \
    .declare = block_model_declare, .create_weights = block_model_create_weights,                            \
    .destroy_weights = block_model_destroy_weights, .create_acts = block_model_create_acts,                  \
    .destroy_acts = block_model_destroy_acts, .carve_weights = block_model_carve_weights,                    \
    .round_weights = block_model_round_weights, .fill_constants = block_model_fill_constants,                \
    .carve_layer = block_model_carve_layer, .share_layer = block_model_share_layer,                          \
    .carve_output = block_model_carve_output, .carve_scratch = block_model_carve_scratch,                    \
    .output = block_model_output, .layer_forward = block_model_layer_forward,                                \
    .layer_backward = block_model_layer_backward

#endif
