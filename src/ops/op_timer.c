#include "ops/op_timer.h"

#include "core/clock.h"

#include <stdlib.h>
#include <string.h>

/* Every slot of struct ops. */
/* clang-format off */
#define SLOTS(_)                                                                                             \
    _(fill) _(cast) _(sum) _(find_nonfinite)                                                                 \
    _(linear) _(linear_gelu) _(linear_backward_input) _(linear_backward_weight)                              \
    _(gelu_backward) _(tanh) _(tanh_backward)                                                                \
    _(embed) _(embed_backward) _(layernorm) _(layernorm_backward)                                            \
    _(bias_dropout_add_layernorm) _(bias_dropout_add_layernorm_backward)                                     \
    _(attention) _(attention_backward) _(gather_rows) _(scatter_add_rows)                                    \
    _(cross_entropy) _(span_cross_entropy) _(global_norm) _(lamb) _(adamw)
/* clang-format on */

enum slot {
#define SLOT_OF(slot) SLOT_##slot,
    SLOTS(SLOT_OF) N_SLOTS
};

_Static_assert((int)N_SLOTS == (int)OP_TIMER_N_OPS, "the header tells how many ops there are");
_Static_assert(sizeof(struct ops) == sizeof(const char *) + N_SLOTS * sizeof(void (*)(void)),
               "a slot of ops.h is missing here");

static const char *const names[] = {
#define NAME_OF(slot) #slot,
    SLOTS(NAME_OF)};

static struct op_timer *timer_of(const struct exec *x)
{
    return (struct op_timer *)x->ops;
}

static void note(struct op_timer *t, enum slot slot, const struct exec *x, int64_t start_ns,
                 const struct exec_totals *cost, const tensor *shapes, int n_shapes)
{
    struct op_total *total = &t->totals[slot];
    struct op_event e = {
        .op = names[slot],
        .layer = x->layer,
        .layer_index = x->layer_index,
        .start_ns = start_ns,
        .end_ns = clock_ns(),
        .flops = cost->flops,
        .bytes = cost->bytes,
        .n_shapes = n_shapes,
    };
    for (int i = 0; i < n_shapes; i++) {
        e.shapes[i] = (struct op_shape){.dtype = shapes[i].dtype, .n_dims = shapes[i].n_dims};
        memcpy(e.shapes[i].dims, shapes[i].dims, sizeof shapes[i].dims);
    }
    total->n_calls++;
    total->ns += e.end_ns - start_ns;
    total->flops += e.flops;
    total->bytes += e.bytes;
    if (t->n_events < t->capacity) {
        t->events[t->n_events++] = e;
    } else {
        t->n_left_out++;
    }
}

#define UNPACK(...) __VA_ARGS__
#define COUNT(...)  (int)(sizeof((const tensor[]){__VA_ARGS__}) / sizeof(tensor))

/* A slot: parameters, the same as arguments, and the tensors whose shapes say what it was called with. */
#define TIMED(slot, parameters, arguments, ...)                                                              \
    static void timed_##slot(struct exec *x, UNPACK parameters)                                              \
    {                                                                                                        \
        struct op_timer *t = timer_of(x);                                                                    \
        struct exec counted = {.layer = x->layer, .layer_index = x->layer_index};                            \
        ops_plan.slot(&counted, UNPACK arguments);                                                           \
        int64_t start_ns = clock_ns();                                                                       \
        t->inner->slot(x, UNPACK arguments);                                                                 \
        note(t, SLOT_##slot, x, start_ns, &counted.totals, (const tensor[]){__VA_ARGS__},                    \
             COUNT(__VA_ARGS__));                                                                            \
    }

TIMED(fill, (tensor out, double value), (out, value), out)
TIMED(cast, (tensor out, tensor in), (out, in), out, in)
TIMED(sum, (tensor total, tensor in), (total, in), in)
TIMED(find_nonfinite, (tensor index, tensor in), (index, in), in)

TIMED(linear, (tensor out, tensor in, tensor w, tensor bias), (out, in, w, bias), out, in, w)
TIMED(linear_gelu, (tensor out, tensor pre, tensor in, tensor w, tensor bias), (out, pre, in, w, bias), out,
      in, w)
TIMED(linear_backward_input, (tensor din, tensor dout, tensor w, bool accumulate), (din, dout, w, accumulate),
      din, dout, w)
TIMED(linear_backward_weight, (tensor dw, tensor dbias, tensor dout, tensor in), (dw, dbias, dout, in), dw,
      dout, in)
TIMED(gelu_backward, (tensor dpre, tensor dout, tensor pre), (dpre, dout, pre), dpre)
TIMED(tanh, (tensor out, tensor in), (out, in), out)
TIMED(tanh_backward, (tensor din, tensor dout, tensor out), (din, dout, out), din)

