/* Layer normalisation, alone and fused with the bias, dropout and residual before it. */
#include "ops/cpu/norm_row.h"
#include "ops/cpu/row_runs.h"

enum { ROWS_PER_ITEM = 8, NUMBERS_PER_ITEM = 4096 };

struct norm_call {
    tensor out, sum, mean, rstd, in, bias, residual, gamma, beta;
    tensor dresidual, din, dout;
    const int32_t *row_keys;
    uint64_t key;
    uint32_t site, threshold;
    float scale, eps;
    bool adds;       /* the gradient is added to dresidual */
    float *partials; /* [chunks][3][cols]: dgamma, dbeta, dbias */
};

static void set_dropout(struct norm_call *c, const struct exec *x, tensor row_keys, struct dropout d)
{
    c->row_keys = row_keys.data;
    c->key = exec_dropout_key(x);
    c->site = d.site;
    c->threshold = dropout_threshold(d);
    c->scale = (float)dropout_scale(d);
}

static void draw_bits(uint16_t *bits, const struct norm_call *c, int64_t first, int64_t rows, int64_t cols)
{
    struct dropout_bits d = {c->key, c->site, 0, kernel_blocks(cols, DROPOUT_COLUMNS),
                             c->row_keys + 2 * first};
    dropout_bits(bits, d, rows);
}

static size_t bits_bytes(int64_t cols)
{
    int64_t n = dropout_bits_count(ROWS_PER_ITEM, kernel_blocks(cols, DROPOUT_COLUMNS));
    return (size_t)kernel_round_up(n * 2, 64);
}

/* Heads are short rows: an item has more of them. */
static int64_t rows_per_item(int64_t cols)
{
    int64_t n = NUMBERS_PER_ITEM / cols;
    return n > ROWS_PER_ITEM ? n : ROWS_PER_ITEM;
}

static void layernorm_item(const void *context, int64_t item, void *lane)
{
    const struct norm_call *c = context;
    int64_t cols = tensor_cols(c->in), n = rows_per_item(cols);
    int64_t end = kernel_min((item + 1) * n, tensor_rows(c->in));
    float *buffer = lane;
    for (int64_t row = item * n; row < end; row++) {
        const float *in = rows_load(c->in, row, 0, cols, buffer);
        float *out = rows_target(c->out, row, 0, buffer);
        norm_row_forward(out, rows_number(c->mean, row), rows_number(c->rstd, row), in, c->gamma.data,
                         c->beta.data, cols, c->eps);
        rows_store(c->out, row, 0, cols, out);
    }
}

static void cpu_layernorm(struct exec *x, tensor out, tensor mean, tensor rstd, tensor in, tensor gamma,
                          tensor beta, double eps)
{
    if (!accept_tensors(x, "layernorm", ACCEPT_LIST(out), ACCEPT_LIST(mean, rstd, gamma, beta)) ||
        !accept_stream(x, "layernorm", out.dtype, ACCEPT_LIST(in))) {
        return;
    }
    struct norm_call c = {.out = out, .mean = mean, .rstd = rstd, .in = in, .gamma = gamma, .beta = beta};
    c.eps = (float)eps;
    int64_t cols = tensor_cols(in);
    lanes_run(x, "layernorm", kernel_blocks(tensor_rows(in), rows_per_item(cols)),
              (size_t)cols * sizeof(float), layernorm_item, &c);
}

/* sum = residual + dropout(in); sum may be `in`.  Without bits nothing is dropped. */
static void add_plain_branch(float *sum, const float *in, const float *residual, const uint16_t *bits,
                             uint32_t threshold, float scale, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        sum[i] = residual[i] + (bits != NULL && bits[i] < threshold ? 0.0f : in[i] * scale);
    }
}

/* sum = residual + dropout(in + bias); sum may be `in`, bias NULL.  Without bits nothing is dropped. */
static void add_branch(float *sum, const float *in, const float *bias, const float *residual,
                       const uint16_t *bits, uint32_t threshold, float scale, int64_t n)
{
    if (bias == NULL) {
        add_plain_branch(sum, in, residual, bits, threshold, scale, n);
        return;
    }
    if (bits == NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            sum[i] = residual[i] + in[i] + bias[i];
        }
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        sum[i] = residual[i] + (bits[i] < threshold ? 0.0f : (in[i] + bias[i]) * scale);
    }
}

