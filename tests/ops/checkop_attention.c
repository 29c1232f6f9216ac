/* Attention. */
#include "checkop_args.h"

#include "ops/attention_bits.h"

/* Its tensors are the last four arguments, and the one before where there are bits. */
static struct attention attention_of(const struct checkop_case *c, const tensor *t)
{
    const tensor *p = t + c->n_args - 4;
    struct attention a = {.cu_seqlens_q = p[0], .cu_seqlens_kv = p[1], .row_keys = p[3], .dropout = c->drop};
    total(c->lens_q, c->n_sequences, &a.max_seqlen_q);
    total(c->lens_kv, c->n_sequences, &a.max_seqlen_kv);
    for (int i = 0; i < c->n_sequences; i++) {
        a.n_pairs += (double)c->lens_q[i] * (double)c->lens_kv[i];
    }
    a.scale = 1.0 / sqrt((double)(c->shape.h / c->shape.heads));
    a.causal = c->shape.causal;
    a.window = c->shape.window;
    a.alibi_slopes = c->shape.alibi ? p[2] : NULL_TENSOR;
    a.first_head = 1;
    a.bits = c->shape.bits ? p[-1] : NULL_TENSOR;
    return a;
}

static void add_attention_inputs(struct checkop_case *c, const struct checkop_shape *s, int64_t rows,
                                 enum checkop_role of_bits)
{
    int64_t max;
    total(c->lens_kv, c->n_sequences, &max);
    if (s->bits) {
        add(c, matrix("bits", of_bits, KIND_I32, attention_bits_rows(s->heads, max),
                      attention_bits_cols(rows, c->n_sequences)));
    }
    add(c, indices("cu_seqlens_q", c->n_sequences + 1, FILL_BOUNDS_Q, 0));
    add(c, indices("cu_seqlens_kv", c->n_sequences + 1, FILL_BOUNDS_KV, 0));
    add(c, filled(vector("slopes", ROLE_IN, KIND_W, s->heads), FILL_SLOPES, 0));
    add(c, row_keys(rows));
}

static int64_t kv_heads(const struct checkop_shape *s)
{
    return s->kv_heads > 0 ? s->kv_heads : s->heads;
}

static struct checkop_arg heads(const char *name, enum checkop_role role, const struct checkop_shape *s,
                                int64_t rows)
{
    struct checkop_arg a = {
        .name = name, .role = role, .n_dims = 3, .dims = {rows, s->heads, s->h / s->heads}};
    a.amount = 1;
    a.gap = s->strided ? 2 * s->h + s->f : 0; /* a view of one product, or of nothing known */
    return a;
}

/* Keys or values. */
static struct checkop_arg kv(const char *name, enum checkop_role role, const struct checkop_shape *s,
                             int64_t rows)
{
    struct checkop_arg a = heads(name, role, s, rows);
    a.dims[1] = kv_heads(s);
    a.gap = s->strided ? s->h + kv_heads(s) * a.dims[2] + s->f : 0;
    return a;
}

RUN(attention)
{
    o->attention(x, t[0], t[1], t[2], t[3], t[4], attention_of(c, t));
}

void checkop_make_attention(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t max, rows_q = total(c->lens_q, c->n_sequences, &max),
                 rows_kv = total(c->lens_kv, c->n_sequences, &max);
    rows_q += s->rest, rows_kv += s->rest;
    add(c, heads("out", ROLE_OUT, s, rows_q));
    c->args[0].gap = 0;
    add(c, matrix("lse", ROLE_OUT, KIND_W, rows_q, s->heads));
    add(c, heads("q", ROLE_IN, s, rows_q));
    add(c, kv("k", ROLE_IN, s, rows_kv));
    add(c, kv("v", ROLE_IN, s, rows_kv));
    add_attention_inputs(c, s, rows_q, ROLE_SCRATCH);
    c->run = run_attention;
    c->bound_fp32 = c->bound_bf16_w = 4e-6; /* exponentials of scores that were rounded to fp32 */
}

RUN(attention_backward)
{
    o->attention_backward(x, t[0], t[1], t[2], c->shape.plain ? NULL_TENSOR : t[3], t[4], t[5], t[6], t[7],
                          t[8], t[9], attention_of(c, t));
}

static void forward_attention(const struct checkop_case *c, const struct ops *o, struct exec *x,
                              const tensor *t)
{
    o->attention(x, t[5], t[6], t[7], t[8], t[9], attention_of(c, t));
}

