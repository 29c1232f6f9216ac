/* The three embeddings of BERT with their layer normalisation and dropout.  The backward adds the rows of
 * dsum to the tables by blocks of columns: each thread owns columns, so rows are added to every element in
 * the order of the stream. */
#include "ops/cpu/norm_row.h"
#include "ops/cpu/row_runs.h"

enum { ROWS_PER_ITEM = 8, COLUMNS_PER_ITEM = 64 };

struct embed_call {
    tensor out, sum, word, position, type; /* in the backward: dsum in `out`, the gradients in the tables */
    tensor dout;
    float *mean, *rstd;
    const float *gamma, *beta;
    const int32_t *ids, *types, *positions;
    struct dropout_bits bits;
    uint32_t threshold;
    float scale, eps;
    float *partials; /* [chunks][2][cols]: dgamma, dbeta */
};

static struct embed_call embed_call(const struct exec *x, int64_t cols, tensor ids, tensor types,
                                    tensor positions, tensor row_keys, struct dropout d)
{
    return (struct embed_call){
        .ids = ids.data,
        .types = types.data,
        .positions = positions.data,
        .bits = {exec_dropout_key(x), d.site, 0, kernel_blocks(cols, DROPOUT_COLUMNS), row_keys.data},
        .threshold = dropout_threshold(d),
        .scale = (float)dropout_scale(d),
    };
}

static bool accept_rows(struct exec *x, const char *op, tensor ids, tensor types, tensor positions,
                        tensor word, tensor position, tensor type, tensor row_keys)
{
    return accept_indices(x, op, "token id", ids, 0, tensor_rows(word)) &&
           accept_indices(x, op, "segment", types, 0, tensor_rows(type)) &&
           accept_indices(x, op, "position", positions, 0, tensor_rows(position)) &&
           accept_indices(x, op, "row key", row_keys, INT32_MIN, INT64_MAX);
}

static size_t bits_bytes(int64_t cols)
{
    int64_t n = dropout_bits_count(ROWS_PER_ITEM, kernel_blocks(cols, DROPOUT_COLUMNS));
    return (size_t)kernel_round_up(n * 2, 64);
}

static void draw_bits(uint16_t *bits, const struct embed_call *c, int64_t first, int64_t rows)
{
    struct dropout_bits d = c->bits;
    d.row_keys += 2 * first;
    dropout_bits(bits, d, rows);
}

static void embed_item(const void *context, int64_t item, void *lane)
{
    const struct embed_call *c = context;
    int64_t cols = tensor_cols(c->out), first = item * ROWS_PER_ITEM;
    int64_t rows = kernel_min(ROWS_PER_ITEM, tensor_rows(c->out) - first);
    uint16_t *bits = lane;
    float *buffer = (float *)((char *)lane + bits_bytes(cols));
    bool keeps_sum = !tensor_is_null(c->sum);
    if (c->threshold != 0) {
        draw_bits(bits, c, first, rows);
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = first + r;
        const float *word = rows_load(c->word, c->ids[row], 0, cols, buffer);
        const float *position = rows_load(c->position, c->positions[row], 0, cols, buffer + cols);
        const float *type = rows_load(c->type, c->types[row], 0, cols, buffer + 2 * cols);
        float *sum = keeps_sum ? rows_target(c->sum, row, 0, buffer) : buffer;
        float *out = rows_target(c->out, row, 0, buffer + cols);
#pragma omp simd
        for (int64_t i = 0; i < cols; i++) {
            sum[i] = word[i] + position[i] + type[i];
        }
        norm_row_forward(out, keeps_sum ? c->mean + row : NULL, keeps_sum ? c->rstd + row : NULL, sum,
                         c->gamma, c->beta, cols, c->eps);
        if (c->threshold != 0) {
            const uint16_t *b = bits + r * c->bits.n_blocks * DROPOUT_COLUMNS;
            norm_row_dropout(out, out, b, c->threshold, c->scale, cols);
        }
        if (keeps_sum) {
            rows_store(c->sum, row, 0, cols, sum);
        }
        rows_store(c->out, row, 0, cols, out);
    }
}