static void bias_dropout_add_item(const void *context, int64_t item, void *lane)
{
    const struct norm_call *c = context;
    int64_t cols = tensor_cols(c->in), first = item * ROWS_PER_ITEM;
    int64_t rows = kernel_min(ROWS_PER_ITEM, tensor_rows(c->in) - first);
    int64_t bits_stride = kernel_round_up(cols, DROPOUT_COLUMNS);
    uint16_t *bits = lane;
    float *buffer = (float *)((char *)lane + bits_bytes(cols));
    const float *bias = c->bias.data;
    bool keeps_sum = !tensor_is_null(c->sum);
    if (c->threshold != 0) {
        draw_bits(bits, c, first, rows, cols);
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = first + r;
        const float *in = rows_load(c->in, row, 0, cols, buffer);
        const float *residual = rows_load(c->residual, row, 0, cols, buffer + cols);
        float *sum = keeps_sum ? rows_target(c->sum, row, 0, buffer) : buffer;
        float *out = rows_target(c->out, row, 0, buffer + cols);
        add_branch(sum, in, bias, residual, c->threshold == 0 ? NULL : bits + r * bits_stride, c->threshold,
                   c->scale, cols);
        norm_row_forward(out, rows_number(c->mean, row), rows_number(c->rstd, row), sum, c->gamma.data,
                         c->beta.data, cols, c->eps);
        if (keeps_sum) {
            rows_store(c->sum, row, 0, cols, sum);
        }
        rows_store(c->out, row, 0, cols, out);
    }
}

static void cpu_bias_dropout_add_layernorm(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd,
                                           tensor in, tensor bias, tensor residual, tensor gamma, tensor beta,
                                           double eps, tensor row_keys, struct dropout drop)
{
    const char *op = "bias_dropout_add_layernorm";
    if (!accept_tensors(x, op, ACCEPT_LIST(out, in), ACCEPT_LIST(mean, rstd, bias, gamma, beta)) ||
        !accept_stream(x, op, out.dtype, ACCEPT_LIST(sum, residual)) ||
        !accept_indices(x, op, "row key", row_keys, INT32_MIN, INT64_MAX)) {
        return;
    }
    struct norm_call c = {out, sum, mean, rstd, in, bias, residual, gamma, beta, .eps = (float)eps};
    set_dropout(&c, x, row_keys, drop);
    size_t lane = bits_bytes(tensor_cols(in)) + 2 * (size_t)tensor_cols(in) * sizeof(float);
    lanes_run(x, op, kernel_blocks(tensor_rows(in), ROWS_PER_ITEM), lane, bias_dropout_add_item, &c);
}

/* A row with `more` added to it, for rows_store. */
static float *add_to_row(tensor t, int64_t row, const float *more, int64_t n, float *buffer)
{
    const float *before = rows_load(t, row, 0, n, buffer);
    float *sum = rows_target(t, row, 0, buffer);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        sum[i] = before[i] + more[i];
    }
    return sum;
}

/* One run of rows: dresidual of each row, din too if there is dropout, and the run's partial sums. */
static void backward_chunk(const void *context, int64_t chunk, void *lane)
{
    const struct norm_call *c = context;
    int64_t n_rows = tensor_rows(c->sum), cols = tensor_cols(c->sum);
    int64_t bits_stride = kernel_round_up(cols, DROPOUT_COLUMNS);
    bool with_din = !tensor_is_null(c->din);
    uint16_t *bits = lane;
    float *buffer = (float *)((char *)lane + bits_bytes(cols));
    float *dgamma = c->partials + 3 * cols * chunk, *dbeta = dgamma + cols, *dbias = dbeta + cols;
    memset(dgamma, 0, 3 * (size_t)cols * sizeof(float));
    int64_t end = row_run_begin(n_rows, chunk + 1);
    int64_t drawn = row_run_begin(n_rows, chunk), drawn_from = drawn;
    for (int64_t row = drawn; row < end; row++) {
        if (c->threshold != 0 && row == drawn) {
            drawn_from = row;
            drawn = kernel_min(end, row + ROWS_PER_ITEM);
            draw_bits(bits, c, row, drawn - row, cols);
        }
        const float *dout = rows_load(c->dout, row, 0, cols, buffer);
        const float *sum = rows_load(c->sum, row, 0, cols, buffer + cols);
        float *dresidual = c->adds ? buffer + 2 * cols : rows_target(c->dresidual, row, 0, buffer);
        float rstd = ((const float *)c->rstd.data)[row];
        if (tensor_is_null(c->mean)) {
            norm_row_rms_backward(dresidual, dgamma, dout, sum, c->gamma.data, rstd, cols);
        } else {
            norm_row_backward(dresidual, dgamma, dbeta, dout, sum, c->gamma.data,
                              ((const float *)c->mean.data)[row], rstd, cols);
        }
        if (c->adds) {
            dresidual = add_to_row(c->dresidual, row, dresidual, cols, buffer);
        }
        if (with_din) {
            float *din = rows_target(c->din, row, 0, buffer + cols);
            if (c->threshold != 0) {
                norm_row_dropout(din, dresidual, bits + (row - drawn_from) * bits_stride, c->threshold,
                                 c->scale, cols);
            } else {
                memcpy(din, dresidual, (size_t)cols * sizeof(float));
            }
#pragma omp simd
            for (int64_t i = 0; i < cols; i++) {
                dbias[i] += din[i];
            }
            rows_store(c->din, row, 0, cols, din);
        }
        rows_store(c->dresidual, row, 0, cols, dresidual);
    }
}

