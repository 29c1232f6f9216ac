#include "data/text_batch.h"

#include "core/integers.h"

struct batch_limits text_batch_limits(int64_t n_sequences, int64_t max_seq_length, int64_t max_masked)
{
    int64_t longest_tail = BATCH_TOKEN_BUCKET - 1;
    return (struct batch_limits){
        .n_tokens = int_round_up(n_sequences * max_seq_length, BATCH_TOKEN_BUCKET),
        .n_sequences = n_sequences + 1,
        .n_labels = int_round_up(n_sequences * max_masked, BATCH_LABEL_BUCKET),
        .max_seqlen = max_seq_length > longest_tail ? max_seq_length : longest_tail,
    };
}

struct status text_batch_init(struct batch *b, struct batch_limits limits)
{
    return batch_init(b, &text_batch_layout, limits);
}

/* The fields of the last sequence, of n tokens from `row`; returns its ids. */
static int32_t *fill_fields(struct batch *b, int64_t row, int64_t n, int64_t n_first, int32_t nsp_label,
                            int32_t sequence_key)
{
    int64_t sequence = b->n_sequences - 1;
    for (int64_t i = 0; i < n; i++) {
        b->fields[TEXT_TYPES][row + i] = i >= n_first;
    }
    b->fields[TEXT_CLS_ROWS][sequence] = (int32_t)row;
    b->fields[TEXT_CLS_KEYS][2 * sequence] = sequence_key;
    b->fields[TEXT_CLS_KEYS][2 * sequence + 1] = 0;
    b->fields[TEXT_PAIR_LABELS][sequence] = nsp_label;
    text_batch_set_span(b, -1, -1);
    return b->ids + row;
}

int32_t *text_batch_add(struct batch *b, int64_t n, int64_t n_first, int32_t nsp_label, int32_t sequence_key)
{
    CHECK(n_first >= 0 && n_first <= n, "%lld of %lld tokens in the first segment", (long long)n_first,
          (long long)n);
    return fill_fields(b, batch_add(b, n, sequence_key), n, n_first, nsp_label, sequence_key);
}

int32_t *text_batch_add_cached(struct batch *b, int64_t n, int64_t first, const int32_t *pages,
                               int32_t sequence_key)
{
    int64_t row = batch_add_cached(b, n, first, pages, sequence_key);
    return fill_fields(b, row, n, n, -1, sequence_key);
}

void text_batch_set_span(struct batch *b, int32_t start, int32_t end)
{
    CHECK(b->n_sequences > 0, "a span without a sequence");
    b->fields[TEXT_SPAN_LABELS][2 * (b->n_sequences - 1)] = start;
    b->fields[TEXT_SPAN_LABELS][2 * (b->n_sequences - 1) + 1] = end;
}

int32_t *text_batch_masked_positions(const struct batch *b)
{
    return b->fields[TEXT_MASKED_ROWS] + b->n_real_labels;
}

int32_t *text_batch_masked_labels(const struct batch *b)
{
    return b->fields[TEXT_MASKED_LABELS] + b->n_real_labels;
}

void text_batch_take_masked(struct batch *b, int64_t m)
{
    CHECK(b->n_sequences > 0 && m >= 0 && m <= b->limits.n_labels - b->n_real_labels,
          "%lld labels after %lld of %lld", (long long)m, (long long)b->n_real_labels,
          (long long)b->limits.n_labels);
    int32_t row = b->fields[TEXT_CLS_ROWS][b->n_sequences - 1];
    for (int64_t i = 0; i < m; i++) {
        text_batch_masked_positions(b)[i] += row;
    }
    b->n_real_labels += m;
}