static void cpu_embed(struct exec *x, tensor out, tensor sum, tensor mean, tensor rstd, tensor ids,
                      tensor types, tensor positions, tensor word, tensor position, tensor type, tensor gamma,
                      tensor beta, double eps, tensor row_keys, struct dropout drop)
{
    const char *op = "embed";
    if (!accept_tensors(x, op, ACCEPT_LIST(out, sum, word, position, type),
                        ACCEPT_LIST(mean, rstd, gamma, beta)) ||
        !accept_rows(x, op, ids, types, positions, word, position, type, row_keys)) {
        return;
    }
    int64_t cols = tensor_cols(out);
    struct embed_call c = embed_call(x, cols, ids, types, positions, row_keys, drop);
    c.out = out;
    c.sum = sum;
    c.word = word;
    c.position = position;
    c.type = type;
    c.mean = mean.data;
    c.rstd = rstd.data;
    c.gamma = gamma.data;
    c.beta = beta.data;
    c.eps = (float)eps;
    lanes_run(x, op, kernel_blocks(tensor_rows(out), ROWS_PER_ITEM),
              bits_bytes(cols) + 3 * (size_t)cols * sizeof(float), embed_item, &c);
}

static void dsum_chunk(const void *context, int64_t chunk, void *lane)
{
    const struct embed_call *c = context;
    int64_t n_rows = tensor_rows(c->sum), cols = tensor_cols(c->sum);
    uint16_t *bits = lane;
    float *buffer = (float *)((char *)lane + bits_bytes(cols));
    float *dgamma = c->partials + 2 * cols * chunk, *dbeta = dgamma + cols;
    memset(dgamma, 0, 2 * (size_t)cols * sizeof(float));
    for (int64_t row = row_run_begin(n_rows, chunk); row < row_run_begin(n_rows, chunk + 1); row++) {
        const float *dout = rows_load(c->dout, row, 0, cols, buffer);
        const float *sum = rows_load(c->sum, row, 0, cols, buffer + cols);
        float *dsum = rows_target(c->out, row, 0, buffer);
        if (c->threshold != 0) {
            draw_bits(bits, c, row, 1);
            norm_row_dropout(buffer, dout, bits, c->threshold, c->scale, cols);
            dout = buffer;
        }
        norm_row_backward(dsum, dgamma, dbeta, dout, sum, c->gamma, c->mean[row], c->rstd[row], cols);
        rows_store(c->out, row, 0, cols, dsum);
    }
}

static void scatter_item(const void *context, int64_t item, void *lane)
{
    const struct embed_call *c = context;
    int64_t first = item * COLUMNS_PER_ITEM, n = kernel_min(COLUMNS_PER_ITEM, tensor_cols(c->sum) - first);
    for (int64_t row = 0; row < tensor_rows(c->sum); row++) {
        const float *d = rows_load(c->out, row, first, n, lane);
        float *word = rows_f32(c->word, c->ids[row]) + first;
        float *position = rows_f32(c->position, c->positions[row]) + first;
        float *type = rows_f32(c->type, c->types[row]) + first;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            word[i] += d[i];
            position[i] += d[i];
            type[i] += d[i];
        }
    }
}

static void cpu_embed_backward(struct exec *x, tensor dsum, tensor dword, tensor dposition, tensor dtype,
                               tensor dgamma, tensor dbeta, tensor dout, tensor sum, tensor mean, tensor rstd,
                               tensor ids, tensor types, tensor positions, tensor gamma, tensor row_keys,
                               struct dropout drop)
{
    const char *op = "embed_backward";
    if (!accept_tensors(x, op, ACCEPT_LIST(dsum, dout, sum),
                        ACCEPT_LIST(dword, dposition, dtype, dgamma, dbeta, mean, rstd, gamma)) ||
        !accept_rows(x, op, ids, types, positions, dword, dposition, dtype, row_keys)) {
        return;
    }
    int64_t rows = tensor_rows(sum), cols = tensor_cols(sum), chunks = row_runs(rows);
    struct embed_call c = embed_call(x, cols, ids, types, positions, row_keys, drop);
    c.out = dsum;
    c.sum = sum;
    c.word = dword;
    c.position = dposition;
    c.type = dtype;
    c.dout = dout;
    c.mean = mean.data;
    c.rstd = rstd.data;
    c.gamma = gamma.data;
    c.partials = exec_scratch(x, workspace_embed_backward(rows, cols));
    lanes_run(x, op, chunks, bits_bytes(cols) + 2 * (size_t)cols * sizeof(float), dsum_chunk, &c);
    if (chunks == 0 || failed(x->status)) {
        return;
    }
    row_runs_add(dgamma.data, c.partials, chunks, 2 * cols, cols);
    row_runs_add(dbeta.data, c.partials + cols, chunks, 2 * cols, cols);
    lanes_run(x, op, kernel_blocks(cols, COLUMNS_PER_ITEM), COLUMNS_PER_ITEM * sizeof(float), scatter_item,
              &c);
}

KERNEL_FILL(embed, struct ops)
{
    t->embed = cpu_embed;
    t->embed_backward = cpu_embed_backward;
}
