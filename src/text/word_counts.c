#include "text/word_counts.h"

#include "core/array.h"
#include "core/hash.h"

#include <stdlib.h>
#include <string.h>

void word_counts_fini(struct word_counts *w)
{
    free(w->words);
    free(w->text);
    free(w->slots);
    *w = (struct word_counts){0};
}

void word_counts_clear(struct word_counts *w)
{
    w->n = 0;
    w->text_bytes = 0;
    if (w->slots != NULL) {
        memset(w->slots, 0, w->n_slots * sizeof *w->slots);
    }
}

static uint32_t hash_text(const char *text, size_t n)
{
    uint64_t h = hash_bytes(text, n);
    return (uint32_t)(h >> 32 ^ h);
}

static size_t find_slot(const struct word_counts *w, uint32_t hash, const char *text, size_t n)
{
    size_t slot = hash & (w->n_slots - 1);
    while (w->slots[slot] != 0) {
        const struct word_count *c = &w->words[w->slots[slot] - 1];
        if (c->hash == hash && c->n_bytes == n && memcmp(w->text + c->start, text, n) == 0) {
            break;
        }
        slot = (slot + 1) & (w->n_slots - 1);
    }
    return slot;
}

/* Keeps the table at most half full. */
static bool grow_slots(struct word_counts *w)
{
    size_t n_slots = w->n_slots == 0 ? 1024 : w->n_slots * 2;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(w->slots);
    w->slots = slots;
    w->n_slots = n_slots;
    for (size_t i = 0; i < w->n; i++) {
        size_t slot = w->words[i].hash & (n_slots - 1);
        while (slots[slot] != 0) {
            slot = (slot + 1) & (n_slots - 1);
        }
        slots[slot] = (uint32_t)i + 1;
    }
    return true;
}

static bool make_room(struct word_counts *w, size_t n)
{
    return w->n < UINT32_MAX - 1 && ARRAY_RESERVE(w->words, w->capacity, w->n + 1) &&
           ARRAY_RESERVE(w->text, w->text_capacity, w->text_bytes + n);
}

bool word_counts_add(struct word_counts *w, size_t *index, const char *text, size_t n, int64_t count)
{
    if (2 * (w->n + 1) > w->n_slots && !grow_slots(w)) {
        return false;
    }
    uint32_t hash = hash_text(text, n);
    size_t slot = find_slot(w, hash, text, n);
    if (w->slots[slot] == 0) {
        if (n > UINT32_MAX || !make_room(w, n)) {
            return false;
        }
        memcpy(w->text + w->text_bytes, text, n);
        w->words[w->n] = (struct word_count){w->text_bytes, (uint32_t)n, hash, 0};
        w->text_bytes += n;
        w->slots[slot] = (uint32_t)++w->n;
    }
    *index = w->slots[slot] - 1;
    w->words[*index].count += count;
    return true;
}

int64_t word_counts_find(const struct word_counts *w, const char *text, size_t n)
{
    if (w->n == 0) {
        return 0;
    }
    uint32_t found = w->slots[find_slot(w, hash_text(text, n), text, n)];
    return found == 0 ? 0 : w->words[found - 1].count;
}
