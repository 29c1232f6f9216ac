/* Clearing, norms and optimizers: ops over spans of flat buffers. */
#include "checkop_args.h"

/* Spans with holes between them, of less than a chunk, of several, with and without decay.  Each is the
 * middle of a parameter with f more chunks at both ends, which other ranks have. */
static void add_spans(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t n = s->t, third = n / 3, chunk = 0;
    c->spans[0] = (struct optim_span){.offset = 0, .n = third - third / 8, .weight_decay = 0.01, .rate = 1};
    c->spans[1] = (struct optim_span){.offset = third, .n = third / 4, .rate = 0.25};
    c->spans[2] = (struct optim_span){
        .offset = third + third / 2, .n = n - third - third / 2, .weight_decay = 0.1, .rate = 0.9};
    c->n_spans = 3;
    for (int i = 0; i < c->n_spans; i++) {
        c->spans[i].first_chunk = chunk;
        c->spans[i].n_chunks = 2 * s->f + optim_chunks(&c->spans[i], 1);
        chunk += c->spans[i].n_chunks;
    }
}

static int64_t own_chunks(const struct checkop_case *c)
{
    return optim_chunks(c->spans, c->n_spans);
}

static int64_t all_chunks(const struct checkop_case *c)
{
    return c->spans[2].first_chunk + c->spans[2].n_chunks;
}

RUN(clear)
{
    o->clear(x, t[0], c->spans, c->n_spans);
}

void checkop_make_clear(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("flat", ROLE_INOUT, KIND_W, s->t));
    add_spans(c, s);
    c->run = run_clear;
}

RUN(squares)
{
    o->squares(x, t[0], t[1], c->spans, c->n_spans);
}

void checkop_make_squares(struct checkop_case *c, const struct checkop_shape *s)
{
    add_spans(c, s);
    add(c, vector("sums", ROLE_OUT, KIND_F64, own_chunks(c)));
    add(c, vector("in", ROLE_IN, KIND_W, s->t));
    c->run = run_squares;
    c->bound_fp32 = c->bound_bf16_w = 1e-12;
}

RUN(zeros)
{
    o->zeros(x, t[0], t[1], c->spans, c->n_spans);
}

void checkop_make_zeros(struct checkop_case *c, const struct checkop_shape *s)
{
    add_spans(c, s);
    add(c, vector("sums", ROLE_OUT, KIND_F64, own_chunks(c)));
    add(c, filled(vector("in", ROLE_IN, KIND_W, s->t), FILL_ZEROS, 1));
    c->run = run_zeros;
    c->bound_fp32 = c->bound_bf16_w = 0;
}

RUN(norm_of)
{
    (void)c;
    o->norm_of(x, t[0], t[1]);
}

void checkop_make_norm_of(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, vector("norm", ROLE_OUT, KIND_F64, 1));
    add(c, filled(vector("sums", ROLE_IN, KIND_F64, s->t), FILL_SQUARES, 1));
    c->run = run_norm_of;
    c->bound_fp32 = c->bound_bf16_w = 1e-12;
}

/* Arguments of every optimizer. */
enum { MASTER, WORKING, GRAD, EXP_AVG, EXP_AVG_SQ, NORM, SCALARS, SUMS, SQUARES };

static struct optim_buffers buffers_of(const tensor *t)
{
    return (struct optim_buffers){t[MASTER], t[WORKING], t[GRAD], t[EXP_AVG], t[EXP_AVG_SQ]};
}

RUN(lamb_direction)
{
    o->lamb_direction(x, t[SUMS], buffers_of(t), c->spans, c->n_spans, t[NORM], t[SCALARS]);
}

RUN(lamb_apply)
{
    o->lamb_apply(x, buffers_of(t), c->spans, c->n_spans, t[SUMS], t[NORM], t[SCALARS]);
}

RUN(lans_direction)
{
    o->lans_direction(x, t[SUMS], buffers_of(t), c->spans, c->n_spans, t[SQUARES], t[NORM], t[SCALARS]);
}

RUN(lans_apply)
{
    o->lans_apply(x, buffers_of(t), c->spans, c->n_spans, t[SUMS], t[NORM], t[SCALARS]);
}

RUN(adamw)
{
    o->adamw(x, buffers_of(t), c->spans, c->n_spans, t[NORM], t[SCALARS]);
}

/* The norm of the gradients. */
static void forward_norm(const struct checkop_case *c, const struct ops *o, struct exec *x, const tensor *t)
{
    double *memory = malloc((size_t)own_chunks(c) * sizeof *memory);
    EXPECT(memory != NULL, "no memory for sums");
    tensor sums = tensor_1d(memory, DTYPE_F64, own_chunks(c));
    o->squares(x, sums, t[GRAD], c->spans, c->n_spans);
    o->norm_of(x, tensor_slice(t[NORM], 0, 1), sums);
    free(memory);
}

