#include "core/batch.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

struct batch_limits batch_limits_both(struct batch_limits a, struct batch_limits b)
{
    return (struct batch_limits){.n_tokens = int_larger(a.n_tokens, b.n_tokens),
                                 .n_sequences = int_larger(a.n_sequences, b.n_sequences),
                                 .n_labels = int_larger(a.n_labels, b.n_labels),
                                 .max_seqlen = int_larger(a.max_seqlen, b.max_seqlen),
                                 .n_pages = int_larger(a.n_pages, b.n_pages)};
}

struct status batch_check_cut(int64_t train_batch_size, int64_t gradient_accumulation_steps)
{
    FAIL_IF(train_batch_size < 1 || gradient_accumulation_steps < 1 ||
                train_batch_size % gradient_accumulation_steps != 0,
            STATUS_USAGE,
            "train_batch_size %lld is not a positive multiple of gradient_accumulation_steps "
            "%lld: micro-batches must be equal",
            (long long)train_batch_size, (long long)gradient_accumulation_steps);
    return status_ok();
}

int64_t batch_real_rows(const struct batch *b, enum batch_rows rows)
{
    return rows == BATCH_OF_TOKENS   ? b->n_real_tokens
           : rows == BATCH_OF_LABELS ? b->n_real_labels
                                     : b->n_sequences;
}

int64_t batch_all_rows(const struct batch *b, enum batch_rows rows)
{
    return rows == BATCH_OF_TOKENS ? b->n_tokens : rows == BATCH_OF_LABELS ? b->n_labels : b->n_sequences;
}

int64_t batch_count_labels(const struct batch *b, int field)
{
    const struct batch_field *f = &b->layout->fields[field];
    int64_t n = 0, all = batch_real_rows(b, f->rows) * f->width;
    for (int64_t i = 0; i < all; i++) {
        int32_t bits = b->fields[field][i];
        n += f->dtype == DTYPE_F32 ? (bits & INT32_MAX) <= 0x7f800000 : bits >= 0;
    }
    return n;
}

/* The most rows that an array can hold. */
static int64_t most_rows(const struct batch_limits *l, enum batch_rows rows)
{
    return rows == BATCH_OF_TOKENS ? l->n_tokens : rows == BATCH_OF_LABELS ? l->n_labels : l->n_sequences;
}

/* The next n numbers of the block; only counts them while the block is NULL. */
static int32_t *take(int32_t *block, int64_t *used, int64_t n)
{
    int32_t *at = block == NULL ? NULL : block + *used;
    *used += n;
    return at;
}

/* Lays the arrays out in `block` and returns how many numbers they take. */
static int64_t lay_out(struct batch *b, int32_t *block)
{
    int64_t used = 0, t = b->limits.n_tokens;
    b->ids = take(block, &used, t);
    b->positions = take(block, &used, t);
    b->row_keys = take(block, &used, 2 * t);
    b->cu_seqlens = take(block, &used, b->limits.n_sequences + 1);
    for (int i = 0; i < b->layout->n_fields; i++) {
        const struct batch_field *f = &b->layout->fields[i];
        b->fields[i] = take(block, &used, most_rows(&b->limits, f->rows) * f->width);
    }
    if (b->limits.n_pages > 0) {
        b->slots = take(block, &used, t);
        b->cu_keys = take(block, &used, b->limits.n_sequences + 1);
        b->pages = take(block, &used, b->limits.n_sequences * b->limits.n_pages);
    }
    return used;
}

size_t batch_bytes(const struct batch_layout *layout, struct batch_limits limits)
{
    struct batch b = {.layout = layout, .limits = limits};
    return (size_t)lay_out(&b, NULL) * sizeof(int32_t);
}

struct status batch_init(struct batch *b, const struct batch_layout *layout, struct batch_limits limits)
{
    size_t bytes = batch_bytes(layout, limits);
    *b = (struct batch){.layout = layout, .limits = limits};
    CHECK(limits.n_tokens > 0 && limits.n_tokens <= INT32_MAX, "%lld tokens in one stream",
          (long long)limits.n_tokens);
    b->memory = calloc(1, bytes);
    FAIL_IF(b->memory == NULL, STATUS_MEMORY, "out of memory for a batch of %lld tokens",
            (long long)limits.n_tokens);
    lay_out(b, b->memory);
    return status_ok();
}

