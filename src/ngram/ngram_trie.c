#include "ngram/ngram_trie.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

/* The text, and the positions of its tokens in the order of the n-grams that begin there. */
struct sorting {
    const int32_t *ids;
    int64_t n;
    uint8_t *lengths;         /* [n] tokens from here to the end of the document, at most the order */
    uint32_t *sorted, *other; /* [n] */
    uint32_t *starts;         /* [n_keys + 1] */
    int64_t n_keys;           /* the end of a document, NGRAM_BEGIN, and the tokens */
};

static struct status allocate(struct sorting *s, int64_t n_words)
{
    size_t n = (size_t)s->n + 1;
    s->n_keys = n_words + 2;
    s->lengths = malloc(n);
    s->sorted = malloc(n * sizeof *s->sorted);
    s->other = malloc(n * sizeof *s->other);
    s->starts = malloc(((size_t)s->n_keys + 1) * sizeof *s->starts);
    bool is_whole = s->lengths != NULL && s->sorted != NULL && s->other != NULL && s->starts != NULL;
    return is_whole ? status_ok()
                    : status_error(STATUS_MEMORY, "out of memory to sort %lld tokens", (long long)s->n);
}

static void release(struct sorting *s)
{
    free(s->lengths);
    free(s->sorted);
    free(s->other);
    free(s->starts);
}

static struct status check(const struct sorting *s, int64_t n_words)
{
    if (s->n >= UINT32_MAX) {
        return status_error(STATUS_DATA, "%lld tokens are more than n-grams are counted of (%lld)",
                            (long long)s->n, (long long)UINT32_MAX - 1);
    }
    for (int64_t i = 0; i < s->n; i++) {
        if (s->ids[i] != NGRAM_BEGIN && (s->ids[i] < 0 || s->ids[i] >= n_words)) {
            return status_error(STATUS_DATA, "token %lld is %d, but the vocabulary has %lld pieces",
                                (long long)i, s->ids[i], (long long)n_words);
        }
    }
    return status_ok();
}

static void measure(struct sorting *s, int order)
{
    for (int64_t i = s->n - 1; i >= 0; i--) {
        bool is_last = i + 1 == s->n || s->ids[i + 1] == NGRAM_BEGIN;
        s->lengths[i] = (uint8_t)(is_last ? 1 : int_smaller(s->lengths[i + 1] + 1, order));
    }
}

static int64_t key_of(const struct sorting *s, uint32_t at, int k)
{
    return k < s->lengths[at] ? s->ids[at + k] + 2 : 0;
}

/* Sorts by the k-th token; equal ones keep their order. */
static void sort_by(struct sorting *s, int k)
{
    uint32_t *from = s->sorted, *to = s->other;
    memset(s->starts, 0, ((size_t)s->n_keys + 1) * sizeof *s->starts);
    for (int64_t i = 0; i < s->n; i++) {
        s->starts[key_of(s, from[i], k) + 1]++;
    }
    for (int64_t key = 0; key < s->n_keys; key++) {
        s->starts[key + 1] += s->starts[key];
    }
    for (int64_t i = 0; i < s->n; i++) {
        to[s->starts[key_of(s, from[i], k)]++] = from[i];
    }
    s->sorted = to;
    s->other = from;
}

static void sort(struct sorting *s, int order)
{
    measure(s, order);
    for (int64_t i = 0; i < s->n; i++) {
        s->sorted[i] = (uint32_t)i;
    }
    for (int k = order - 1; k >= 0; k--) {
        sort_by(s, k);
    }
}

/* ---- levels ---- */

/* How many tokens the n-grams at two places share. */
static int shared(const struct sorting *s, uint32_t a, uint32_t b)
{
    int n = (int)int_smaller(s->lengths[a], s->lengths[b]), k = 0;
    while (k < n && s->ids[a + k] == s->ids[b + k]) {
        k++;
    }
    return k;
}

static void add(struct ngram_level *level, const struct ngram_level *next, int32_t token)
{
    if (level->token != NULL) {
        level->token[level->n] = token;
        level->count[level->n] = 0;
    }
    if (level->first != NULL) {
        level->first[level->n] = (uint32_t)next->n;
    }
    level->n++;
}

/* Adds the n-grams that begin at each place, in their order; without arrays it only counts them. */
static void add_all(struct ngram_trie *t, const struct sorting *s)
{
    for (int m = 0; m <= t->order; m++) {
        t->levels[m].n = 0;
    }
    add(&t->levels[0], &t->levels[1], NGRAM_BEGIN);
    for (int64_t i = 0; i < s->n; i++) {
        uint32_t at = s->sorted[i];
        int n = s->lengths[at], known = i == 0 ? 0 : shared(s, s->sorted[i - 1], at);
        for (int m = known + 1; m <= n; m++) {
            add(&t->levels[m], &t->levels[m < t->order ? m + 1 : m], s->ids[at + m - 1]);
        }
        for (int m = 1; m <= n && t->levels[m].count != NULL; m++) {
            t->levels[m].count[t->levels[m].n - 1]++;
        }
    }
}

static struct status allocate_level(struct ngram_level *level, bool is_last)
{
    size_t n = (size_t)level->n + 1;
    level->token = malloc(n * sizeof *level->token);
    level->count = malloc(n * sizeof *level->count);
    level->first = is_last ? NULL : malloc(n * sizeof *level->first);
    bool is_whole = level->token != NULL && level->count != NULL && (is_last || level->first != NULL);
    return is_whole ? status_ok()
                    : status_error(STATUS_MEMORY, "out of memory for %lld n-grams", (long long)level->n);
}

static struct status build(struct ngram_trie *t, const struct sorting *s)
{
    add_all(t, s);
    for (int m = 0; m <= t->order; m++) {
        TRY(allocate_level(&t->levels[m], m == t->order));
    }
    add_all(t, s);
    for (int m = 0; m < t->order; m++) {
        t->levels[m].first[t->levels[m].n] = (uint32_t)t->levels[m + 1].n;
    }
    return status_ok();
}

struct status ngram_trie_init(struct ngram_trie *t, const int32_t *ids, int64_t n_ids, int order,
                              int64_t n_words)
{
    struct sorting s = {.ids = ids, .n = n_ids};
    *t = (struct ngram_trie){.order = order};
    CHECK(order >= 1 && order <= NGRAM_MOST_ORDER, "order %d", order);
    TRY(check(&s, n_words));
    struct status status = allocate(&s, n_words);
    if (!failed(status)) {
        sort(&s, order);
        free(s.other);
        s.other = NULL;
        status = build(t, &s);
    }
    release(&s);
    return status;
}

void ngram_trie_fini(struct ngram_trie *t)
{
    for (int m = 0; m <= NGRAM_MOST_ORDER; m++) {
        free(t->levels[m].token);
        free(t->levels[m].first);
        free(t->levels[m].count);
    }
    *t = (struct ngram_trie){0};
}

int64_t ngram_trie_find(const struct ngram_trie *t, int m, int64_t i, int32_t token)
{
    const struct ngram_level *next = &t->levels[m + 1];
    int64_t begin = t->levels[m].first[i], end = t->levels[m].first[i + 1];
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (next->token[middle] == token) {
            return middle;
        }
        if (next->token[middle] < token) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return -1;
}

int64_t ngram_trie_n_begins(const struct ngram_trie *t, int m)
{
    int64_t n = t->levels[1].n > 0 && t->levels[1].token[0] == NGRAM_BEGIN;
    for (int level = 1; level < m; level++) {
        n = t->levels[level].first[n];
    }
    return m == 0 ? 0 : n;
}