TIMED(embed,
      (tensor out, tensor sum, tensor mean, tensor rstd, tensor ids, tensor types, tensor positions,
       tensor word, tensor position, tensor type, tensor gamma, tensor beta, double eps, tensor row_keys,
       struct dropout drop),
      (out, sum, mean, rstd, ids, types, positions, word, position, type, gamma, beta, eps, row_keys, drop),
      out, word)
TIMED(embed_backward,
      (tensor dsum, tensor dword, tensor dposition, tensor dtype, tensor dgamma, tensor dbeta, tensor dout,
       tensor sum, tensor mean, tensor rstd, tensor ids, tensor types, tensor positions, tensor gamma,
       tensor row_keys, struct dropout drop),
      (dsum, dword, dposition, dtype, dgamma, dbeta, dout, sum, mean, rstd, ids, types, positions, gamma,
       row_keys, drop),
      dword, dsum)
TIMED(layernorm, (tensor out, tensor mean, tensor rstd, tensor in, tensor gamma, tensor beta, double eps),
      (out, mean, rstd, in, gamma, beta, eps), out)
TIMED(layernorm_backward,
      (tensor din, tensor dgamma, tensor dbeta, tensor dout, tensor in, tensor mean, tensor rstd,
       tensor gamma),
      (din, dgamma, dbeta, dout, in, mean, rstd, gamma), din)
TIMED(bias_dropout_add_layernorm,
      (tensor out, tensor sum, tensor mean, tensor rstd, tensor in, tensor bias, tensor residual,
       tensor gamma, tensor beta, double eps, tensor row_keys, struct dropout drop),
      (out, sum, mean, rstd, in, bias, residual, gamma, beta, eps, row_keys, drop), out)
TIMED(bias_dropout_add_layernorm_backward,
      (tensor dresidual, tensor din, tensor dbias, tensor dgamma, tensor dbeta, tensor dout, tensor sum,
       tensor mean, tensor rstd, tensor gamma, tensor row_keys, struct dropout drop),
      (dresidual, din, dbias, dgamma, dbeta, dout, sum, mean, rstd, gamma, row_keys, drop), din)

TIMED(attention, (tensor out, tensor lse, tensor q, tensor k, tensor v, struct attention a),
      (out, lse, q, k, v, a), q, k)
TIMED(attention_backward,
      (tensor dq, tensor dk, tensor dv, tensor dout, tensor out, tensor lse, tensor q, tensor k, tensor v,
       struct attention a),
      (dq, dk, dv, dout, out, lse, q, k, v, a), dq, dk)
TIMED(gather_rows, (tensor out, tensor in, tensor rows), (out, in, rows), out, in)
TIMED(scatter_add_rows, (tensor din, tensor dout, tensor rows), (din, dout, rows), din, dout)

TIMED(cross_entropy,
      (tensor loss, tensor correct, tensor dlogits, tensor logits, tensor labels, int64_t n_classes,
       double scale),
      (loss, correct, dlogits, logits, labels, n_classes, scale), logits)
TIMED(span_cross_entropy,
      (tensor loss, tensor correct, tensor dlogits, tensor logits, tensor cu_seqlens, tensor labels,
       double scale),
      (loss, correct, dlogits, logits, cu_seqlens, labels, scale), logits)

TIMED(global_norm, (tensor norm, tensor in, const struct optim_span *spans, int64_t n_spans),
      (norm, in, spans, n_spans), in)
TIMED(lamb,
      (struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars),
      (b, spans, n_spans, norm, scalars), b.master)
TIMED(adamw,
      (struct optim_buffers b, const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars),
      (b, spans, n_spans, norm, scalars), b.master)

static const struct ops timed = {.name = "timed",
#define ENTRY_OF(slot) .slot = timed_##slot,
                                 SLOTS(ENTRY_OF)};

struct status op_timer_init(struct op_timer *t, int64_t capacity)
{
    *t = (struct op_timer){.table = timed, .capacity = capacity};
    t->events = calloc((size_t)capacity + 1, sizeof *t->events);
    if (t->events == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the times of %lld calls", (long long)capacity);
    }
    op_timer_clear(t);
    return status_ok();
}

void op_timer_fini(struct op_timer *t)
{
    free(t->events);
    t->events = NULL;
}

void op_timer_attach(struct op_timer *t, struct exec *x)
{
    CHECK(x->ops != &t->table, "ops are timed already");
    t->inner = x->ops;
    x->ops = &t->table;
}

void op_timer_detach(struct op_timer *t, struct exec *x)
{
    CHECK(x->ops == &t->table, "ops are not timed");
    x->ops = t->inner;
}

void op_timer_clear(struct op_timer *t)
{
    t->n_events = t->n_left_out = 0;
    for (int i = 0; i < OP_TIMER_N_OPS; i++) {
        t->totals[i] = (struct op_total){.op = names[i]};
    }
}

bool op_timer_knows(const char *op)
{
    for (int i = 0; i < OP_TIMER_N_OPS; i++) {
        if (strcmp(names[i], op) == 0) {
            return true;
        }
    }
    return false;
}
