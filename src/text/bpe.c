#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

/* A part of a piece that is one token so far. */
struct bpe_part {
    int32_t id; /* -1: it was merged into an earlier one */
    uint32_t previous, next;
};

/* A merge of the part at `at` with the next one, which is stale if one of them has changed since. */
struct bpe_entry {
    int32_t rank;
    uint32_t at;
};

enum { FEW_BYTES = 40 }; /* a piece of at most so many is scanned for its merges */

struct status bpe_scratch_init(struct bpe_scratch *s, const struct bpe *bpe)
{
    *s = (struct bpe_scratch){.bpe = bpe};
    return word_cache_init(&s->cache) ? status_ok()
                                      : status_error(STATUS_MEMORY, "out of memory for a tokenizer");
}

void bpe_scratch_fini(struct bpe_scratch *s)
{
    word_cache_fini(&s->cache);
    id_list_fini(&s->piece);
    free(s->parts);
    free(s->heap);
    *s = (struct bpe_scratch){0};
}

static bool reserve(struct bpe_scratch *s, size_t n)
{
    if (n <= s->capacity) {
        return true;
    }
    free(s->parts);
    free(s->heap);
    s->capacity = n + n / 2;
    s->parts = malloc(s->capacity * sizeof *s->parts);
    s->heap = malloc(3 * s->capacity * sizeof *s->heap); /* one for each part, and two for each merge */
    if (s->parts == NULL || s->heap == NULL) {
        s->capacity = 0;
    }
    return s->capacity > 0;
}

/* ---- short pieces ---- */

/* Merges ids[0..n) in place, the lowest rank first, and returns how many are left. */
static size_t merge_few(const struct bpe_merges *m, int32_t *ids, size_t n)
{
    const struct bpe_merge *merges[FEW_BYTES];
    for (size_t i = 0; i + 1 < n; i++) {
        merges[i] = bpe_merges_find(m, ids[i], ids[i + 1]);
    }
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++) {
            if (merges[i] != NULL && (best == n || merges[i]->rank < merges[best]->rank)) {
                best = i;
            }
        }
        if (best == n) {
            return n;
        }
        ids[best] = merges[best]->id;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        for (size_t i = best; i + 1 < n; i++) {
            merges[i] = merges[i + 1];
        }
        if (best + 1 < n) {
            merges[best] = bpe_merges_find(m, ids[best], ids[best + 1]);
        }
        if (best > 0) {
            merges[best - 1] = bpe_merges_find(m, ids[best - 1], ids[best]);
        }
    }
}

/* ---- long pieces ---- */

static bool is_before(struct bpe_entry a, struct bpe_entry b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.at < b.at);
}

static void sift_up(struct bpe_entry *heap, size_t i)
{
    struct bpe_entry e = heap[i];
    for (; i > 0 && is_before(e, heap[(i - 1) / 2]); i = (i - 1) / 2) {
        heap[i] = heap[(i - 1) / 2];
    }
    heap[i] = e;
}

static void sift_down(struct bpe_entry *heap, size_t n, size_t i)
{
    struct bpe_entry e = heap[i];
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && is_before(heap[child + 1], heap[child]);
        if (!is_before(heap[child], e)) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = e;
}

/* The merge of the part at `at` with the next one, NULL if there is none. */
static const struct bpe_merge *merge_at(const struct bpe_scratch *s, size_t n, uint32_t at)
{
    const struct bpe_part *p = &s->parts[at];
    return p->id < 0 || p->next >= n ? NULL : bpe_merges_find(&s->bpe->merges, p->id, s->parts[p->next].id);
}

static void push(struct bpe_scratch *s, size_t *n_heap, size_t n, uint32_t at)
{
    const struct bpe_merge *merge = merge_at(s, n, at);
    if (merge != NULL) {
        s->heap[*n_heap] = (struct bpe_entry){merge->rank, at};
        sift_up(s->heap, (*n_heap)++);
    }
}

static void join(struct bpe_scratch *s, size_t n, uint32_t at, int32_t id)
{
    struct bpe_part *p = &s->parts[at], *gone = &s->parts[p->next];
    p->id = id;
    p->next = gone->next;
    gone->id = -1;
    if (p->next < n) {
        s->parts[p->next].previous = at;
    }
}

