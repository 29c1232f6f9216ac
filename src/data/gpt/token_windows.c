#include "data/gpt/token_windows.h"

#include "core/integers.h"
#include "core/rng.h"
#include "data/text_batch.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_PARTS = 3, KEY_EPOCH = 0x67707431 };

struct status token_windows_split(int64_t *first, int64_t *end, const char *split, int k, int64_t n_sequences)
{
    double weights[MOST_PARTS] = {0}, total = 0, before = 0;
    const char *at = split;
    for (int i = 0; i < MOST_PARTS && *at != '\0'; i++) {
        char *after;
        weights[i] = strtod(at, &after);
        bool ends = *after == '\0' || *after == ',' || *after == '/';
        if (after == at || !ends || !(weights[i] >= 0 && weights[i] < INFINITY)) {
            return status_error(STATUS_USAGE,
                                "a split is three numbers with commas between, such as 949,50,1; not \"%s\"",
                                split);
        }
        total += weights[i];
        at = *after == '\0' ? after : after + 1;
    }
    if (*at != '\0' || total == 0) {
        return status_error(STATUS_USAGE, "the split \"%s\" has %s", split,
                            total == 0 ? "no part above 0" : "more than three parts");
    }
    for (int i = 0; i < k; i++) {
        before += weights[i] / total;
    }
    /* Python's round: half to even, which is how C rounds too */
    double n = (double)n_sequences, begins = nearbyint(before * n);
    double ends = k == MOST_PARTS - 1 ? n : nearbyint((before + weights[k] / total) * n);
    *first = (int64_t)begins;
    *end = (int64_t)ends;
    return status_ok();
}

int64_t token_windows_count(const struct token_windows *w)
{
    int64_t n_tokens = w->end - w->first;
    return n_tokens > 1 ? (n_tokens - 1) / w->length : 0;
}

/* Copies tokens [begin, begin + n) of the store, and checks them. */
static struct status read_tokens(const struct token_windows *w, int32_t *ids, int64_t begin, int64_t n)
{
    indexed_copy(w->index, ids, begin, n);
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= w->n_words) {
            return status_error(
                STATUS_DATA,
                "%s.bin: token %lld is %d, but the vocabulary has %lld pieces: it was made with another "
                "tokenizer",
                w->path, (long long)(begin + i), ids[i], (long long)w->n_words);
        }
    }
    return status_ok();
}

/* Appends a window; `key` addresses its dropout. */
static struct status add_window(const struct token_windows *w, int64_t window, int32_t key, struct batch *b)
{
    int64_t begin = w->first + window * w->length, s = w->length;
    int32_t *ids = text_batch_add(b, s, s, -1, key), *labels = text_batch_masked_labels(b);
    TRY(read_tokens(w, ids, begin, s));
    TRY(read_tokens(w, labels, begin + 1, s));
    for (int64_t i = 0; i < s; i++) {
        text_batch_masked_positions(b)[i] = (int32_t)i;
    }
    text_batch_take_masked(b, s);
    return status_ok();
}

static struct status add_sample(const struct token_windows *w, int64_t g, struct batch *b)
{
    int64_t n = token_windows_count(w);
    CHECK(n > 0, "a sample of %s, which has no window", w->path);
    uint64_t key = rng_key(rng_key(w->seed, KEY_EPOCH), (uint64_t)(g / n));
    return add_window(w, (int64_t)rng_permute(key, (uint64_t)n, (uint64_t)(g % n)), (int32_t)g, b);
}

static struct status fill(const void *self, int64_t step, struct batch_step *out)
{
    const struct token_windows *w = self;
    for (int64_t k = 0; k < out->n_micro; k++) {
        int64_t first = (step - 1) * w->batch_size + batch_step_number(out, k) * w->micro_size;
        batch_clear(&out->micro[k]);
        for (int64_t i = 0; i < w->micro_size; i++) {
            TRY(add_sample(w, first + i, &out->micro[k]));
        }
        batch_finish(&out->micro[k], 0);
    }
    out->n_to_fill = out->n_all_micro;
    batch_step_count(out);
    return status_ok();
}

static int64_t heldout_batches(const void *self, int64_t n)
{
    const struct token_windows *w = self;
    return (int_smaller(n, token_windows_count(w)) + w->micro_size - 1) / w->micro_size;
}

/* Held-out windows in their order. */
static struct status heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    const struct token_windows *w = self;
    int64_t first = index * w->micro_size,
            end = int_smaller(int_smaller(n, token_windows_count(w)), first + w->micro_size);
    batch_clear(out);
    for (int64_t i = first; i < end; i++) {
        TRY(add_window(w, i, (int32_t)i, out));
    }
    batch_finish(out, 0);
    return status_ok();
}

/* Of the first tokens: enough to tell frequent words from rare ones. */
static struct status count_words(const void *self, double *counts, int64_t vocab_size)
{
    enum { MOST = 1 << 24, PIECE = 4096 };
    const struct token_windows *w = self;
    int32_t ids[PIECE];
    int64_t n = int_smaller(w->end - w->first, MOST);
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t here = int_smaller(PIECE, n - i);
        TRY(read_tokens(w, ids, w->first + i, here));
        for (int64_t k = 0; k < here; k++) {
            counts[ids[k]] += ids[k] < vocab_size;
        }
    }
    return status_ok();
}

struct batch_source token_windows_source(const struct token_windows *w, int64_t n_micro)
{
    return (struct batch_source){.self = w,
                                 .layout = &text_batch_layout,
                                 .limits = text_batch_limits(w->micro_size, w->length, w->length),
                                 .n_micro = n_micro,
                                 .fill = fill,
                                 .heldout_batches = heldout_batches,
                                 .heldout = heldout,
                                 .count_words = count_words};
}
