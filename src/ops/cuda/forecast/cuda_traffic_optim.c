/* The launches of clearing, norms and optimizers (cuda_optim.cu). */
#include "ops/cuda/forecast/cuda_traffic_parts.h"
#include "ops/workspace.h"

static const struct kernel CLEAR = {"clear_kernel", .85, 1};
static const struct kernel SQUARES = {"squares_kernel", .87, 1};
static const struct kernel SUM_RUNS = {"sum_runs_kernel", .45, 1};
static const struct kernel ROOT_OF_SUM = {"root_of_sum_kernel", .2, 1};
static const struct kernel LAMB_DIRECTION = {"lamb_direction_kernel", .87, 1};
static const struct kernel LAMB_RATIO = {"lamb_ratio_kernel", .2, 1};
static const struct kernel LAMB_STEP = {"lamb_step_kernel", .89, 1};
static const struct kernel LANS_FACTOR = {"lans_factor_kernel", .2, 1};
static const struct kernel LANS_DIRECTION = {"lans_direction_kernel", .87, 1};
static const struct kernel LANS_RATIO = {"lans_ratio_kernel", .2, 1};
static const struct kernel LANS_STEP = {"lans_step_kernel", .87, 1};
static const struct kernel ADAMW = {"adamw_kernel", .87, 1};
static const struct kernel NESTEROV = {"nesterov_kernel", .87, 1};
static const struct kernel UNIT = {"unit_kernel", .85, 1};
static const struct kernel POLYNOMIAL = {"matrix_polynomial_kernel", .85, 1};
static const struct kernel DESCEND = {"descend_kernel", .85, 1};

static double span_elements(const struct optim_span *spans, int64_t n_spans)
{
    double n = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        n += (double)spans[s].n;
    }
    return n;
}

void cuda_traffic_clear(struct exec *x, tensor flat, const struct optim_span *spans, int64_t n_spans)
{
    (void)flat;
    double n = span_elements(spans, n_spans);
    move(x, CLEAR, 4 * n);
}

void cuda_traffic_squares(struct exec *x, tensor sums, tensor in, const struct optim_span *spans,
                          int64_t n_spans)
{
    (void)in;
    move(x, SQUARES, 4 * span_elements(spans, n_spans) + bytes_of(sums));
}

void cuda_traffic_norm_of(struct exec *x, tensor norm, tensor sums)
{
    (void)norm;
    double n = (double)tensor_count(sums), runs = (double)workspace_runs_of_sums(tensor_count(sums));
    if (runs > 0) {
        move(x, SUM_RUNS, 8 * n);
    }
    n = runs > 0 ? runs : n;
    wait(x, ROOT_OF_SUM, 8 * n, rounds(n, WORKSPACE_SUMS_AT_ONCE)); /* eight loads are in flight at once */
}

static double working_bytes(struct optim_buffers b, double n)
{
    return tensor_is_null(b.working) ? 0 : n * (double)dtype_bytes(b.working.dtype);
}

/* Reads w, g, m, v and writes m, v, u. */
void cuda_traffic_lamb_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                 const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    (void)b, (void)norm, (void)scalars;
    double n = span_elements(spans, n_spans);
    if (n > 0) {
        move(x, LAMB_DIRECTION, 28 * n + bytes_of(sums));
    }
}

/* A block adds `columns` sums of each chunk of a span's whole parameter. */
static void wait_for_sums(struct exec *x, struct kernel kernel, int columns, const struct optim_span *spans,
                          int64_t n_spans)
{
    double chunks = 0, most = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        chunks += (double)spans[s].n_chunks;
        most = fmax(most, (double)spans[s].n_chunks);
    }
    wait(x, kernel, 8 * columns * chunks, rounds(most, 4 * 512));
}

/* The second half of an update: ratios by sums of `columns`, then a step that moves so many bytes an element beside the copy. */
static void apply(struct exec *x, struct kernel ratio, int columns, struct kernel step, double element_bytes,
                  struct optim_buffers b, const struct optim_span *spans, int64_t n_spans)
{
    double n = span_elements(spans, n_spans);
    if (n > 0) {
        wait_for_sums(x, ratio, columns, spans, n_spans);
        move(x, step, element_bytes * n + working_bytes(b, n));
    }
}

/* Reads w, u and writes w and its copy. */
void cuda_traffic_lamb_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                             int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    (void)sums, (void)norm, (void)scalars;
    apply(x, LAMB_RATIO, 2, LAMB_STEP, 12, b, spans, n_spans);
}

/* Reads w, g, m, v and writes m, v, g. */
void cuda_traffic_lans_direction(struct exec *x, tensor sums, struct optim_buffers b,
                                 const struct optim_span *spans, int64_t n_spans, tensor squares, tensor norm,
                                 tensor scalars)
{
    (void)b, (void)squares, (void)norm, (void)scalars;
    double n = span_elements(spans, n_spans);
    if (n > 0) {
        wait_for_sums(x, LANS_FACTOR, 1, spans, n_spans);
        move(x, LANS_DIRECTION, 28 * n + bytes_of(sums));
    }
}

/* Reads w, g, m, v and writes w and its copy. */
void cuda_traffic_lans_apply(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                             int64_t n_spans, tensor sums, tensor norm, tensor scalars)
{
    (void)sums, (void)norm, (void)scalars;
    apply(x, LANS_RATIO, 3, LANS_STEP, 20, b, spans, n_spans);
}

/* Reads w, g, m, v and writes w, m, v and the copy. */
void cuda_traffic_adamw(struct exec *x, struct optim_buffers b, const struct optim_span *spans,
                        int64_t n_spans, tensor norm, tensor scalars)
{
    (void)norm, (void)scalars;
    double n = span_elements(spans, n_spans);
    if (n > 0) {
        move(x, ADAMW, 28 * n + working_bytes(b, n));
    }
}

/* Reads g, m and writes m, u. */
void cuda_traffic_nesterov(struct exec *x, tensor sums, struct optim_buffers b,
                           const struct optim_span *spans, int64_t n_spans, tensor norm, tensor scalars)
{
    (void)b, (void)norm, (void)scalars;
    double n = span_elements(spans, n_spans);
    if (n > 0) {
        move(x, NESTEROV, 16 * n + bytes_of(sums));
    }
}

void cuda_traffic_unit(struct exec *x, tensor out, tensor in, tensor sums)
{
    cuda_traffic_norm_of(x, sums, sums);
    move(x, UNIT, bytes_of(out) + bytes_of(in));
}

void cuda_traffic_matrix_polynomial(struct exec *x, tensor out, tensor in, tensor square, double a, double b,
                                    double c)
{
    (void)a, (void)b, (void)c;
    move(x, POLYNOMIAL, bytes_of(out) + bytes_of(in) + bytes_of(square));
}

/* Reads w, u and writes w and its copy. */
void cuda_traffic_descend(struct exec *x, struct optim_buffers b, const struct optim_span *span, tensor in,
                          tensor norm, tensor scalars)
{
    (void)norm, (void)scalars;
    move(x, DESCEND, 8 * (double)span->n + bytes_of(in) + working_bytes(b, (double)span->n));
}
