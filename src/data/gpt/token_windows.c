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
        FAIL_IF(ids[i] < 0 || ids[i] >= w->n_words, STATUS_DATA,
                "%s.bin: token %lld is %d, but the vocabulary has %lld pieces: it was made with another "
                "tokenizer",
                w->path, (long long)(begin + i), ids[i], (long long)w->n_words);
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

static struct status add_ordered(const struct token_windows *w, int64_t g, int32_t key, struct batch *b)
{
    const struct sample_order *o = w->order;
    const int32_t *start = o->starts + 2 * (int64_t)o->shuffled[g % o->n_samples];
    int32_t *ids, *labels;
    add_empty(w, key, b, &ids, &labels);
    TRY(read_documents(w, ids, w->length, start[0], start[1]));
    bool ends = indexed_offset(w->index, o->document[start[0]]) + start[1] + 1 ==
                indexed_offset(w->index, o->document[start[0]] + 1);
    return ends ? read_documents(w, labels, w->length, start[0] + 1, 0)
                : read_documents(w, labels, w->length, start[0], start[1] + 1);
}

struct status token_windows_add(const struct token_windows *w, int64_t g, int32_t key, struct batch *b)
{
    if (w->order != NULL) {
        return add_ordered(w, g, key, b);
    }
    int64_t n = token_windows_count(w);
    CHECK(n > 0, "a sample of %s, which has no window", w->path);
    uint64_t epoch = rng_key(rng_key(w->seed, KEY_EPOCH), (uint64_t)(g / n));
    return add_window(w, (int64_t)rng_permute(epoch, (uint64_t)n, (uint64_t)(g % n)), key, b);
}

int64_t token_windows_heldout_count(const struct token_windows *w)
{
    return w->order != NULL ? w->order->n_samples : token_windows_count(w);
}

struct status token_windows_add_heldout(const struct token_windows *w, int64_t i, int32_t key,
                                        struct batch *b)
{
    if (w->order != NULL) {
        return add_ordered(w, i, key, b);
    }
    int64_t n = token_windows_count(w);
    CHECK(n > 0, "a held-out sample of %s, which has no window", w->path);
    return add_window(w, i % n, key, b);
}

struct status token_windows_count_words(const struct token_windows *w, int64_t most, double *counts,
                                        int64_t vocab_size)
{
    enum { PIECE = 4096 };
    int32_t ids[PIECE];
    int64_t n = int_smaller(w->end - w->first, most);
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t here = int_smaller(PIECE, n - i);
        TRY(read_tokens(w, ids, w->first + i, here));
        for (int64_t k = 0; k < here; k++) {
            counts[ids[k]] += ids[k] < vocab_size;
        }
    }
    return status_ok();
}
