/* param: the table of a model's parameters.
 *
 * A model declares each parameter once - name, shape, initialisation, decay, how tensor parallelism splits
 * it - and everything else follows from the table: the flat buffers, the checkpoint's names, the
 * optimizer's groups, the tests.  A rank of several that hold a model together has a table of its part
 * alone.  Parameters live in slabs of one flat buffer.  A slab is what one op reads (Q, K and V are one
 * slab); a parameter is what a checkpoint names (Q, K and V are three).  Slabs start at multiples of 1,024
 * elements, the chunk size of all ordered reductions, so a shard of the buffer never splits a chunk. */
#ifndef KILN_CORE_PARAM_H
#define KILN_CORE_PARAM_H

#include "core/status.h"
#include "core/tensor.h"

enum { PARAM_ALIGNMENT = 1024, PARAM_NAME_BYTES = 96 };

enum param_init {
    PARAM_INIT_NORMAL,   /* N(0, scale^2) */
    PARAM_INIT_RESIDUAL, /* normal, for a product that adds to the residual stream: its scale is smaller */
    PARAM_INIT_ZERO,
    PARAM_INIT_ONE,
    PARAM_INIT_UNIFORM, /* U(-scale, scale) */

    /* Sinusoids of a matrix of n columns: scale * sin(row / 10000^(2i / n)) in column 2i, and the cosine in
     * column 2i + 1 (Vaswani et al. 2017, section 3.5). */
    PARAM_INIT_SINUSOIDS,
};

/* The values that training keeps for each element: its weight, and the moments of its updates. */
enum param_kept { PARAM_WEIGHT, PARAM_EXP_AVG, PARAM_EXP_AVG_SQ, PARAM_N_KEPT };

/* The split of the tensor by a tensor-parallel group of n ranks. */
enum param_split {
    PARAM_WHOLE, /* every rank has all of it */
    /* Every rank has all of it.  Its gradient is a sum over the rows of the residual stream that a rank has:
     * those of ranks that divide the rows (nn/stream.h) must be summed. */
    PARAM_OF_ROWS,
    /* Every rank has all of it.  Its gradient is a sum over the attention heads that a rank has: those of all
     * slices must be summed. */
    PARAM_OF_HEADS,
    PARAM_BY_ROW,  /* output features: rows [r/n, (r+1)/n) */
    PARAM_BY_COL,  /* input features: columns */
    PARAM_BY_HEAD, /* rows, in complete attention heads */
    PARAM_BY_WORD, /* rows of a vocabulary, padded rows last */
};

/* Layers [first, end) by the numbers of struct param: the input layer is the first, the heads the last. */
struct param_range {
    int64_t first, end;
};

enum { PARAM_MOST_RANGES = 16 };

/* The part of a model that a table declares.  All zero: the complete model. */
struct param_part {
    struct param_range ranges[PARAM_MOST_RANGES]; /* [n_ranges] from below, disjoint; 0 ranges: all layers */
    int n_ranges;
    /* Slice `slice` of n_slices of the tensors that tensor parallelism splits; 0 slices: one. */
    int slice, n_slices;
    /* The heads are in the part, and read this parameter of the input layer (model.tied), which is declared
     * as a copy where the input layer is not in the part.  NULL: none. */
    const char *tied;
};

struct param {
    char name[PARAM_NAME_BYTES]; /* name in a checkpoint, e.g. "bert.pooler.dense.weight" */
    int n_dims;                  /* 1 or 2 */
    int64_t dims[2];             /* real shape of the part that is here, without padded rows */
    int64_t full[2], first[2];   /* shape of the complete tensor, and the first indices of this part in it */
    enum param_init init;
    double init_scale;
    bool decay;   /* weight decay applies */
    double rate;  /* factor of the learning rate, by default 1; 0: frozen, no update touches it */
    bool whole;   /* no shard cuts it: its update needs all of it */
    bool is_copy; /* another rank updates it and writes it into checkpoints (param_part.tied) */
    enum param_split split;
    bool is_bias;    /* a product adds it to its result, in the dtype of activations */
    bool by_product; /* the gradient is one product, so the first micro-batch of a step assigns it */
    int64_t layer;   /* the layer (nn/model.h) whose backward is the last to add to its gradient */
    int64_t offset;  /* first element in the flat buffer */
    int64_t row;     /* first row of a matrix among the rows of all matrices, padded ones included */
};

struct param_table {
    struct param *params; /* [n], in the order of declaration */
    int n;
    int capacity;
    int64_t n_elements; /* size of a flat buffer: slabs and the gaps between them */
    int64_t n_rows;     /* rows of all matrices, padded ones included */
    bool failed;        /* out of memory while declaring */
    struct param_part part;
};

/* Whether the part is all zero, and so the complete model. */
bool param_part_is_all(const struct param_part *part);

/* Whether the part has this layer, numbered as in struct param. */
bool param_part_has(const struct param_part *part, int64_t layer);

/* Slices of the tensors that tensor parallelism splits, at least one. */
int param_part_slices(const struct param_part *part);

/* Frees the rows; safe on a zeroed table. */
void param_table_fini(struct param_table *t);

/* Reserves a slab of `elements` and returns its offset. */
int64_t param_table_slab(struct param_table *t, int64_t elements);

/* Declares a parameter, of rate 1; its offset must lie inside a reserved slab.  `full` all zero: all of the
 * tensor is here. */
void param_table_add(struct param_table *t, struct param p);

/* STATUS_MEMORY if a row could not be added, else STATUS_OK. */
struct status param_table_status(const struct param_table *t);

/* Number of elements. */
int64_t param_count(const struct param *p);

/* Whether each slice of the layers has a part of the gradient, which is their sum; the slices may divide the
 * rows of the residual stream. */
bool param_sums_parts(const struct param *p, bool divides_rows);

/* Elements of the complete tensor; and whether all of it is here. */
int64_t param_full_count(const struct param *p);
bool param_is_full(const struct param *p);

/* The index in the complete tensor of element `i` of the part that is here. */
int64_t param_full_index(const struct param *p, int64_t i);

/* The end of the elements of other ranks' parameters, which come first (param.is_copy). */
int64_t param_table_end_of_copies(const struct param_table *t);

/* Elements of all parameters, without gaps and padded rows: the number of parameters as papers count it. */
int64_t param_table_count(const struct param_table *t);

/* The parameter of this name; NULL: there is none. */
const struct param *param_table_find(const struct param_table *t, const char *name);

/* The elements [*begin, *end) of a flat buffer that hold the parameters of layers [first, end_layer), padding
 * included.  They are contiguous, since layers are declared in order. */
void param_table_range(const struct param_table *t, int64_t first, int64_t end_layer, int64_t *begin,
                       int64_t *end);

/* The parameter's elements in `flat`, a flat buffer of this table's layout. */
tensor param_view(const struct param *p, tensor flat);

/* Sets the elements [begin, end) of a parameter in `flat`, a flat buffer of this table's layout, to their
 * initial values under `seed`. */
void param_initialize(const struct param *p, tensor flat, uint64_t seed, int64_t begin, int64_t end);

/* Fills `flat` (fp32 or fp64, host memory) with the initial parameters under `seed`; gaps and padded rows are
 * zero. */
void param_table_initialize(tensor flat, const struct param_table *table, uint64_t seed);

#endif