void batch_fini(struct batch *b)
{
    free(b->memory);
    *b = (struct batch){0};
}

void batch_clear(struct batch *b)
{
    b->n_tokens = b->n_real_tokens = 0;
    b->n_sequences = b->n_streams = 0;
    b->n_labels = b->n_real_labels = 0;
    b->max_seqlen = b->max_keys = 0;
    b->cu_seqlens[0] = 0;
    if (b->limits.n_pages > 0) {
        b->cu_keys[0] = 0;
    }
}

/* One more entry of cu_seqlens. */
static void add_stream(struct batch *b, int64_t end)
{
    int64_t n = end - b->cu_seqlens[b->n_streams];
    b->cu_seqlens[++b->n_streams] = (int32_t)end;
    b->max_seqlen = n > b->max_seqlen ? n : b->max_seqlen;
}

/* Tokens [first, first + n) of a sequence. */
static int64_t add(struct batch *b, int64_t n, int64_t first, int32_t sequence_key)
{
    int64_t row = b->n_real_tokens;
    CHECK(n > 0 && n <= b->limits.max_seqlen && n <= b->limits.n_tokens - row &&
              b->n_sequences + 1 < b->limits.n_sequences,
          "a sequence of %lld tokens in a batch of %lld tokens and %lld sequences", (long long)n,
          (long long)row, (long long)b->n_sequences);
    for (int64_t i = 0; i < n; i++) {
        b->positions[row + i] = (int32_t)(first + i);
        b->row_keys[2 * (row + i)] = sequence_key;
        b->row_keys[2 * (row + i) + 1] = (int32_t)(first + i);
    }
    b->n_sequences++;
    b->n_real_tokens += n;
    add_stream(b, b->n_real_tokens);
    return row;
}

int64_t batch_add(struct batch *b, int64_t n, int32_t sequence_key)
{
    CHECK(b->limits.n_pages == 0, "a sequence without a cache among those with one");
    return add(b, n, 0, sequence_key);
}

int64_t batch_add_cached(struct batch *b, int64_t n, int64_t first, const int32_t *pages,
                         int32_t sequence_key)
{
    int64_t width = b->limits.n_pages, end = first + n, used = (end + BATCH_PAGE - 1) / BATCH_PAGE;
    CHECK(used <= width, "%lld keys in %lld pages", (long long)end, (long long)width);
    int64_t row = add(b, n, first, sequence_key), sequence = b->n_sequences - 1;
    for (int64_t i = first; i < end; i++) {
        b->slots[row + i - first] = pages[i / BATCH_PAGE] * BATCH_PAGE + (int32_t)(i % BATCH_PAGE);
    }
    for (int64_t i = 0; i < width; i++) {
        b->pages[sequence * width + i] = i < used ? pages[i] : 0;
    }
    b->cu_keys[sequence + 1] = b->cu_keys[sequence] + (int32_t)end;
    b->max_keys = end > b->max_keys ? end : b->max_keys;
    return row;
}

/* Fills the padding rows of a field, after the real ones. */
static void fill_up(struct batch *b, int field)
{
    const struct batch_field *f = &b->layout->fields[field];
    int64_t end = batch_all_rows(b, f->rows) * f->width;
    for (int64_t i = batch_real_rows(b, f->rows) * f->width; i < end; i++) {
        b->fields[field][i] = f->nothing;
    }
}

void batch_finish(struct batch *b, int32_t pad_id)
{
    bool cached = b->limits.n_pages > 0;
    b->n_tokens = cached ? b->n_real_tokens : int_round_up(b->n_real_tokens, BATCH_TOKEN_BUCKET);
    b->n_labels =
        cached ? int_larger(b->n_real_labels, 1) : int_round_up(b->n_real_labels, BATCH_LABEL_BUCKET);
    for (int64_t i = b->n_real_tokens; i < b->n_tokens; i++) {
        b->ids[i] = pad_id;
        b->positions[i] = b->row_keys[2 * i] = b->row_keys[2 * i + 1] = 0;
    }
    if (b->n_tokens > b->n_real_tokens) {
        add_stream(b, b->n_tokens);
    }
    for (int i = 0; i < b->layout->n_fields; i++) {
        fill_up(b, i);
    }
}

