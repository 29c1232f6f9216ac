#include "nn/vector_head.h"

#include "nn/model_measures.h"
#include "nn/text_batch_layout.h"

struct status vector_head_add(struct model *m)
{
    FAIL_IF(!m->type->learns_vectors || m->task != MODEL_TASK_ENCODER, STATUS_USAGE,
            "a model of the family %s does not learn vectors of texts here", m->type->name);
    struct batch_field *f = &m->layout.fields[TEXT_CLASS_LABELS];
    f->rows = BATCH_OF_TOKENS;
    f->width = (int)m->hidden_size;
    f->dtype = DTYPE_F32;
    f->nothing = BATCH_NO_NUMBER;
    model_add_measure(m, MEASURE_LABEL, TEXT_CLASS_LABELS);
    return status_ok();
}

bool vector_head_is_of(const struct model *m)
{
    return m->task == MODEL_TASK_ENCODER && m->layout.fields[TEXT_CLASS_LABELS].width > 0;
}

void vector_head_carve(struct vector_head_acts *a, struct arena *arena, const struct model *m,
                       enum dtype dtype, int64_t n_tokens)
{
    enum dtype vector = dtype_of_vectors(dtype);
    a->zero = arena_carve_2d(arena, vector, n_tokens, m->hidden_size);
    a->loss = arena_carve_2d(arena, vector, n_tokens, m->hidden_size);
    a->correct = arena_carve_2d(arena, DTYPE_I32, n_tokens, m->hidden_size);
}

void vector_head_learn(const struct model_pass *p, tensor dx, const struct vector_head_acts *a)
{
    const struct ops *op = p->x->ops;
    exec_enter(p->x, "vectors", -1);
    op->fill(p->x, a->zero, 0);
    op->pointwise(p->x, a->loss, a->correct, dx, a->zero, p->stream->fields[TEXT_CLASS_LABELS],
                  POINTWISE_SQUARED, tensor_slice(p->loss_scales, 0, 1));
}
