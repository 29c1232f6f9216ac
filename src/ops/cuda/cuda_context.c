#include "ops/cuda/cuda_context.h"
#include "ops/workspace.h"

#include <stdlib.h>

_Static_assert((int)LAUNCH_SPAN_CHUNK == (int)WORKSPACE_SPAN_CHUNK &&
                   (int)LAUNCH_ROW_CHUNKS == (int)WORKSPACE_ROW_CHUNKS &&
                   (int)LAUNCH_NORM_CHUNKS == (int)WORKSPACE_NORM_CHUNKS,
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
    cuda_context_free(s->spans);
    cuda_context_free(s->ratios);
    *s = (struct cuda_spans){0};
}

void cuda_spans_free(struct cuda_context *c)
{
    for (int i = 0; i < CUDA_CONTEXT_SPANS; i++) {
        free_spans(&c->spans[i]);
    }
}

/* Number of chunks of all spans; their first ones into `out`. */
static int64_t lay_out(struct launch_span *out, const struct optim_span *spans, int64_t n)
{
    int64_t chunks = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = (struct launch_span){spans[i].offset, spans[i].n, chunks, spans[i].weight_decay};
        chunks += (spans[i].n + LAUNCH_SPAN_CHUNK - 1) / LAUNCH_SPAN_CHUNK;
    }
    return chunks;
}

static struct status upload(struct cuda_spans *s, const struct optim_span *spans, int64_t n)
{
    struct launch_span *laid_out = calloc((size_t)n + 1, sizeof *laid_out);
    double *ratios = calloc((size_t)n + 1, sizeof *ratios);
    struct status status = laid_out == NULL || ratios == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for %lld spans", (long long)n)
                               : status_ok();
    if (!failed(status)) {
        *s = (struct cuda_spans){.host = spans, .n = n, .n_chunks = lay_out(laid_out, spans, n)};
        status = cuda_context_upload((void **)&s->spans, laid_out, ((size_t)n + 1) * sizeof *laid_out);
    }
    if (!failed(status)) {
        status = cuda_context_upload((void **)&s->ratios, ratios, ((size_t)n + 1) * sizeof *ratios);
    }
    free(ratios);
    free(laid_out);
    return status;
}

const struct cuda_spans *cuda_spans_of(struct exec *x, const char *op, const struct optim_span *spans,
                                       int64_t n)
{
    struct cuda_context *c = x->context;
    for (int i = 0; i < CUDA_CONTEXT_SPANS; i++) {
        if (c->spans[i].spans != NULL && c->spans[i].host == spans && c->spans[i].n == n) {
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
