#include "model/part_sink.h"

#include <stdlib.h>
#include <string.h>

static struct status place(void *self, const struct param *p, tensor *values)
{
    struct part_sink *s = self;
    const struct param *own = param_table_find(s->params, p->name);
    *values = NULL_TENSOR;
    if (own == NULL) {
        return status_ok();
    }
    TRY(s->to->place(s->to->self, own, values));
    if (param_is_full(own)) {
        return status_ok();
    }
    struct param whole = *p;
    whole.offset = 0;
    free(s->memory);
    int64_t n = param_full_count(own) > param_count(p) ? param_full_count(own) : param_count(p);
    s->memory = calloc((size_t)n, dtype_bytes(values->dtype)); /* files may have fewer rows */
    *values = param_view(&whole, tensor_1d(s->memory, values->dtype, param_count(p)));
    return s->memory != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for %s, of which a part is read", p->name);
}

/* The rows of a part, each a run of elements of the whole. */
static void copy_slice(const struct param *own, tensor to, tensor whole)
{
    size_t bytes = dtype_bytes(to.dtype);
    int64_t cols = own->n_dims == 2 ? own->dims[1] : own->dims[0];
    for (int64_t i = 0; i < param_count(own); i += cols) {
        memcpy((char *)to.data + (size_t)i * bytes,
               (const char *)whole.data + (size_t)param_full_index(own, i) * bytes, (size_t)cols * bytes);
    }
}

static struct status put(void *self, const struct param *p, tensor values)
{
    struct part_sink *s = self;
    const struct param *own = param_table_find(s->params, p->name);
    tensor part = values;
    if (!param_is_full(own)) {
        TRY(s->to->place(s->to->self, own, &part));
        copy_slice(own, part, values);
    }
    return s->to->put(s->to->self, own, part);
}

static struct status current(void *self, const struct param *p, tensor *values)
{
    struct part_sink *s = self;
    const struct param *own = param_table_find(s->params, p->name);
    *values = NULL_TENSOR;
    return own == NULL ? status_ok() : s->to->current(s->to->self, own, values);
}

struct weight_sink part_sink_open(struct part_sink *s, const struct param_table *params,
                                  const struct weight_sink *to)
{
    *s = (struct part_sink){.params = params, .to = to};
    return (struct weight_sink){.self = s, .place = place, .put = put, .current = current};
}

void part_sink_close(struct part_sink *s)
{
    free(s->memory);
}
