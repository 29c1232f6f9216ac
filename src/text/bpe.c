#include "text/bpe.h"

#include "text/utf8.h"

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

void bpe_fini(struct bpe *bpe)
{
    bpe_merges_fini(&bpe->merges);
    pre_split_fini(&bpe->split);
    *bpe = (struct bpe){0};
}

struct status bpe_scratch_init(struct bpe_scratch *s, const struct bpe *bpe)
{
    *s = (struct bpe_scratch){.bpe = bpe};
    TRY(bpe->split.has_regex ? split_regex_scratch_create(&s->regex) : status_ok());
    return word_cache_init(&s->cache, WORD_CACHE_PIECE_BITS)
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for a tokenizer");
}

void bpe_scratch_fini(struct bpe_scratch *s)
{
    word_cache_fini(&s->cache);
    id_list_fini(&s->start);
    id_list_fini(&s->piece);
    split_regex_scratch_destroy(s->regex);
    normal_text_fini(&s->normal);
    unicode_form_room_fini(&s->room);
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

/* Neighbours that merge: the ids, and of the merge of each with the next one its id, and its rank in front of
 * its index, so that the least number is the merge to do. */
struct neighbours {
    int32_t ids[FEW_BYTES];
    int32_t merged[FEW_BYTES];
    uint32_t ranks[FEW_BYTES];
};

enum { INDEX_BITS = 6, NO_RANK = 1 << 24 }; /* no rank is as high */
_Static_assert((int)BPE_MOST_PIECES <= (int)NO_RANK, "a rank and an index are 32 bits");
_Static_assert((int)FEW_BYTES <= 1 << INDEX_BITS, "a rank and an index are 32 bits");

static void find_merge(struct neighbours *p, const struct bpe_merges *m, size_t i)
{
    const struct bpe_merge *merge = bpe_merges_find(m, p->ids[i], p->ids[i + 1]);
    p->ranks[i] = merge != NULL ? (uint32_t)merge->rank : NO_RANK;
    p->merged[i] = merge != NULL ? merge->id : -1;
}

/* Merges ids[0..n) in place, the lowest rank first, and returns how many are left. */
static size_t merge_few(struct neighbours *p, const struct bpe_merges *m, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        bpe_merges_prefetch(m, p->ids[i], p->ids[i + 1]);
    }
    for (size_t i = 0; i + 1 < n; i++) {
        find_merge(p, m, i);
    }
    for (;;) {
        uint32_t least = (uint32_t)NO_RANK << INDEX_BITS;
        for (uint32_t i = 0; i + 1 < n; i++) {
            uint32_t here = p->ranks[i] << INDEX_BITS | i;
            least = here < least ? here : least;
        }
        size_t best = least & ((1U << INDEX_BITS) - 1);
        if (least >> INDEX_BITS == NO_RANK) {
            return n;
        }
        p->ids[best] = p->merged[best];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            p->ids[i] = p->ids[i + 1];
            p->ranks[i - 1] = p->ranks[i];
            p->merged[i - 1] = p->merged[i];
        }
        if (best + 1 < n) {
            find_merge(p, m, best);
        }
        if (best > 0) {
            find_merge(p, m, best - 1);
        }
    }
}

/* ---- long pieces ---- */

/* The lowest rank comes first and, of equal ranks, the leftmost pair: only this order gives the ids
 * of the reference. */
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

static struct status merge_long(struct bpe_scratch *s, const int32_t *ids, size_t n)
{
    if (n > UINT32_MAX / 2 || !reserve(s, n)) {
        return out_of_memory(n);
    }
    for (uint32_t i = 0; i < n; i++) {
        s->parts[i] = (struct bpe_part){ids[i], i - 1, i + 1};
    }
    merge_many(s, n);
    for (uint32_t i = 0; i < n; i = s->parts[i].next) {
        if (!id_list_append(&s->piece, s->parts[i].id)) {
            return out_of_memory(n);
        }
    }
    return status_ok();
}

static struct status merge_short(struct bpe_scratch *s, const int32_t *ids, size_t n)
{
    struct neighbours p;
    memcpy(p.ids, ids, n * sizeof *ids);
    size_t n_ids = merge_few(&p, &s->bpe->merges, n);
    for (size_t i = 0; i < n_ids; i++) {
        if (!id_list_append(&s->piece, p.ids[i])) {
            return out_of_memory(n);
        }
    }
    return status_ok();
}

/* ---- the first ids of a piece ---- */

static bool start_bytes(struct bpe_scratch *s, const char *piece, size_t n)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = id_list_append(&s->start, s->bpe->merges.byte[(unsigned char)piece[i]]);
    }
    return ok;
}

bool bpe_has_bytes(const struct bpe *b, const char *text, size_t n)
{
    size_t i = 0;
    while (b->has_bytes && i < n && b->merges.byte[(unsigned char)text[i]] >= 0) {
        i++;
    }
    return b->has_bytes && i == n;
}

