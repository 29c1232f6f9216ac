#include "ops/cuda/table/cuda_context.h"

#include "ops/workspace.h"

#include <stdlib.h>

_Static_assert((int)LAUNCH_SPAN_CHUNK == (int)OPTIM_CHUNK &&
                   (int)LAUNCH_RUN_OF_SUMS == (int)WORKSPACE_RUN_OF_SUMS &&
                   (int)LAUNCH_SORTED_RUN == (int)WORKSPACE_SORTED_RUN &&
                   (int)LAUNCH_ATTENTION_TILE == (int)WORKSPACE_ATTENTION_TILE &&
                   (int)LAUNCH_MOST_MAXIMA == (int)WORKSPACE_MAXIMA,
               "kernels cut as the workspace was planned");

struct status cuda_context_fault(struct cuda_context *c)
{
    int32_t *fault = c->launch.fault;
    if (fault[0] == 0) {
        return status_ok();
    }
    fault[0] = 0;
    return status_error(STATUS_DATA, "index %d at row %d is outside of [0, %d)", fault[1], fault[3],
                        fault[2]);
}

static void free_spans(struct cuda_spans *s)
{
    cuda_memory_free((void *)s->table.spans);
    cuda_memory_free((void *)s->table.span_of_chunk);
    *s = (struct cuda_spans){0};
}

void cuda_spans_free(struct cuda_context *c)
{
    for (int i = 0; i < CUDA_CONTEXT_SPANS; i++) {
        free_spans(&c->spans[i]);
    }
}

/* The host's arrays that the device's tables are copied from. */
struct span_tables {
    struct launch_span *spans;
    int32_t *span_of_chunk;
};

static void lay_out(struct span_tables *t, const struct optim_span *spans, int64_t n)
{
    int64_t chunks = 0;
    for (int64_t i = 0; i < n; i++) {
        t->spans[i] = (struct launch_span){.offset = spans[i].offset,
                                           .n = spans[i].n,
                                           .first_chunk = chunks,
                                           .weight_decay = spans[i].weight_decay,
                                           .rate = spans[i].rate,
                                           .first_of_all = spans[i].first_chunk,
                                           .n_of_all = spans[i].n_chunks};
        for (int64_t k = 0; k < optim_chunks(&spans[i], 1); k++) {
            t->span_of_chunk[chunks++] = (int32_t)i;
        }
    }
}

static struct status upload_tables(struct cuda_spans *s, const struct span_tables *t, int64_t n,
                                   int64_t n_chunks)
{
    void *spans = NULL, *span_of_chunk = NULL;
    struct status status = cuda_memory_upload(&spans, t->spans, ((size_t)n + 1) * sizeof *t->spans);
    if (!failed(status)) {
        status = cuda_memory_upload(&span_of_chunk, t->span_of_chunk,
                                    ((size_t)n_chunks + 1) * sizeof *t->span_of_chunk);
    }
    s->table = (struct launch_spans){spans, span_of_chunk, n, n_chunks};
    return status;
}

static struct status upload(struct cuda_spans *s, const struct optim_span *spans, int64_t n)
{
    int64_t n_chunks = optim_chunks(spans, n);
    struct span_tables t = {.spans = calloc((size_t)n + 1, sizeof *t.spans),
                            .span_of_chunk = calloc((size_t)n_chunks + 1, sizeof *t.span_of_chunk)};
    struct status status = status_error(STATUS_MEMORY, "out of memory for %lld spans", (long long)n);
    if (t.spans != NULL && t.span_of_chunk != NULL) {
        lay_out(&t, spans, n);
        s->host = spans;
        status = upload_tables(s, &t, n, n_chunks);
    }
    free(t.spans);
    free(t.span_of_chunk);
    return status;
}

const struct cuda_spans *cuda_spans_of(struct exec *x, const char *op, const struct optim_span *spans,
                                       int64_t n)
{
    struct cuda_context *c = x->context;
    for (int i = 0; i < CUDA_CONTEXT_SPANS; i++) {
        if (c->spans[i].table.spans != NULL && c->spans[i].host == spans && c->spans[i].table.n_spans == n) {
            return &c->spans[i];
        }
    }
    struct cuda_spans *s = &c->spans[c->n_spans++ % CUDA_CONTEXT_SPANS];
    free_spans(s);
    struct status status = upload(s, spans, n);
    if (failed(status)) {
        free_spans(s);
        exec_fail(x, status.code, op, "%s", status.message);
        return NULL;
    }
    return s;
}