void checkop_make_attention_backward(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t max, rows_q = total(c->lens_q, c->n_sequences, &max),
                 rows_kv = total(c->lens_kv, c->n_sequences, &max);
    rows_q += s->rest, rows_kv += s->rest;
    add(c, gradient(heads("dq", ROLE_OUT, s, rows_q), 7));
    add(c, gradient(kv("dk", ROLE_OUT, s, rows_kv), 8));
    add(c, gradient(kv("dv", ROLE_OUT, s, rows_kv), 9));
    add(c, vector("dbias", ROLE_INOUT, KIND_W, (s->heads + 2 * kv_heads(s)) * (s->h / s->heads)));
    c->seed = add(c, heads("dout", ROLE_IN, s, rows_q));
    c->args[c->seed].gap = 0;
    c->value = add(c, heads("out", ROLE_IN, s, rows_q));
    c->args[c->value].gap = 0;
    add(c, matrix("lse", ROLE_IN, KIND_W, rows_q, s->heads));
    add(c, heads("q", ROLE_IN, s, rows_q));
    add(c, kv("k", ROLE_IN, s, rows_kv));
    add(c, kv("v", ROLE_IN, s, rows_kv));
    add_attention_inputs(c, s, rows_q, ROLE_IN);
    c->run = run_attention_backward;
    c->forward = forward_attention;
    c->bound_fp32 = 1e-5;   /* lse is rounded to fp32, and enters an exponential */
    c->bound_bf16_w = 6e-3; /* probabilities and gradients of scores are rounded too; the terms cancel */
    c->bound_bf16_a = 8e-3; /* and then the result, by half a unit in the last of eight places, 4e-3 */
}

RUN(rotate)
{
    o->rotate(x, t[0], t[1], t[2], c->shape.adds);
}

/* f: columns that are turned; adds: back. */
void checkop_make_rotate(struct checkop_case *c, const struct checkop_shape *s)
{
    enum { ANGLES_OF = 37 };
    add(c, heads("heads", ROLE_INOUT, s, s->t));
    add(c, matrix("turns", ROLE_IN, KIND_F32, ANGLES_OF, s->f));
    add(c, indices("positions", s->t, FILL_INDEX, ANGLES_OF));
    c->run = run_rotate;
}

/* Pages that hold the keys of all sequences, and two more. */
static int64_t pages_of(const struct checkop_case *c, int64_t *longest)
{
    int64_t n = 2;
    *longest = 1;
    for (int i = 0; i < c->n_sequences; i++) {
        int64_t pages = (c->lens_kv[i] + OPS_CACHE_PAGE - 1) / OPS_CACHE_PAGE;
        n += pages;
        *longest = pages > *longest ? pages : *longest;
    }
    return n;
}

/* Pages of keys, whose rows are columns of tokens, or of values. */
static struct checkop_arg pages(const char *name, enum checkop_role role, const struct checkop_shape *s,
                                int64_t n, bool of_keys)
{
    int64_t d = s->h / s->heads;
    struct checkop_arg a = {
        .name = name, .role = role, .n_dims = 3, .dims = {n * kv_heads(s), d, OPS_CACHE_PAGE}};
    a.dims[1] = of_keys ? d : OPS_CACHE_PAGE;
    a.dims[2] = of_keys ? OPS_CACHE_PAGE : d;
    a.amount = 1;
    return a;
}

RUN(append_rows)
{
    (void)c;
    o->append_rows(x, t[0], t[1], t[2], t[3], t[4]);
}

void checkop_make_append_rows(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t n_pages = s->t / OPS_CACHE_PAGE * 2 + 2;
    add(c, pages("keys", ROLE_INOUT, s, n_pages, true));
    add(c, pages("values", ROLE_INOUT, s, n_pages, false));
    add(c, kv("k", ROLE_IN, s, s->t));
    add(c, kv("v", ROLE_IN, s, s->t));
    add(c, indices("slots", s->t, FILL_SLOTS, n_pages));
    c->run = run_append_rows;
}

RUN(attention_cached)
{
    struct attention a = {.cu_seqlens_q = t[4],
                          .cu_seqlens_kv = t[5],
                          .block_table = t[6],
                          .scale = 1.0 / sqrt((double)(c->shape.h / c->shape.heads)),
                          .causal = c->shape.causal,
                          .window = c->shape.window,
                          .alibi_slopes = c->shape.alibi ? t[7] : NULL_TENSOR,
                          .first_head = 1,
                          .n_kv_heads = c->shape.kv_heads};
    total(c->lens_q, c->n_sequences, &a.max_seqlen_q);
    total(c->lens_kv, c->n_sequences, &a.max_seqlen_kv);
    o->attention_cached(x, t[0], t[1], t[2], t[3], a);
}

void checkop_make_attention_cached(struct checkop_case *c, const struct checkop_shape *s)
{
    int64_t max, width, n_pages = pages_of(c, &width),
                        rows = total(c->lens_q, c->n_sequences, &max) + s->rest;
    add(c, heads("out", ROLE_OUT, s, rows));
    c->args[0].gap = 0;
    add(c, heads("q", ROLE_IN, s, rows));
    add(c, pages("keys", ROLE_IN, s, n_pages, true));
    add(c, pages("values", ROLE_IN, s, n_pages, false));
    add(c, indices("cu_seqlens_q", c->n_sequences + 1, FILL_BOUNDS_Q, 0));
    add(c, indices("cu_seqlens_kv", c->n_sequences + 1, FILL_BOUNDS_KV, 0));
    add(c,
        filled(matrix("block_table", ROLE_IN, KIND_I32, c->n_sequences, width), FILL_PAGES, (double)n_pages));
    add(c, filled(vector("slopes", ROLE_IN, KIND_W, s->heads), FILL_SLOPES, 0));
    c->run = run_attention_cached;
    c->bound_fp32 = 4e-6; /* as attention's */
}