/* Each character's; where it has no piece, its bytes' or the unknown token. */
static bool start_characters(struct bpe_scratch *s, const char *piece, size_t n)
{
    const struct bpe *b = s->bpe;
    bool was_unknown = false, ok = true;
    for (size_t at = 0, length; at < n && ok; at += length) {
        uint32_t c;
        length = (size_t)utf8_decode(&c, piece + at, n - at);
        int32_t id = bpe_merges_id(&b->merges, piece + at, length);
        if (id < 0 && bpe_has_bytes(b, piece + at, length)) {
            ok = start_bytes(s, piece + at, length);
            continue;
        }
        bool joins = id < 0 && was_unknown && b->fuses_unknown;
        was_unknown = id < 0;
        id = id < 0 ? b->unknown : id;
        ok = joins || id < 0 || id_list_append(&s->start, id);
    }
    return ok;
}

/* The bytes of text[0..n), in a piece, for which the token `id` stands. */
static size_t count_bytes(const struct bpe *b, int32_t id, const char *text, size_t n)
{
    const struct bpe_merges *m = &b->merges;
    size_t n_bytes, at = 0, length = 0;
    uint32_t c;
    const char *bytes = bpe_merges_piece(m, id, &n_bytes);
    if (!m->is_plain || (n_bytes <= n && memcmp(bytes, text, n_bytes) == 0)) {
        return n_bytes;
    }
    if (n == 0 || m->byte[(unsigned char)text[0]] == id) {
        return n > 0;
    }
    do {
        at += length;
        length = at < n ? (size_t)utf8_decode(&c, text + at, n - at) : 0;
    } while (length > 0 && (at == 0 || b->fuses_unknown) && bpe_merges_id(m, text + at, length) < 0);
    return at;
}

/* ---- texts ---- */

static struct status merge(struct bpe_scratch *s, const char *piece, size_t n)
{
    s->start.n = 0;
    if (!(s->bpe->merges.is_plain ? start_characters : start_bytes)(s, piece, n)) {
        return out_of_memory(n);
    }
    n = s->start.n;
    return n == 0           ? status_ok()
           : n <= FEW_BYTES ? merge_short(s, s->start.ids, n)
                            : merge_long(s, s->start.ids, n);
}

/* Whether the piece is one token because the vocabulary has it. */
static bool takes_whole(struct bpe_scratch *s, const char *piece, size_t n)
{
    int32_t id = s->bpe->ignores_merges ? bpe_merges_id(&s->bpe->merges, piece, n) : -1;
    return id >= 0 && id_list_append(&s->piece, id);
}

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
    TRY(takes_whole(s, piece, n) ? status_ok() : merge(s, piece, n));
    if (cached) {
        word_cache_add(&s->cache, piece, n, s->piece.ids, s->piece.n);
    }
    *ids = s->piece.ids;
    *n_ids = s->piece.n;
    return status_ok();
}

/* The last bytes of a text and zeros after them, where a short piece at the end can be read as 16 bytes. */
struct tail {
    char bytes[2 * WORD_CACHE_SHORT_BYTES];
    size_t start; /* offset in the text of the first byte in `bytes` */
};

static void take_tail(struct tail *tail, const char *text, size_t n)
{
    size_t n_kept = n < WORD_CACHE_SHORT_BYTES ? n : WORD_CACHE_SHORT_BYTES;
    memset(tail->bytes, 0, sizeof tail->bytes);
    if (n > 0) { /* an empty text may be NULL */
        memcpy(tail->bytes, text + n - n_kept, n_kept);
    }
    tail->start = n - n_kept;
}

/* One of the consecutive pieces that bpe_split_quick found. */
struct quick_piece {
    struct word_cache_probe probe; /* set if the piece is short */
    size_t n_bytes;
};

enum { QUICK_PIECES = 32 };

static size_t find_quick(struct quick_piece *pieces, const struct bpe_scratch *s, const struct tail *tail,
                         const char *text, size_t n, size_t at)
{
    size_t n_pieces = 0;
    for (size_t end; n_pieces < QUICK_PIECES && at < n; at = end) {
        struct quick_piece *p = &pieces[n_pieces];
        end = bpe_split_quick(text, n, at);
        if (end == 0) {
            break;
        }
        p->n_bytes = end - at;
        if (p->n_bytes <= WORD_CACHE_SHORT_BYTES) {
            const char *bytes = at >= tail->start ? tail->bytes + (at - tail->start) : text + at;
            p->probe = word_cache_probe(&s->cache, bytes, p->n_bytes);
            __builtin_prefetch(p->probe.pair);
        }
        n_pieces++;
    }
    return n_pieces;
}

/* Appends the ids of a piece that the cache of short ones has; false: it has not. */
static bool append_known(struct id_list *out, const struct quick_piece *p)
{
    const struct word_cache_short *e =
        p->n_bytes <= WORD_CACHE_SHORT_BYTES ? word_cache_find_probe(&p->probe) : NULL;
    if (e == NULL || e->n_ids > WORD_CACHE_SHORT_IDS || out->capacity - out->n < WORD_CACHE_SHORT_IDS) {
        return false;
    }
    memcpy(out->ids + out->n, e->ids, sizeof e->ids); /* all three, since a fixed number is faster */
    out->n += e->n_ids;
    return true;
}

