#include "data/gpt/token_windows.h"

#include "core/integers.h"
#include "core/rng.h"
#include "data/text_batch.h"

#include <string.h>

enum { KEY_EPOCH = 0x67707431 };

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

/* Appends an empty sample of S tokens; `key` addresses its dropout.  The caller fills both lists. */
static void add_empty(const struct token_windows *w, int32_t key, struct batch *b, int32_t **ids,
                      int32_t **labels)
{
    *ids = text_batch_add(b, w->length, w->length, -1, key);
    *labels = text_batch_masked_labels(b);
    for (int64_t i = 0; i < w->length; i++) {
        text_batch_masked_positions(b)[i] = (int32_t)i;
    }
    text_batch_take_masked(b, w->length);
}

static struct status add_window(const struct token_windows *w, int64_t window, int32_t key, struct batch *b)
{
    int64_t begin = w->first + window * w->length;
    int32_t *ids, *labels;
    add_empty(w, key, b, &ids, &labels);
    TRY(read_tokens(w, ids, begin, w->length));
    return read_tokens(w, labels, begin + 1, w->length);
}

/* Reads n tokens from token `from` of document number `place` of the order on, across documents. */
static struct status read_documents(const struct token_windows *w, int32_t *ids, int64_t n, int64_t place,
                                    int64_t from)
{
    for (; n > 0; place++, from = 0) {
        int64_t sequence = w->order->document[place], begin = indexed_offset(w->index, sequence) + from;
        int64_t here = int_smaller(n, indexed_offset(w->index, sequence + 1) - begin);
        TRY(read_tokens(w, ids, begin, here));
        ids += here, n -= here;
    }
    return status_ok();
}

static struct status add_ordered(const struct token_windows *w, int64_t g, struct batch *b)
{
    const struct sample_order *o = w->order;
    const int32_t *start = o->starts + 2 * (int64_t)o->shuffled[g % o->n_samples];
    int32_t *ids, *labels;
    add_empty(w, (int32_t)g, b, &ids, &labels);
    TRY(read_documents(w, ids, w->length, start[0], start[1]));
    bool ends = indexed_offset(w->index, o->document[start[0]]) + start[1] + 1 ==
                indexed_offset(w->index, o->document[start[0]] + 1);
    return ends ? read_documents(w, labels, w->length, start[0] + 1, 0)
                : read_documents(w, labels, w->length, start[0], start[1] + 1);
}

static struct status add_sample(const struct token_windows *w, int64_t g, struct batch *b)
{
    if (w->order != NULL) {
        return add_ordered(w, g, b);
    }
    int64_t n = token_windows_count(w);
    CHECK(n > 0, "a sample of %s, which has no window", w->path);
    uint64_t key = rng_key(rng_key(w->seed, KEY_EPOCH), (uint64_t)(g / n));
    return add_window(w, (int64_t)rng_permute(key, (uint64_t)n, (uint64_t)(g % n)), (int32_t)g, b);
}

/* The samples before step `step`, and its own. */
static struct batch_growth_step sizes_at(const struct token_windows *w, int64_t step)
{
    struct batch_growth fixed = {.batch = w->batch_size};
    return batch_growth_at(w->growth.batch > 0 ? &w->growth : &fixed, step);
}

static struct status fill(const void *self, int64_t step, struct batch_step *out)
{
    const struct token_windows *w = self;
    struct batch_growth_step sizes = sizes_at(w, step);
    out->n_to_fill = sizes.batch / w->micro_size;
    for (int64_t k = 0; k < out->n_micro; k++) {
        int64_t number = batch_step_filled_number(out, k, int_larger(w->n_groups, 1), out->n_to_fill);
        int64_t first = sizes.before + number * w->micro_size;
        batch_clear(&out->micro[k]);
        for (int64_t i = 0; number >= 0 && i < w->micro_size; i++) {
            TRY(add_sample(w, first + i, &out->micro[k]));
        }
        batch_finish(&out->micro[k], 0);
    }
    batch_step_count(out);
    return status_ok();
}

static int64_t windows_to_hold_out(const struct token_windows *w)
{
    return w->order != NULL ? w->order->n_samples : token_windows_count(w);
}

static int64_t heldout_batches(const void *self, int64_t n)
{
    const struct token_windows *w = self;
    return (int_smaller(n, windows_to_hold_out(w)) + w->micro_size - 1) / w->micro_size;
}

/* Held-out windows in their order, or in that of Megatron-LM. */
static struct status heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    const struct token_windows *w = self;
    int64_t first = index * w->micro_size,
            end = int_smaller(int_smaller(n, windows_to_hold_out(w)), first + w->micro_size);
    batch_clear(out);
    for (int64_t i = first; i < end; i++) {
        TRY(w->order != NULL ? add_ordered(w, i, out) : add_window(w, i, (int32_t)i, out));
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