static void run_backward(struct exec *x, const char *op, struct norm_call *c, tensor dgamma, tensor dbeta,
                         tensor dbias)
{
    int64_t rows = tensor_rows(c->sum), cols = tensor_cols(c->sum), chunks = row_runs(rows);
    c->partials = exec_scratch(x, workspace_layernorm_backward(rows, cols));
    lanes_run(x, op, chunks, bits_bytes(cols) + 3 * (size_t)cols * sizeof(float), backward_chunk, c);
    if (chunks == 0 || failed(x->status)) {
        return;
    }
    row_runs_add(dgamma.data, c->partials, chunks, 3 * cols, cols);
    if (!tensor_is_null(dbeta)) {
        row_runs_add(dbeta.data, c->partials + cols, chunks, 3 * cols, cols);
    }
    if (!tensor_is_null(dbias)) {
        row_runs_add(dbias.data, c->partials + 2 * cols, chunks, 3 * cols, cols);
    }
}

static void cpu_layernorm_backward(struct exec *x, tensor din, tensor dgamma, tensor dbeta, tensor dout,
                                   tensor in, tensor mean, tensor rstd, tensor gamma)
{
    const char *op = "layernorm_backward";
    if (!accept_tensors(x, op, ACCEPT_LIST(din, dout), ACCEPT_LIST(dgamma, dbeta, mean, rstd, gamma)) ||
        !accept_stream(x, op, dout.dtype, ACCEPT_LIST(in))) {
        return;
    }
    struct norm_call c = {
        .sum = in, .mean = mean, .rstd = rstd, .gamma = gamma, .dresidual = din, .dout = dout};
    run_backward(x, op, &c, dgamma, dbeta, NULL_TENSOR);
}

static void cpu_bias_dropout_add_layernorm_backward(struct exec *x, tensor dresidual, tensor din,
                                                    tensor dbias, tensor dgamma, tensor dbeta, tensor dout,
                                                    tensor sum, tensor mean, tensor rstd, tensor gamma,
                                                    tensor row_keys, struct dropout drop, bool accumulate)
{
    const char *op = "bias_dropout_add_layernorm_backward";
    if (!accept_tensors(x, op, ACCEPT_LIST(din, dout),
                        ACCEPT_LIST(dbias, dgamma, dbeta, mean, rstd, gamma)) ||
        !accept_stream(x, op, dout.dtype, ACCEPT_LIST(dresidual, sum)) ||
        !accept_indices(x, op, "row key", row_keys, INT32_MIN, INT64_MAX)) {
        return;
    }
    struct norm_call c = {.sum = sum, .mean = mean, .rstd = rstd, .gamma = gamma, .adds = accumulate};
    c.dresidual = dresidual;
    c.din = din;
    c.dout = dout;
    set_dropout(&c, x, row_keys, drop);
    run_backward(x, op, &c, dgamma, dbeta, dbias);
}

KERNEL_FILL(norm, struct ops)
{
    t->layernorm = cpu_layernorm;
    t->layernorm_backward = cpu_layernorm_backward;
    t->bias_dropout_add_layernorm = cpu_bias_dropout_add_layernorm;
    t->bias_dropout_add_layernorm_backward = cpu_bias_dropout_add_layernorm_backward;
}
