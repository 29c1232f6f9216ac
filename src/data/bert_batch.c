#include "data/bert_batch.h"

#include <stdlib.h>
#include <string.h>

static int64_t round_up(int64_t n, int64_t bucket)
{
    return (n + bucket - 1) / bucket * bucket;
}

struct status bert_batch_check_cut(int64_t train_batch_size, int64_t gradient_accumulation_steps)
{
    if (train_batch_size < 1 || gradient_accumulation_steps < 1 ||
        train_batch_size % gradient_accumulation_steps != 0) {
        return status_error(
            STATUS_USAGE,
            "train_batch_size %lld is not a positive multiple of gradient_accumulation_steps %lld: "
            "micro-batches must be equal",
            (long long)train_batch_size, (long long)gradient_accumulation_steps);
    }
    return status_ok();
}

struct bert_batch_limits bert_batch_limits(int64_t n_sequences, int64_t max_seq_length, int64_t max_masked)
{
    int64_t longest_tail = BERT_BATCH_TOKEN_BUCKET - 1;
    return (struct bert_batch_limits){
        .n_tokens = round_up(n_sequences * max_seq_length, BERT_BATCH_TOKEN_BUCKET),
        .n_sequences = n_sequences + 1,
        .n_masked = round_up(n_sequences * max_masked, BERT_BATCH_MASKED_BUCKET),
        .max_seqlen = max_seq_length > longest_tail ? max_seq_length : longest_tail,
    };
}

struct status bert_batch_init(struct bert_batch *b, struct bert_batch_limits limits)
{
    *b = (struct bert_batch){.limits = limits};
    CHECK(limits.n_tokens > 0 && limits.n_tokens <= INT32_MAX, "%lld tokens in one stream",
          (long long)limits.n_tokens);
    int64_t sizes[] = {limits.n_tokens,        limits.n_tokens,       limits.n_tokens, 2 * limits.n_tokens,
                       limits.n_sequences + 1, limits.n_masked,       limits.n_masked, limits.n_sequences,
                       limits.n_sequences,     2 * limits.n_sequences};
    int32_t **arrays[] = {&b->ids,         &b->types,         &b->positions, &b->row_keys,   &b->cu_seqlens,
                          &b->masked_rows, &b->masked_labels, &b->cls_rows,  &b->nsp_labels, &b->span_labels};
    enum { N_ARRAYS = sizeof arrays / sizeof arrays[0] };
    int64_t total = 0;
    for (int i = 0; i < N_ARRAYS; i++) {
        total += sizes[i];
    }
    b->memory = calloc((size_t)total, sizeof(int32_t));
    if (b->memory == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a batch of %lld tokens",
                            (long long)limits.n_tokens);
    }
    int32_t *next = b->memory;
    for (int i = 0; i < N_ARRAYS; i++) {
        *arrays[i] = next;
        next += sizes[i];
    }
    return status_ok();
}

void bert_batch_fini(struct bert_batch *b)
{
    free(b->memory);
    *b = (struct bert_batch){0};
}

void bert_batch_clear(struct bert_batch *b)
{
    b->n_tokens = b->n_real_tokens = 0;
    b->n_sequences = b->n_streams = 0;
    b->n_masked = b->n_real_masked = 0;
    b->max_seqlen = 0;
    b->cu_seqlens[0] = 0;
}

/* One more entry of cu_seqlens. */
static void add_stream(struct bert_batch *b, int64_t end)
{
    int64_t n = end - b->cu_seqlens[b->n_streams];
    b->cu_seqlens[++b->n_streams] = (int32_t)end;
    b->max_seqlen = n > b->max_seqlen ? n : b->max_seqlen;
}

