#include "nn/layer.h"

struct layer_form layer_form_slice(const struct layer_form *whole, const struct param_part *part)
{
    struct layer_form f = *whole;
    int n = param_part_slices(part);
    f.n_heads = whole->n_heads / n;
    f.n_kv_heads = whole->n_kv_heads / n;
    f.feed_forward = whole->feed_forward / n;
    f.first_head = part->slice * f.n_heads;
    return f;
}

int64_t layer_heads_width(const struct layer_form *form)
{
    return form->n_heads * form->head_size;
}

int64_t layer_kv_heads(const struct layer_form *form)
{
    return form->n_kv_heads > 0 ? form->n_kv_heads : form->n_heads;
}

int64_t layer_kv_width(const struct layer_form *form)
{
    return layer_kv_heads(form) * form->head_size;
}

int64_t layer_qkv_width(const struct layer_form *form)
{
    return layer_heads_width(form) + 2 * layer_kv_width(form);
}

int64_t layer_pre_width(const struct layer_form *form)
{
    return layer_is_gated(form->activation) ? 2 * form->feed_forward : form->feed_forward;
}

/* No two dropouts of a model have one site number, so no two draw the same bits for a token. */
struct dropout layer_dropout(const struct layer_call *call, enum layer_site site, double p)
{
    return (struct dropout){.p = call->training ? p : 0.0,
                            .site = (uint32_t)(call->layer * LAYER_N_SITES + site)};
}

struct fp8_factor layer_factor_of(const struct fp8_factor *f, const struct layer_call *call,
                                  enum layer_factor factor)
{
    struct fp8_factor with = *f;
    if (!tensor_is_null(call->histories)) {
        with.history = tensor_slice(call->histories, (int64_t)factor, 1);
    }
    return with;
}

int64_t layer_own_rows(struct layer_memory m)
{
    return m.n_row_parts > 1 ? m.n_tokens / m.n_row_parts : m.n_tokens;
}

/* The dropout addresses of the rows after attention. */
static tensor row_keys_of(const struct exec *x, const struct layer_call *call)
{
    return call->picks != NULL ? call->picks->row_keys : stream_own(x, call->stream, call->stream->row_keys);
}

void layer_scratch_carve(struct layer_scratch *s, struct arena *arena, const struct layer_form *form,
                         struct layer_memory m)
{
    int64_t t = m.n_tokens, h = form->hidden, f = layer_pre_width(form), qkv = layer_qkv_width(form);
    s->branch = fp8_source_carve(arena, m.fp8, m.dtype, t, h);
    s->dh = arena_carve_2d(arena, m.dtype, t, h);
    s->whole = m.n_row_parts > 1 ? arena_carve_2d(arena, m.stream, t, h) : NULL_TENSOR;
    s->dheads = arena_carve_2d(arena, m.dtype, t, layer_heads_width(form));
    s->dff = fp8_source_carve(arena, m.fp8, m.dtype, t, f);
    s->dact = f == form->feed_forward ? s->dff : arena_carve_2d(arena, m.dtype, t, form->feed_forward);
    s->dqkv = arena_carve_2d(arena, m.dtype, t, qkv);
    fp8_factor_carve(&s->fp8_branch, arena, m.fp8, DTYPE_E5M2, t, h);
    fp8_factor_carve(&s->fp8_dff, arena, m.fp8, DTYPE_E5M2, t, f);
    fp8_factor_carve(&s->fp8_dqkv, arena, m.fp8, DTYPE_E5M2, t, qkv);
}

struct layer_scratch layer_scratch_picked(const struct layer_scratch *s, const struct row_picks *picks)
{
    struct layer_scratch rows = *s;
    if (picks != NULL) {
        rows.branch = row_picks_view(picks, s->branch);
        rows.dh = row_picks_view(picks, s->dh);
        rows.dff = row_picks_view(picks, s->dff);
        rows.dact = row_picks_view(picks, s->dact);
        rows.dheads = picks->dheads;
    }
    return rows;
}

void norm_carve_statistics(struct norm_acts *a, struct arena *arena, enum layer_norm norm, enum dtype dtype,
                           int64_t n)
{
    enum dtype vector = dtype_of_vectors(dtype);
    a->mean = norm == LAYER_NORM_RMS ? NULL_TENSOR : arena_carve_1d(arena, vector, n);
    a->rstd = arena_carve_1d(arena, vector, n);
}

void norm_carve(struct norm_acts *a, struct arena *arena, const struct layer_form *form,
                struct layer_memory m)
{
    int64_t n = layer_own_rows(m);
    a->sum = arena_carve_2d(arena, m.stream, n, form->hidden);
    norm_carve_statistics(a, arena, form->norm, m.dtype, n);
}

struct norm_acts norm_picked(const struct norm_acts *a, const struct row_picks *picks)
{
    return picks == NULL ? *a
                         : (struct norm_acts){row_picks_view(picks, a->sum), row_picks_view(picks, a->mean),
                                              row_picks_view(picks, a->rstd)};
}

void norm_forward(struct exec *x, const struct norm *n, tensor out, tensor branch, tensor bias,
                  tensor residual, const struct layer_call *call)
{
    const struct norm_acts *a = n->acts;
    x->ops->bias_dropout_add_layernorm(x, out, a->sum, a->mean, a->rstd, branch, bias, residual, n->w->gamma,
                                       n->w->beta, call->form->norm_eps, row_keys_of(x, call),
                                       layer_dropout(call, n->site, call->form->dropout));
}

void norm_backward(struct exec *x, const struct norm *n, struct gradient dresidual, tensor dbranch,
                   tensor dbias, tensor dout, const struct layer_call *call)
{
    const struct norm_acts *a = n->acts;
    x->ops->bias_dropout_add_layernorm_backward(
        x, dresidual.of, dbranch, dbias, n->g->gamma, n->g->beta, dout, a->sum, a->mean, a->rstd, n->w->gamma,
        row_keys_of(x, call), layer_dropout(call, n->site, call->form->dropout), dresidual.adds);
}

void residual_forward(struct exec *x, tensor out, tensor branch, tensor residual,
                      const struct layer_call *call, enum layer_site site)
{
    struct dropout drop = layer_dropout(call, site, call->form->dropout);
    if (drop.p > 0) {
        x->ops->dropout(x, branch, branch, row_keys_of(x, call), drop);
    }
    x->ops->residual_add(x, out, residual, branch);
}

tensor residual_backward(struct exec *x, tensor dbranch, tensor dout, const struct layer_call *call,
                         enum layer_site site)
{
    struct dropout drop = layer_dropout(call, site, call->form->dropout);
    dout = stream_narrow(x, dbranch, dout);
    if (drop.p == 0) {
        return dout;
    }
    x->ops->dropout(x, dbranch, dout, row_keys_of(x, call), drop);
    return dbranch;
}
