/* checkop_cases: what tests/ops/checkop.c knows about each op: its arguments, how to call it, how to call its
 * forward, how far a backend may be from the reference, and the shapes to try. */
#ifndef KILN_TESTS_CHECKOP_CASES_H
#define KILN_TESTS_CHECKOP_CASES_H

#include "ops/ops.h"

enum checkop_role {
    ROLE_IN,      /* read only; those that the forward writes are computed by it before the op runs */
    ROLE_OUT,     /* written; holds NaN before */
    ROLE_INOUT,   /* added to */
    ROLE_SCRATCH, /* undefined afterwards */
};

/* Dtypes as in ops.h: A and W follow the run, the rest is fixed. */
enum checkop_kind { KIND_A, KIND_W, KIND_F32, KIND_F64, KIND_I32, KIND_I64, KIND_E4M3, KIND_E5M2, KIND_I8 };

enum checkop_fill {
    FILL_NORMAL,    /* N(0, amount^2) */
    FILL_SPREAD,    /* N(0, 1) with every 97th element 30 times larger */
    FILL_GAMMA,     /* 1 + N(0, amount^2) */
    FILL_ZEROS,     /* N(0, amount^2), every third element 0, of both signs */
    FILL_SQUARES,   /* squares of N(0, amount^2) */
    FILL_IDENTITY,  /* a unit matrix */
    FILL_INDEX,     /* uniform in [0, amount) */
    FILL_LABEL,     /* uniform in [0, amount), every fourth -1 */
    FILL_TARGET,    /* uniform in [0, amount), every fourth a NaN */
    FILL_BOUNDS_Q,  /* the running sum of the sequence lengths */
    FILL_BOUNDS_KV, /* the same for keys and values */
    FILL_SLOTS,     /* of pages, none twice, every fifth -1; amount pages */
    FILL_PAGES,     /* a table of pages for the keys of each sequence, amount pages in all */
    FILL_ROW_KEYS,  /* sequence and position of each query row */
    FILL_SLOPES,    /* 2^-(i + 1) */
    FILL_SCALARS,   /* of an optimizer */
    FILL_CHOICES,   /* options of choices, of which some rate amount tokens */
    FILL_STARTS,    /* i times amount */
    FILL_CHANGES,   /* of logits below amount, different ones in a row */
    FILL_CONSTANT,  /* amount */
    FILL_HISTORY,   /* checkop_instance.c: number `amount` of those that a factor of fp8 may have */
    FILL_HOLES,     /* N(0, 1) with a NaN at `amount` and an infinity after it; none if amount < 0 */
};

struct checkop_arg {
    const char *name;
    enum checkop_role role;
    enum checkop_kind kind;
    int n_dims;
    int64_t dims[3];
    enum checkop_fill fill;
    double amount;
    int64_t gap;     /* unused elements after each row of the slowest dim */
    int shares;      /* 1 + the index of the argument whose memory it is; 0: its own */
    int gradient_of; /* 1 + the index of the argument that it is the gradient of; 0: none */
    bool mixed_only; /* absent where A is W */
    bool by_columns; /* a matrix whose columns are stored one after the other */
    int scaled_by;   /* 1 + the index of the scale of an fp8 tensor, or those of int8, behind it; 0: none */
};

enum { CHECKOP_CHANGES = 3 }; /* of a row of logits */

enum { CHECKOP_MAX_ARGS = 24, CHECKOP_MAX_SEQUENCES = 64 };

/* A row of the table of shapes; each op reads what it needs. */
struct checkop_shape {
    const char *op;
    int64_t t, h, f; /* tokens, columns, output columns or classes */
    int64_t heads;
    double p;              /* dropout */
    const int32_t *lens_q; /* -1 ends; NULL: one sequence of t */
    const int32_t *lens_kv;
    int64_t rest;  /* rows of the stream behind its last sequence */
    int64_t first; /* number of the first row or class that is here, of a slice */
    /* plain: without bias, not accumulating, without dlogits or what a backward reads; shared: in place, or
     * dw assigned */
    bool causal, alibi, strided, plain, shared;
    bool bits;        /* attention leaves and reads bits of dropout, on devices that keep them */
    int64_t kv_heads; /* of attention; 0: as many as heads */
    int64_t window;   /* of attention; 0: no bound */
    int kind;         /* of a gate, enum gate_function */
    bool adds;        /* the gradient of the residual is added to */
    bool rms;         /* the norm is the RMS norm, behind a sublayer without a bias */
    bool unshifted;   /* the LayerNorm has no beta */
    bool stream;      /* the residual stream is fp32 (ops.h, R) */
    bool rounded;     /* the bias is of the dtype of out, on devices that take such */
    bool fp8;         /* factors of products are fp8, in bf16 runs of devices that compute in it */
    bool int8;        /* matrices of weights are int8, on devices that multiply such */
    bool int8_rows;   /* and rows are rounded to int8 (exec.int8_rows), as exactly as by ref */
    bool by_cpu;      /* too large for ref: other devices are held against the cpu's table in fp32 */
    /* columns that a GPU has another kernel for; a sum in order, as a plain cpu has it, is less exact */
    bool wide;
};

struct checkop_case;
typedef void checkop_call(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t);

struct checkop_case {
    char title[96];
    size_t slot; /* offset in struct ops */
    checkop_call *run;
    checkop_call *forward; /* fills in dependent inputs; NULL: there are none */
    struct checkop_arg args[CHECKOP_MAX_ARGS];
    int n_args;
    int value, seed; /* arguments: the forward's output and its gradient; seed -1: that is seed_value */
    double seed_value;
    double bound_fp32;   /* largest error, relative to the largest output, in fp32 */
    double bound_bf16_a; /* in bf16, for outputs in A */
    double bound_bf16_w; /* in bf16, for outputs in W */
    struct checkop_shape shape;
    struct dropout drop;
    int64_t lens_q[CHECKOP_MAX_SEQUENCES], lens_kv[CHECKOP_MAX_SEQUENCES];
    int n_sequences;
    struct optim_span spans[4];
    int n_spans;
};

/* The case of a row of the table; fails the program for an unknown op. */
void checkop_make(struct checkop_case *c, const struct checkop_shape *s);

/* checkop_shapes.c: for tests, for tests of a GPU (BERT-Large), for central differences (small), and for the
 * benchmark (BERT-base, and a small model); `n` receives their number. */
const struct checkop_shape *checkop_test_shapes(int *n);
const struct checkop_shape *checkop_large_shapes(int *n);
const struct checkop_shape *checkop_gradient_shapes(int *n);
const struct checkop_shape *checkop_bench_shapes(int *n);

#endif