struct status batch_step_init(struct batch_step *step, int64_t n_micro, const struct batch_layout *layout,
                              struct batch_limits limits)
{
    *step = (struct batch_step){0};
    step->micro = calloc((size_t)n_micro, sizeof *step->micro);
    FAIL_IF(step->micro == NULL, STATUS_MEMORY, "out of memory for %lld micro-batches", (long long)n_micro);
    for (; step->n_micro < n_micro; step->n_micro++) {
        struct status s = batch_init(&step->micro[step->n_micro], layout, limits);
        if (failed(s)) {
            batch_step_fini(step);
            return s;
        }
    }
    step->n_all_micro = step->n_to_fill = n_micro;
    step->apart = 1;
    return status_ok();
}

/* The micro-batches of part `part` of n_parts of n: [first, first + returned count). */
static int64_t batch_part(int64_t n, int part, int n_parts, int64_t *first)
{
    *first = n * part / n_parts;
    return n * (part + 1) / n_parts - *first;
}

struct status batch_step_init_part(struct batch_step *step, int64_t n_all_micro, int part, int n_parts,
                                   bool in_turn, const struct batch_layout *layout,
                                   struct batch_limits limits)
{
    int64_t first, n = batch_part(n_all_micro, part, n_parts, &first);
    if (in_turn) {
        first = part;
        n = (n_all_micro - part + n_parts - 1) / n_parts;
    }
    TRY(batch_step_init(step, n, layout, limits));
    step->n_all_micro = step->n_to_fill = n_all_micro;
    step->first_micro = first;
    step->apart = in_turn ? n_parts : 1;
    return status_ok();
}

void batch_step_fini(struct batch_step *step)
{
    for (int64_t i = 0; i < step->n_micro; i++) {
        batch_fini(&step->micro[i]);
    }
    free(step->micro);
    *step = (struct batch_step){0};
}

void batch_step_count(struct batch_step *step)
{
    step->n_tokens = step->n_sequences = 0;
    memset(step->n_labels, 0, sizeof step->n_labels);
    for (int64_t i = 0; i < step->n_micro; i++) {
        const struct batch *b = &step->micro[i];
        step->n_tokens += b->n_real_tokens;
        step->n_sequences += b->n_sequences;
        for (int k = 0; k < b->layout->n_fields; k++) {
            step->n_labels[k] += b->layout->fields[k].is_label ? batch_count_labels(b, k) : 0;
        }
    }
}

int64_t batch_step_number(const struct batch_step *step, int64_t k)
{
    return step->first_micro + k * step->apart;
}

int64_t batch_step_filled_number(const struct batch_step *step, int64_t k, int64_t n_groups, int64_t n_filled)
{
    int64_t m = batch_step_number(step, k), each = step->n_all_micro / n_groups, filled = n_filled / n_groups;
    if (step->apart > 1) { /* ranks have micro-batches alternately */
        return m < n_filled ? m : -1;
    }
    return m % each < filled ? m / each * filled + m % each : -1;
}

struct batch_step batch_step_part(const struct batch_step *step, int part, int n_parts)
{
    struct batch_step p = *step;
    int64_t first, n = batch_part(step->n_all_micro, part, n_parts, &first);
    CHECK(step->apart == 1, "a part of micro-batches that are dealt out in turn");
    CHECK(first >= step->first_micro && first + n <= step->first_micro + step->n_micro,
          "micro-batches %lld to %lld are not here", (long long)first, (long long)(first + n));
    p.micro += first - step->first_micro;
    p.n_micro = n;
    p.first_micro = first;
    return p;
}

int64_t batch_step_n_filled(const struct batch_step *step)
{
    int64_t n = 0;
    for (int64_t i = 0; i < step->n_micro; i++) {
        n += step->micro[i].n_sequences > 0;
    }
    return n;
}

const struct batch *batch_step_filled(const struct batch_step *step, int64_t k)
{
    int64_t i = 0;
    for (int64_t n = -1; i < step->n_micro; i++) {
        n += step->micro[i].n_sequences > 0;
        if (n == k) {
            break;
        }
    }
    CHECK(i < step->n_micro, "micro-batch %lld", (long long)k);
    return &step->micro[i];
}