struct status bpe_append_ids(struct bpe_scratch *s, struct id_list *out, const char *piece, size_t n)
{
    const int32_t *ids;
    size_t n_ids;
    TRY(encode_piece(s, piece, n, &ids, &n_ids));
    for (size_t i = 0; i < n_ids; i++) {
        if (!id_list_append(out, ids[i])) {
            return out_of_memory(n);
        }
    }
    return status_ok();
}

/* By one of the two patterns. */
static struct status encode_by_pattern(struct bpe_scratch *s, struct id_list *out, const char *text, size_t n)
{
    struct quick_piece pieces[QUICK_PIECES];
    struct tail tail;
    take_tail(&tail, text, n);
    for (size_t at = 0; at < n;) {
        size_t n_pieces = s->bpe->pattern == BPE_GPT2 ? find_quick(pieces, s, &tail, text, n, at) : 0;
        for (size_t i = 0; i < n_pieces; i++) {
            if (!append_known(out, &pieces[i])) {
                TRY(bpe_append_ids(s, out, text + at, pieces[i].n_bytes));
            }
            at += pieces[i].n_bytes;
        }
        if (n_pieces < QUICK_PIECES && at < n) {
            size_t end = bpe_split_end(s->bpe->pattern, text, n, at);
            TRY(bpe_append_ids(s, out, text + at, end - at));
            at = end;
        }
    }
    return status_ok();
}

/* Where the pieces of a text go. */
struct id_sink {
    struct bpe_scratch *scratch;
    struct id_list *out;
};

static struct status take_piece(void *self, const char *text, size_t begin, size_t end)
{
    const struct id_sink *sink = self;
    return bpe_append_ids(sink->scratch, sink->out, text + begin, end - begin);
}

static struct status encode_by_steps(struct bpe_scratch *s, struct id_list *out, const char *text, size_t n)
{
    struct id_sink ids = {s, out};
    const struct pre_split_sink sink = {take_piece, &ids};
    return pre_split_each(&s->bpe->split, s->regex, text, n, &sink);
}

/* The text in its normal form, in the scratch; the text itself where it needs none. */
static struct status normalize(struct bpe_scratch *s, struct normal_text *t, bool keeps_origins)
{
    if (!s->bpe->has_form || unicode_form_is_plain(s->bpe->form, t->bytes, t->n)) {
        return status_ok();
    }
    normal_text_clear(&s->normal, keeps_origins);
    unicode_form_apply(&s->normal, &s->room, s->bpe->form, t);
    *t = s->normal;
    return normal_text_status(t);
}

struct status bpe_encode_ids(struct bpe_scratch *s, struct id_list *out, const char *text, size_t n)
{
    struct normal_text t = {.bytes = (char *)text, .n = n};
    TRY(normalize(s, &t, false));
    return s->bpe->pattern == BPE_SPLITS ? encode_by_steps(s, out, t.bytes, t.n)
                                         : encode_by_pattern(s, out, t.bytes, t.n);
}

struct status bpe_append_tokens(struct bpe_scratch *s, struct token_list *out, const struct normal_text *text,
                                size_t begin, size_t end)
{
    const int32_t *ids;
    size_t n_ids, start = begin;
    TRY(encode_piece(s, text->bytes + begin, end - begin, &ids, &n_ids));
    for (size_t i = 0; i < n_ids; i++) {
        size_t n_bytes = count_bytes(s->bpe, ids[i], text->bytes + start, end - start);
        struct token token = {ids[i], normal_text_origin(text, start),
                              normal_text_origin(text, start + n_bytes)};
        if (!token_list_append(out, token)) {
            return out_of_memory(end - begin);
        }
        start += n_bytes;
    }
    return status_ok();
}

struct token_sink {
    struct bpe_scratch *scratch;
    struct token_list *out;
    const struct normal_text *text;
};

static struct status take_tokens(void *self, const char *text, size_t begin, size_t end)
{
    (void)text;
    const struct token_sink *sink = self;
    return bpe_append_tokens(sink->scratch, sink->out, sink->text, begin, end);
}

struct status bpe_encode(struct bpe_scratch *s, struct token_list *out, const char *text, size_t n)
{
    struct normal_text t = {.bytes = (char *)text, .n = n};
    TRY(normalize(s, &t, true));
    struct token_sink tokens = {s, out, &t};
    const struct pre_split_sink sink = {take_tokens, &tokens};
    if (s->bpe->pattern == BPE_SPLITS) {
        return pre_split_each(&s->bpe->split, s->regex, t.bytes, t.n, &sink);
    }
    for (size_t at = 0, end; at < t.n; at = end) {
        end = bpe_split_end(s->bpe->pattern, t.bytes, t.n, at);
        TRY(take_tokens(&tokens, t.bytes, at, end));
    }
    return status_ok();
}
