#include "nn/sequence_means.h"

void sequence_means_carve(struct sequence_means *m, struct arena *arena, const struct layer_form *form,
                          enum dtype dtype, bool kept, int64_t n_tokens)
{
    int64_t t = n_tokens, h = form->hidden;
    *m = (struct sequence_means){.zeros = arena_carve_2d(arena, dtype, t, h),
                                 .means = arena_carve_2d(arena, dtype, t, h)};
    m->lse = arena_carve_2d(arena, dtype_of_vectors(dtype), t, h / form->head_size);
    if (kept) {
        m->dmeans = arena_carve_2d(arena, dtype, t, h);
        m->dq = arena_carve_2d(arena, dtype, t, h);
        m->dk = arena_carve_2d(arena, dtype, t, h);
    }
}

static struct attention uniform(const struct layer_call *call)
{
    const struct stream *s = call->stream;
    return (struct attention){.cu_seqlens_q = s->cu_seqlens,
                              .cu_seqlens_kv = s->cu_seqlens,
                              .max_seqlen_q = s->max_seqlen,
                              .max_seqlen_kv = s->max_seqlen,
                              .n_pairs = s->n_pairs,
                              .scale = 1,
                              .row_keys = s->row_keys};
}

/* [T, H] as heads of the size of the layers'. */
static tensor heads(tensor t, const struct layer_call *call)
{
    return tensor_split_heads(t, t.dims[1] / call->form->head_size);
}

void sequence_means_forward(struct exec *x, const struct sequence_means *m, tensor h,
                            const struct layer_call *call)
{
    /* m = softmax(0) h */
    tensor zeros = heads(m->zeros, call);
    x->ops->fill(x, m->zeros, 0);
    x->ops->attention(x, heads(m->means, call), m->lse, zeros, zeros, heads(h, call), uniform(call));
}

void sequence_means_backward(struct exec *x, const struct sequence_means *m, tensor dh, tensor h,
                             const struct layer_call *call)
{
    tensor zeros = heads(m->zeros, call);
    x->ops->attention_backward(x, heads(m->dq, call), heads(m->dk, call), heads(dh, call), NULL_TENSOR,
                               heads(m->dmeans, call), heads(m->means, call), m->lse, zeros, zeros,
                               heads(h, call), uniform(call));
}