/* `shared`: the second of the numbers that must be finite is not, so nothing may change. */
static void add_optim(struct checkop_case *c, const struct checkop_shape *s, enum checkop_role grad)
{
    add_spans(c, s);
    add(c, vector("master", ROLE_INOUT, KIND_W, s->t));
    add(c, vector("working", ROLE_INOUT, KIND_A, s->t));
    c->args[WORKING].mixed_only = true;
    add(c, vector("grad", grad, KIND_W, s->t));
    add(c, vector("exp_avg", ROLE_INOUT, KIND_W, s->t));
    add(c, filled(vector("exp_avg_sq", ROLE_INOUT, KIND_W, s->t), FILL_SQUARES, 1));
    add(c, filled(vector("norm", ROLE_IN, KIND_F64, 2), FILL_HOLES, s->shared ? 1 : -1));
    add(c, filled(vector("scalars", ROLE_IN, KIND_F64, OPTIM_N_SCALARS), FILL_SCALARS, s->plain ? 0 : 1));
    c->forward = forward_norm;
}

void checkop_make_lamb_direction(struct checkop_case *c, const struct checkop_shape *s)
{
    add_optim(c, s, ROLE_INOUT);
    add(c, matrix("sums", ROLE_INOUT, KIND_F64, own_chunks(c), 2));
    c->run = run_lamb_direction;
}

void checkop_make_lamb_apply(struct checkop_case *c, const struct checkop_shape *s)
{
    add_optim(c, s, ROLE_IN);
    add(c, filled(matrix("sums", ROLE_IN, KIND_F64, all_chunks(c), 2), FILL_SQUARES, 1));
    c->run = run_lamb_apply;
}

/* `plain`: parameters without gradients, whose norms are 0. */
void checkop_make_lans_direction(struct checkop_case *c, const struct checkop_shape *s)
{
    add_optim(c, s, ROLE_INOUT);
    add(c, matrix("sums", ROLE_INOUT, KIND_F64, own_chunks(c), 3));
    add(c, filled(vector("squares", ROLE_IN, KIND_F64, all_chunks(c)), FILL_SQUARES, s->plain ? 0 : 1));
    c->run = run_lans_direction;
}

/* `plain`: norms are 0, so both ratios are 1. */
void checkop_make_lans_apply(struct checkop_case *c, const struct checkop_shape *s)
{
    add_optim(c, s, ROLE_IN);
    add(c, filled(matrix("sums", ROLE_IN, KIND_F64, all_chunks(c), 3), FILL_SQUARES, s->plain ? 0 : 1));
    c->run = run_lans_apply;
}

void checkop_make_adamw(struct checkop_case *c, const struct checkop_shape *s)
{
    add_optim(c, s, ROLE_SCRATCH);
    c->run = run_adamw;
}

RUN(nesterov)
{
    o->nesterov(x, t[SUMS], buffers_of(t), c->spans, c->n_spans, t[NORM], t[SCALARS]);
}

void checkop_make_nesterov(struct checkop_case *c, const struct checkop_shape *s)
{
    add_optim(c, s, ROLE_INOUT);
    add(c, matrix("sums", ROLE_INOUT, KIND_F64, own_chunks(c), 1));
    c->run = run_nesterov;
}

RUN(unit)
{
    (void)c;
    o->unit(x, t[0], t[1], t[2]);
}

/* `plain`: of a matrix whose sums are 0. */
void checkop_make_unit(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", ROLE_OUT, KIND_A, s->t, s->h));
    add(c, matrix("in", ROLE_IN, KIND_W, s->t, s->h));
    add(c, filled(matrix("sums", ROLE_IN, KIND_F64, s->f, 1), FILL_SQUARES, s->plain ? 0 : 1));
    c->run = run_unit;
}

RUN(matrix_polynomial)
{
    o->matrix_polynomial(x, t[c->shape.shared ? 1 : 0], t[1], t[2], 3.5, -4.75, 2);
}

/* `shared`: the polynomial takes the matrix's place. */
void checkop_make_matrix_polynomial(struct checkop_case *c, const struct checkop_shape *s)
{
    add(c, matrix("out", s->shared ? ROLE_SCRATCH : ROLE_OUT, KIND_A, s->h, s->h));
    add(c, matrix("in", s->shared ? ROLE_INOUT : ROLE_IN, KIND_A, s->h, s->h));
    add(c, matrix("square", ROLE_IN, KIND_A, s->h, s->h));
    c->run = run_matrix_polynomial;
}

enum { DIRECTION = SUMS };

RUN(descend)
{
    o->descend(x, buffers_of(t), &c->spans[0], t[DIRECTION], t[NORM], t[SCALARS]);
}

/* Of a matrix behind another one. */
void checkop_make_descend(struct checkop_case *c, const struct checkop_shape *s)
{
    struct checkop_shape flat = *s;
    flat.t = s->t * s->h + 8;
    add_optim(c, &flat, ROLE_IN);
    c->spans[0] = (struct optim_span){
        .offset = 8, .n = s->t * s->h, .weight_decay = s->plain ? 0 : 0.1, .rate = 0.5, .rows = s->t};
    c->n_spans = 1;
    add(c, matrix("in", ROLE_IN, KIND_A, s->t, s->h));
    c->run = run_descend;
}