/* Merges the parts 0 to n - 1. */
static void merge_many(struct bpe_scratch *s, size_t n)
{
    size_t n_heap = 0;
    for (uint32_t at = 0; at < n; at++) {
        push(s, &n_heap, n, at);
    }
    while (n_heap > 0) {
        struct bpe_entry first = s->heap[0];
        s->heap[0] = s->heap[--n_heap];
        sift_down(s->heap, n_heap, 0);
        const struct bpe_merge *merge = merge_at(s, n, first.at);
        if (merge != NULL && merge->rank == first.rank) {
            join(s, n, first.at, merge->id);
            push(s, &n_heap, n, first.at);
            if (first.at > 0) {
                push(s, &n_heap, n, s->parts[first.at].previous);
            }
        }
    }
}

static struct status out_of_memory(size_t n)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokens of a text of %zu bytes", n);
}

static struct status merge_long(struct bpe_scratch *s, const char *piece, size_t n)
{
    if (n > UINT32_MAX / 2 || !reserve(s, n)) {
        return out_of_memory(n);
    }
    for (uint32_t i = 0; i < n; i++) {
        int32_t id = s->bpe->merges.byte[(unsigned char)piece[i]];
        s->parts[i] = (struct bpe_part){id, i - 1, i + 1};
    }
    merge_many(s, n);
    for (uint32_t i = 0; i < n; i = s->parts[i].next) {
        if (!id_list_append(&s->piece, s->parts[i].id)) {
            return out_of_memory(n);
        }
    }
    return status_ok();
}

static struct status merge_short(struct bpe_scratch *s, const char *piece, size_t n)
{
    int32_t ids[FEW_BYTES];
    for (size_t i = 0; i < n; i++) {
        ids[i] = s->bpe->merges.byte[(unsigned char)piece[i]];
    }
    size_t n_ids = merge_few(&s->bpe->merges, ids, n);
    for (size_t i = 0; i < n_ids; i++) {
        if (!id_list_append(&s->piece, ids[i])) {
            return out_of_memory(n);
        }
    }
    return status_ok();
}

/* ---- texts ---- */

/* Sets *ids and *n_ids to those of a piece, until the next call.  The cache takes no NUL. */
static struct status encode_piece(struct bpe_scratch *s, const char *piece, size_t n, const int32_t **ids,
                                  size_t *n_ids)
{
    bool cached = n <= WORD_CACHE_LONG_BYTES && memchr(piece, '\0', n) == NULL;
    *ids = cached ? word_cache_find(&s->cache, piece, n, n_ids) : NULL;
    if (*ids != NULL) {
        return status_ok();
    }
    s->piece.n = 0;
    TRY(n <= FEW_BYTES ? merge_short(s, piece, n) : merge_long(s, piece, n));
    if (cached) {
        word_cache_add(&s->cache, piece, n, s->piece.ids, s->piece.n);
    }
    *ids = s->piece.ids;
    *n_ids = s->piece.n;
    return status_ok();
}

struct status bpe_encode_ids(struct bpe_scratch *s, struct id_list *out, const char *text, size_t n)
{
    for (size_t at = 0, end; at < n; at = end) {
        const int32_t *ids;
        size_t n_ids;
        end = bpe_split_end(s->bpe->pattern, text, n, at);
        TRY(encode_piece(s, text + at, end - at, &ids, &n_ids));
        for (size_t i = 0; i < n_ids; i++) {
            if (!id_list_append(out, ids[i])) {
                return out_of_memory(n);
            }
        }
    }
    return status_ok();
}

struct status bpe_encode(struct bpe_scratch *s, struct token_list *out, const char *text, size_t n)
{
    for (size_t at = 0, end; at < n; at = end) {
        const int32_t *ids;
        size_t n_ids, start = at;
        end = bpe_split_end(s->bpe->pattern, text, n, at);
        TRY(encode_piece(s, text + at, end - at, &ids, &n_ids));
        for (size_t i = 0; i < n_ids; i++) {
            size_t n_bytes;
            bpe_merges_piece(&s->bpe->merges, ids[i], &n_bytes);
            if (!token_list_append(out, (struct token){ids[i], start, start + n_bytes})) {
                return out_of_memory(n);
            }
            start += n_bytes;
        }
    }
    return status_ok();
}
