#include "text/wordpiece_merge.h"

#include "core/array.h"

#include <stdlib.h>
#include <string.h>

/* Most pairs are in one word or two, and a list on the heap would take more memory than all else of them. */
enum { FEW_WORDS = 2 };

struct merge_pair {
    uint64_t key; /* left id << 32 | right id */
    int64_t count;
    union {
        uint32_t *many;
        uint32_t few[FEW_WORDS];
    } words; /* [n_words] words that contain it, or did; some twice */
    /* a capacity of 0: part of first_lists, which is full; FEW_WORDS: `few` */
    uint32_t n_words, words_capacity;
    bool touched;
};

struct merge_entry {
    int64_t count;
    uint64_t key;
    uint32_t pair;
};

static uint32_t *words_of(struct merge_pair *p)
{
    return p->words_capacity == FEW_WORDS ? p->words.few : p->words.many;
}

static void free_list(struct merge_pair *p)
{
    if (p->words_capacity > FEW_WORDS) {
        free(p->words.many);
    }
    p->words.many = NULL;
    p->n_words = p->words_capacity = 0;
}

static size_t word_start(const struct merge_word *w)
{
    return (size_t)w->start_high << 32 | w->start_low;
}

void wordpiece_merge_fini(struct wordpiece_merge *m)
{
    word_counts_fini(&m->pieces);
    for (size_t i = 0; i < m->n_pairs; i++) {
        free_list(&m->pairs[i]);
    }
    free(m->symbols);
    free(m->words);
    free(m->pairs);
    free(m->slots);
    free(m->heap);
    free(m->touched);
    *m = (struct wordpiece_merge){0};
}

static bool reserve(struct wordpiece_merge *m, void *items, size_t *capacity, size_t n, size_t item_bytes)
{
    bool fits = array_reserve(items, capacity, n, item_bytes);
    m->out_of_memory |= !fits;
    return fits;
}

int32_t wordpiece_merge_piece(struct wordpiece_merge *m, const char *text, size_t n)
{
    size_t id;
    if (!word_counts_add(&m->pieces, &id, text, n, 0)) {
        m->out_of_memory = true;
        return -1;
    }
    return (int32_t)id;
}

void wordpiece_merge_symbol(struct wordpiece_merge *m, int32_t id)
{
    if (reserve(m, &m->symbols, &m->symbols_capacity, m->n_symbols + 1, sizeof *m->symbols)) {
        m->symbols[m->n_symbols++] = id;
    }
}

void wordpiece_merge_end_word(struct wordpiece_merge *m, int64_t count)
{
    size_t start = 0;
    if (m->n_words > 0) {
        const struct merge_word *last = &m->words[m->n_words - 1];
        start = word_start(last) + last->length;
    }
    size_t length = m->n_symbols - start;
    CHECK(length <= UINT16_MAX, "a word of %zu pieces", length);
    bool fits = m->n_words < UINT32_MAX && start >> 48 == 0;
    if (fits && reserve(m, &m->words, &m->words_capacity, m->n_words + 1, sizeof *m->words)) {
        m->words[m->n_words++] =
            (struct merge_word){count, (uint32_t)start, (uint16_t)(start >> 32), (uint16_t)length};
    }
    m->out_of_memory |= !fits;
}

static size_t pair_slot(const struct wordpiece_merge *m, uint64_t key)
{
    size_t slot = (size_t)((key * 0x9E3779B97F4A7C15U) >> 24) & (m->n_slots - 1);
    while (m->slots[slot] != 0 && m->pairs[m->slots[slot] - 1].key != key) {
        slot = (slot + 1) & (m->n_slots - 1);
    }
    return slot;
}

/* Keeps the table at most half full. */
static bool grow_slots(struct wordpiece_merge *m)
{
    size_t n_slots = m->n_slots == 0 ? 1 << 16 : m->n_slots * 2;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (slots == NULL) {
        m->out_of_memory = true;
        return false;
    }
    free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    for (size_t i = 0; i < m->n_pairs; i++) {
        m->slots[pair_slot(m, m->pairs[i].key)] = (uint32_t)i + 1;
    }
    return true;
}

static struct merge_pair *find_pair(struct wordpiece_merge *m, int32_t left, int32_t right)
{
    if (2 * (m->n_pairs + 1) > m->n_slots && !grow_slots(m)) {
        return NULL;
    }
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t slot = pair_slot(m, key);
    if (m->slots[slot] == 0) {
        if (m->n_pairs >= UINT32_MAX - 1 ||
            !reserve(m, &m->pairs, &m->pairs_capacity, m->n_pairs + 1, sizeof *m->pairs)) {
            m->out_of_memory = true;
            return NULL;
        }
        m->pairs[m->n_pairs++] = (struct merge_pair){.key = key};
        m->slots[slot] = (uint32_t)m->n_pairs;
    }
    return &m->pairs[m->slots[slot] - 1];
}