int32_t *bert_batch_add(struct bert_batch *b, int64_t n, int64_t n_first, int32_t nsp_label,
                        int32_t sequence_key)
{
    int64_t row = b->n_real_tokens;
    CHECK(n > 0 && n_first >= 0 && n_first <= n && n <= b->limits.max_seqlen &&
              n <= b->limits.n_tokens - row && b->n_sequences + 1 < b->limits.n_sequences,
          "a sequence of %lld tokens in a batch of %lld tokens and %lld sequences", (long long)n,
          (long long)row, (long long)b->n_sequences);
    for (int64_t i = 0; i < n; i++) {
        b->types[row + i] = i >= n_first;
        b->positions[row + i] = (int32_t)i;
        b->row_keys[2 * (row + i)] = sequence_key;
        b->row_keys[2 * (row + i) + 1] = (int32_t)i;
    }
    b->cls_rows[b->n_sequences] = (int32_t)row;
    b->nsp_labels[b->n_sequences] = nsp_label;
    b->span_labels[2 * b->n_sequences] = b->span_labels[2 * b->n_sequences + 1] = -1;
    b->n_sequences++;
    b->n_real_tokens += n;
    add_stream(b, b->n_real_tokens);
    return b->ids + row;
}

void bert_batch_set_span(struct bert_batch *b, int32_t start, int32_t end)
{
    CHECK(b->n_sequences > 0, "a span without a sequence");
    b->span_labels[2 * (b->n_sequences - 1)] = start;
    b->span_labels[2 * (b->n_sequences - 1) + 1] = end;
}

int32_t *bert_batch_masked_positions(const struct bert_batch *b)
{
    return b->masked_rows + b->n_real_masked;
}

int32_t *bert_batch_masked_labels(const struct bert_batch *b)
{
    return b->masked_labels + b->n_real_masked;
}

void bert_batch_take_masked(struct bert_batch *b, int64_t m)
{
    CHECK(b->n_sequences > 0 && m >= 0 && m <= b->limits.n_masked - b->n_real_masked,
          "%lld labels after %lld of %lld", (long long)m, (long long)b->n_real_masked,
          (long long)b->limits.n_masked);
    int32_t row = b->cls_rows[b->n_sequences - 1];
    for (int64_t i = 0; i < m; i++) {
        b->masked_rows[b->n_real_masked + i] += row;
    }
    b->n_real_masked += m;
}

void bert_batch_finish(struct bert_batch *b, int32_t pad_id)
{
    b->n_tokens = round_up(b->n_real_tokens, BERT_BATCH_TOKEN_BUCKET);
    size_t tail = (size_t)(b->n_tokens - b->n_real_tokens);
    if (tail > 0) {
        for (int64_t i = b->n_real_tokens; i < b->n_tokens; i++) {
            b->ids[i] = pad_id;
        }
        memset(b->types + b->n_real_tokens, 0, tail * sizeof(int32_t));
        memset(b->positions + b->n_real_tokens, 0, tail * sizeof(int32_t));
        memset(b->row_keys + 2 * b->n_real_tokens, 0, 2 * tail * sizeof(int32_t));
        add_stream(b, b->n_tokens);
    }
    b->n_masked = round_up(b->n_real_masked, BERT_BATCH_MASKED_BUCKET);
    for (int64_t i = b->n_real_masked; i < b->n_masked; i++) {
        b->masked_rows[i] = 0;
        b->masked_labels[i] = -1;
    }
}

struct status bert_step_init(struct bert_step *step, int64_t n_micro, struct bert_batch_limits limits)
{
    *step = (struct bert_step){0};
    step->micro = calloc((size_t)n_micro, sizeof *step->micro);
    if (step->micro == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %lld micro-batches", (long long)n_micro);
    }
    for (; step->n_micro < n_micro; step->n_micro++) {
        struct status s = bert_batch_init(&step->micro[step->n_micro], limits);
        if (failed(s)) {
            bert_step_fini(step);
            return s;
        }
    }
    return status_ok();
}

void bert_step_fini(struct bert_step *step)
{
    for (int64_t i = 0; i < step->n_micro; i++) {
        bert_batch_fini(&step->micro[i]);
    }
    free(step->micro);
    *step = (struct bert_step){0};
}

void bert_step_count(struct bert_step *step)
{
    step->n_tokens = step->n_sequences = step->n_masked = step->n_nsp = step->n_spans = 0;
    for (int64_t i = 0; i < step->n_micro; i++) {
        const struct bert_batch *b = &step->micro[i];
        step->n_tokens += b->n_real_tokens;
        step->n_sequences += b->n_sequences;
        step->n_masked += b->n_real_masked;
        for (int64_t k = 0; k < b->n_sequences; k++) {
            step->n_nsp += b->nsp_labels[k] >= 0;
            step->n_spans += b->span_labels[2 * k] >= 0;
        }
    }
}
