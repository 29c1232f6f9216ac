/* What clearing, norms and optimizers launch (cuda_optim.cu). */
#include "ops/cuda/forecast/cuda_traffic_parts.h"
#include "ops/workspace.h"

static const struct kernel CLEAR = {"clear_kernel", .85, 1};
static const struct kernel SQUARES = {"squares_kernel", .87, 1};
static const struct kernel ROOT_OF_SUM = {"root_of_sum_kernel", .2, 1};
static const struct kernel LAMB_DIRECTION = {"lamb_direction_kernel", .87, 1};
static const struct kernel LAMB_RATIO = {"lamb_ratio_kernel", .2, 1};
static const struct kernel LAMB_STEP = {"lamb_step_kernel", .89, 1};
static const struct kernel ADAMW = {"adamw_kernel", .87, 1};

static double span_elements(const struct optim_span *spans, int64_t n_spans, double *longest)
{
    double n = 0;
    *longest = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        n += (double)spans[s].n;
        *longest = fmax(*longest, (double)spans[s].n);
    }
    return n;
}

void cuda_traffic_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    (void)flat;
    double longest, n = span_elements(spans, n_spans, &longest);
    move(x, CLEAR, 4 * n);
}

void cuda_traffic_global_norm(struct exec *x, tensor norm, tensor in, const struct optim_span *spans,
                              int64_t n_spans)
{
    (void)norm, (void)in;
    double longest, n = span_elements(spans, n_spans, &longest), chunks = n / WORKSPACE_SPAN_CHUNK;
    move(x, SQUARES, 4 * n);
    wait(x, ROOT_OF_SUM, 2 * chunks, rounds(chunks / 4, 8 * 1024)); /* eight loads are under way at once */
}

static double working_bytes(struct optim_buffers b, double n)
{
    return tensor_is_null(b.working) ? 0 : n * (double)dtype_bytes(b.working.dtype);
}

/* Reads w, g, m, v and writes m, v, u; then reads w, u and writes w and its copy. */
void cuda_traffic_lamb(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                       int64_t n_spans, tensor norm, tensor scalars)
{
    (void)norm, (void)scalars;
    double longest, n = span_elements(spans, n_spans, &longest), chunks = n / WORKSPACE_SPAN_CHUNK;
    if (n > 0) {
        move(x, LAMB_DIRECTION, 28 * n + 16 * chunks);
        wait(x, LAMB_RATIO, 16 * chunks, rounds(longest / WORKSPACE_SPAN_CHUNK, 4 * 512));
        move(x, LAMB_STEP, 12 * n + working_bytes(b, n));
    }
}

/* Reads w, g, m, v and writes w, m, v and the copy. */
void cuda_traffic_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor norm, tensor scalars)
{
    (void)norm, (void)scalars;
    double longest, n = span_elements(spans, n_spans, &longest);
    if (n > 0) {
        move(x, ADAMW, 28 * n + working_bytes(b, n));
    }
}