/* Reserves space for n_wanted words in the list of a pair. */
static bool grow_list(struct wordpiece_merge *m, struct merge_pair *p, size_t n_wanted)
{
    if (n_wanted <= FEW_WORDS) {
        p->words_capacity = FEW_WORDS;
        return true;
    }
    bool own = p->words_capacity > FEW_WORDS;
    uint32_t *grown =
        n_wanted > UINT32_MAX ? NULL : realloc(own ? p->words.many : NULL, n_wanted * sizeof *grown);
    if (grown == NULL) {
        m->out_of_memory = true;
        return false;
    }
    if (!own) {
        memcpy(grown, p->words.few, p->n_words * sizeof *grown);
    }
    p->words.many = grown;
    p->words_capacity = (uint32_t)n_wanted;
    return true;
}

static void note_word(struct wordpiece_merge *m, struct merge_pair *p, uint32_t word)
{
    if (p->n_words > 0 && words_of(p)[p->n_words - 1] == word) {
        return;
    }
    if (p->n_words < p->words_capacity || grow_list(m, p, 2 * (size_t)p->n_words)) {
        words_of(p)[p->n_words++] = word;
    }
}

/* Whether `a` leaves the heap before `b`. */
static bool comes_first(const struct merge_entry *a, const struct merge_entry *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

/* A pair that is too rare comes again if its count grows. */
static void heap_push(struct wordpiece_merge *m, uint32_t pair)
{
    if (m->pairs[pair].count < m->min_frequency ||
        !reserve(m, &m->heap, &m->heap_capacity, m->heap_n + 1, sizeof *m->heap)) {
        return;
    }
    struct merge_entry e = {m->pairs[pair].count, m->pairs[pair].key, pair};
    size_t i = m->heap_n++;
    for (; i > 0 && comes_first(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        m->heap[i] = m->heap[(i - 1) / 2];
    }
    m->heap[i] = e;
}

static struct merge_entry heap_pop(struct wordpiece_merge *m)
{
    struct merge_entry top = m->heap[0];
    struct merge_entry e = m->heap[--m->heap_n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->heap_n) {
            break;
        }
        child += child + 1 < m->heap_n && comes_first(&m->heap[child + 1], &m->heap[child]);
        if (!comes_first(&m->heap[child], &e)) {
            break;
        }
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = e;
    return top;
}

/* Calls `note` for each pair of each word. */
static void each_pair(struct wordpiece_merge *m,
                      void (*note)(struct wordpiece_merge *m, struct merge_pair *p, uint32_t word))
{
    for (size_t w = 0; w < m->n_words && !m->out_of_memory; w++) {
        const int32_t *s = m->symbols + word_start(&m->words[w]);
        for (int32_t i = 0; i + 1 < m->words[w].length; i++) {
            struct merge_pair *p = find_pair(m, s[i], s[i + 1]);
            if (p != NULL) {
                note(m, p, (uint32_t)w);
            }
        }
    }
}

/* For now the capacity is the number of words with the pair, and n_words the last of them. */
static void count_first(struct wordpiece_merge *m, struct merge_pair *p, uint32_t word)
{
    p->count += m->words[word].count;
    p->words_capacity += p->words_capacity == 0 || p->n_words != word;
    p->n_words = word;
}

/* The lists of the first pairs have their exact lengths: together they are as long as the text's distinct
 * words. */
void wordpiece_merge_begin(struct wordpiece_merge *m, int64_t min_frequency)
{
    m->min_frequency = min_frequency;
    m->n_live = m->n_symbols;
    each_pair(m, count_first);
    for (size_t i = 0; i < m->n_pairs && !m->out_of_memory; i++) {
        struct merge_pair *p = &m->pairs[i];
        size_t n_wanted = p->words_capacity;
        p->n_words = p->words_capacity = 0;
        grow_list(m, p, n_wanted);
    }
    each_pair(m, note_word);
    for (size_t i = 0; i < m->n_pairs; i++) {
        heap_push(m, (uint32_t)i);
    }
}

static void touch(struct wordpiece_merge *m, struct merge_pair *p)
{
    if (!p->touched && reserve(m, &m->touched, &m->touched_capacity, m->n_touched + 1, sizeof *m->touched)) {
        m->touched[m->n_touched++] = (uint32_t)(p - m->pairs);
        p->touched = true;
    }
}

/* A pair of a word has gone.  One that is in no word needs its list no more: if it comes back, then in words
 * that are noted again. */
static void subtract_pair(struct wordpiece_merge *m, int32_t left, int32_t right, int64_t count)
{
    struct merge_pair *p = find_pair(m, left, right);
    if (p != NULL) {
        p->count -= count;
        if (p->count == 0) {
            free_list(p);
        }
    }
}

static void add_pair(struct wordpiece_merge *m, int32_t left, int32_t right, uint32_t word)
{
    struct merge_pair *p = find_pair(m, left, right);
    if (p != NULL) {
        p->count += m->words[word].count;
        note_word(m, p, word);
        touch(m, p);
    }
}

/* Whether the pair to merge is at position i of n pieces. */
static bool is_here(const int32_t *s, int32_t n, int32_t i, int32_t left, int32_t right)
{
    return i + 1 < n && s[i] == left && s[i + 1] == right;
}

/* Counts only pairs next to a place of the merge; the others of the word stay. */
static void merge_in_word(struct wordpiece_merge *m, uint32_t word, int32_t left, int32_t right,
                          int32_t merged)
{
    struct merge_word *w = &m->words[word];
    int32_t *s = m->symbols + word_start(w);
    int32_t n = w->length;
    int32_t n_out = 0;
    bool after_merge = false; /* the piece before is new */
    for (int32_t i = 0; i < n;) {
        bool here = is_here(s, n, i, left, right);
        int32_t next = i + (here ? 2 : 1);
        if (here) {
            subtract_pair(m, left, right, w->count);
        }
        if (next < n && (here || is_here(s, n, next, left, right))) {
            subtract_pair(m, s[next - 1], s[next], w->count);
        }
        s[n_out++] = here ? merged : s[i];
        if (n_out > 1 && (here || after_merge)) {
            add_pair(m, s[n_out - 2], s[n_out - 1], word);
        }
        after_merge = here;
        i = next;
    }
    w->length = (uint16_t)n_out;
    m->n_live -= (size_t)(n - n_out);
}

/* Merges leave gaps after words.  Closes the gaps when they are half of the memory. */
static void close_gaps(struct wordpiece_merge *m)
{
    if (m->n_live > m->n_symbols / 2) {
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < m->n_words; i++) {
        struct merge_word *w = &m->words[i];
        memmove(m->symbols + n, m->symbols + word_start(w), w->length * sizeof *m->symbols);
        w->start_low = (uint32_t)n;
        w->start_high = (uint16_t)(n >> 32);
        n += w->length;
    }
    m->n_symbols = n;
    int32_t *fitting = realloc(m->symbols, (n + 1) * sizeof *fitting);
    m->symbols = fitting != NULL ? fitting : m->symbols;
    m->symbols_capacity = n + 1;
}

/* The piece that two pieces make: the right one without its prefix. */
static int32_t join(struct wordpiece_merge *m, int32_t left, int32_t right)
{
    const struct word_count *a = &m->pieces.words[left];
    const struct word_count *b = &m->pieces.words[right];
    char joined[1024];
    size_t n = (size_t)a->n_bytes + b->n_bytes - m->prefix_bytes;
    CHECK(n <= sizeof joined, "a piece of %zu bytes", n);
    memcpy(joined, m->pieces.text + a->start, a->n_bytes);
    memcpy(joined + a->n_bytes, m->pieces.text + b->start + m->prefix_bytes, b->n_bytes - m->prefix_bytes);
    return wordpiece_merge_piece(m, joined, n);
}

static void merge_pair(struct wordpiece_merge *m, uint32_t pair)
{
    int32_t left = (int32_t)(m->pairs[pair].key >> 32);
    int32_t right = (int32_t)(m->pairs[pair].key & UINT32_MAX);
    int32_t merged = join(m, left, right);
    if (merged < 0) {
        return;
    }
    m->newest_left = left;
    m->newest_right = right;
    struct merge_pair list = m->pairs[pair]; /* taken: the pair disappears from all these words */
    m->pairs[pair].words.many = NULL;
    m->pairs[pair].n_words = m->pairs[pair].words_capacity = 0;
    for (uint32_t i = 0; i < list.n_words && !m->out_of_memory; i++) {
        merge_in_word(m, words_of(&list)[i], left, right, merged);
    }
    free_list(&list);
    for (size_t i = 0; i < m->n_touched; i++) {
        m->pairs[m->touched[i]].touched = false;
        heap_push(m, m->touched[i]);
    }
    m->n_touched = 0;
    close_gaps(m);
}

bool wordpiece_merge_next(struct wordpiece_merge *m)
{
    while (m->heap_n > 0 && !m->out_of_memory) {
        struct merge_entry e = heap_pop(m);
        int64_t count = m->pairs[e.pair].count;
        if (e.count == count) {
            merge_pair(m, e.pair);
            return true;
        }
        if (count < e.count) {
            heap_push(m, e.pair); /* the count has dropped since: merges of other pairs took some */
        }
    }
    return false;
}
