#include "data/gpt/token_windows.h"

#include "core/integers.h"
#include "core/rng.h"
#include "data/text_batch.h"

#include <string.h>

enum { KEY_EPOCH = 0x67707431, KEY_EXAMPLES = 0x67707465 };

int64_t token_windows_count(const struct token_windows *w)
{
    int64_t n_tokens = w->end - w->first;
    return w->of_answers ? n_tokens : n_tokens > 1 ? (n_tokens - 1) / w->length : 0;
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

/* The first sequence of example i, and *end the one after its last.  The order is not the file's, so that
 * any part of the examples is a fair one. */
static int64_t find_example(const struct token_windows *w, int64_t i, int64_t *end)
{
    int64_t n = w->index->n_documents;
    int64_t document = (int64_t)rng_permute(rng_key(0, KEY_EXAMPLES), (uint64_t)n, (uint64_t)(w->first + i));
    *end = indexed_first_sequence(w->index, document + 1);
    return indexed_first_sequence(w->index, document);
}

static struct status add_example(const struct token_windows *w, int64_t i, int32_t key, struct batch *b)
{
    int64_t end, sequence = find_example(w, i, &end), begin = indexed_offset(w->index, sequence), m = 0;
    int64_t n = int_smaller(indexed_offset(w->index, end) - begin - 1, w->length);
    int32_t *ids = text_batch_add(b, n, n, -1, key);
    int32_t *labels = text_batch_masked_labels(b), *positions = text_batch_masked_positions(b);
    TRY(read_tokens(w, ids, begin, n));
    for (sequence++; sequence < end; sequence += 2) {
        int64_t at = int_larger(indexed_offset(w->index, sequence) - begin, 1);
        int64_t answer = int_smaller(indexed_offset(w->index, sequence + 1) - begin, n + 1) - at;
        TRY(read_tokens(w, labels + m, begin + at, answer));
        for (int64_t k = 0; k < answer; k++) {
            positions[m++] = (int32_t)(at + k - 1);
        }
    }
    text_batch_take_masked(b, m);
    return status_ok();
}

static struct status add_sample(const struct token_windows *w, int64_t i, int32_t key, struct batch *b)
{
    return w->of_answers ? add_example(w, i, key, b) : add_window(w, i, key, b);
}

struct status token_windows_add(const struct token_windows *w, int64_t g, int32_t key, struct batch *b)
{
    if (w->order != NULL) {
        return add_ordered(w, g, key, b);
    }
    int64_t n = token_windows_count(w);
    CHECK(n > 0, "a sample of %s, which has no window", w->path);
    uint64_t epoch = rng_key(rng_key(w->seed, KEY_EPOCH), (uint64_t)(g / n));
    return add_sample(w, (int64_t)rng_permute(epoch, (uint64_t)n, (uint64_t)(g % n)), key, b);
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
    return add_sample(w, i % n, key, b);
}

/* Counts the pieces of tokens [begin, end). */
static struct status count_range(const struct token_windows *w, int64_t begin, int64_t end, double *counts,
                                 int64_t vocab_size)
{
    enum { PIECE = 4096 };
    int32_t ids[PIECE];
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t here = int_smaller(PIECE, end - i);
        TRY(read_tokens(w, ids, i, here));
        for (int64_t k = 0; k < here; k++) {
            counts[ids[k]] += ids[k] < vocab_size;
        }
    }
    return status_ok();
}

struct status token_windows_count_words(const struct token_windows *w, int64_t most, double *counts,
                                        int64_t vocab_size)
{
    int64_t first = w->first, n = int_smaller(w->end - first, most);
    if (!w->of_answers) {
        return count_range(w, first, first + n, counts, vocab_size);
    }
    for (int64_t i = 0; i < w->end - first && most > 0; i++) {
        int64_t end, sequence = find_example(w, i, &end);
        for (sequence++; sequence < end; sequence += 2) {
            int64_t begin = indexed_offset(w->index, sequence), next = indexed_offset(w->index, sequence + 1);
            TRY(count_range(w, begin, next, counts, vocab_size));
            most -= next - begin;
        }
    }
    return status_ok();
}
