/* weights: one list of rows makes both the parameter table and the tensors that a model's equations use.
 *
 * A part of a model (a layer, the embeddings, a head) is a struct of tensors, and a list with one row per
 * field.  The list declares the parameters and points the fields into flat buffers, so names, shapes,
 * initialisation and memory cannot disagree. */
#ifndef KILN_NN_WEIGHTS_H
#define KILN_NN_WEIGHTS_H

#include "core/param.h"

#include <stddef.h>

/* The dims that shapes are made of. */
enum weight_dim {
    DIM_ONE,
    DIM_BIAS,
    DIM_HIDDEN,
    DIM_HEADS, /* the columns of all heads of queries */
    DIM_KV,    /* and of keys, or of values */
    DIM_HEAD,  /* the columns of one head */
    DIM_FEED_FORWARD,
    DIM_VOCAB,
    DIM_POSITIONS,
    DIM_TYPES,
    DIM_TWO,
    DIM_LABELS,
    DIM_COUNT
};

/* Sizes of the complete model: a table of a slice of it (param_part) has fewer rows or columns of some
 * tensors. */
struct weight_sizes {
    int64_t real[DIM_COUNT];   /* sizes in files */
    int64_t padded[DIM_COUNT]; /* sizes in memory: only the vocabulary differs */
    double initializer_range;  /* standard deviation of PARAM_INIT_NORMAL */
    int64_t n_layers;          /* n of PARAM_INIT_RESIDUAL: initializer_range / sqrt(2 n) */
    bool sinusoidal_positions; /* rows of DIM_POSITIONS begin as PARAM_INIT_SINUSOIDS */
};

enum { WEIGHT_MAX_PARTS = 3 };

/* Root mean square of sinusoids over initializer_range, so over that of the words that they are added to.
 * With 1 a BERT-mini needs a sixth more steps to leave the plateau of word frequencies, with 4 the same
 * number as with 2 (docs/numbers.md). */
enum { WEIGHT_SINUSOIDS_OF_RANGE = 2 };

/* One field.  A matrix is [rows, cols].  A vector has cols DIM_ONE, or DIM_BIAS if a product adds it to a
 * result that has the dtype of activations.  A slab of several parts (query, key,
 * value) is one tensor in memory and several parameters in files, stacked by rows. */
struct weight_row {
    size_t field; /* offset of the tensor in the struct */
    enum weight_dim rows, cols;
    enum weight_dim more_rows; /* rows of each part after the first; DIM_ONE: as many */
    enum param_init init;      /* PARAM_INIT_UNIFORM: within +- 1 / sqrt(the hidden size read) */
    bool decay;
    enum param_split split;
    const char *names[WEIGHT_MAX_PARTS]; /* names after the prefix; NULL-terminated unless full */
};

/* Rows of a table, one a line; WEIGHTS is the struct, defined before the table: WEIGHT_MATRIX(w_2, HIDDEN,
 * FEED_FORWARD, NORMAL, BY_COL, "output.dense.weight").  Matrices decay, vectors do not.  WEIGHT_BIAS is
 * added by a product, WEIGHT_VECTOR by another op. */
#define WEIGHT_MATRIX(field_, rows_, cols_, init_, split_, ...)                                              \
    {                                                                                                        \
        offsetof(WEIGHTS, field_), DIM_##rows_, DIM_##cols_, DIM_ONE, PARAM_INIT_##init_, true,              \
            PARAM_##split_,                                                                                  \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define WEIGHT_BIAS(field_, rows_, init_, split_, ...)                                                       \
    {                                                                                                        \
        offsetof(WEIGHTS, field_), DIM_##rows_, DIM_BIAS, DIM_ONE, PARAM_INIT_##init_, false,                \
            PARAM_##split_,                                                                                  \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define WEIGHT_VECTOR(field_, rows_, init_, split_, ...)                                                     \
    {                                                                                                        \
        offsetof(WEIGHTS, field_), DIM_##rows_, DIM_ONE, DIM_ONE, PARAM_INIT_##init_, false, PARAM_##split_, \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* Query, key and value in one matrix or bias, of heads that may share keys and values. */
#define WEIGHT_QKV(field_, ...)                                                                              \
    {                                                                                                        \
        offsetof(WEIGHTS, field_), DIM_HEADS, DIM_HIDDEN, DIM_KV, PARAM_INIT_NORMAL, true, PARAM_BY_HEAD,    \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define WEIGHT_QKV_BIAS(field_, ...)                                                                         \
    {                                                                                                        \
        offsetof(WEIGHTS, field_), DIM_HEADS, DIM_BIAS, DIM_KV, PARAM_INIT_ZERO, false, PARAM_BY_HEAD,       \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* Rows in memory of a slice of a vocabulary with `padded` rows, padding included: the same number in all
 * slices. */
int64_t weights_vocab_rows(int64_t padded, int n_slices);

/* Arguments of weights_declare and weights_view, for all parts of a model. */
struct weight_declaration {
    struct param_table *table;
    struct weight_sizes sizes;
};
struct weight_view {
    const struct param_table *table;
    struct weight_sizes sizes;
    tensor matrices, vectors, biases; /* the buffer of each, in the table's layout; some may be the same */
};

/* Declares the parameters of all rows, with `prefix` before each name, as belonging to layer `layer`; only
 * those that the table's part has.  `declaration` is a struct weight_declaration, `part` is not read. */
void weights_declare(void *declaration, void *part, const char *prefix, int64_t layer,
                     const struct weight_row *rows, int n_rows);

/* Points the tensors of the struct at `part` into the buffers of `view`, a struct weight_view, and those that
 * the table does not have nowhere: matrices into `matrices`, vectors into `vectors` (the same buffer, or the
 * fp32 master when matrices are a bf16 copy), and those of DIM_BIAS into `biases`. */
void weights_view(void *view, void *part, const char *prefix, int64_t layer, const struct weight_row *rows,
                  int n_rows);

#endif
