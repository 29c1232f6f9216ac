#include "corpus/hash_set.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1 << 12 };

static bool is_empty(const struct hash_set *s, const unsigned char *slot)
{
    static const unsigned char zeros[64];
    return memcmp(slot, zeros, s->width) == 0;
}

/* The slot of a hash, or the empty slot where it goes. */
static unsigned char *slot_of(const struct hash_set *s, const void *hash)
{
    size_t at;
    memcpy(&at, hash, sizeof at);
    at %= s->capacity;
    while (!is_empty(s, s->slots + at * s->width) && memcmp(s->slots + at * s->width, hash, s->width) != 0) {
        at = (at + 1) % s->capacity;
    }
    return s->slots + at * s->width;
}

bool hash_set_has(const struct hash_set *s, const void *hash)
{
    return s->capacity > 0 && !is_empty(s, slot_of(s, hash));
}

size_t hash_set_bytes(size_t width, size_t most, double n)
{
    size_t capacity = FIRST_CAPACITY;
    while ((double)capacity < 2 * (n < (double)most ? n : (double)most)) {
        capacity *= 2;
    }
    return capacity * width;
}

/* Reserves a slot for one more hash; at most half of the slots are used. */
static struct status make_room(struct hash_set *s)
{
    if (2 * (s->n + 1) <= s->capacity) {
        return status_ok();
    }
    struct hash_set grown = {.width = s->width,
                             .capacity = s->capacity == 0 ? FIRST_CAPACITY : 2 * s->capacity};
    grown.slots = calloc(grown.capacity, s->width);
    FAIL_IF(grown.slots == NULL, STATUS_MEMORY, "out of memory for the hashes of %zu documents", s->n);
    for (size_t i = 0; i < s->capacity; i++) {
        const unsigned char *slot = s->slots + i * s->width;
        if (!is_empty(s, slot)) {
            memcpy(slot_of(&grown, slot), slot, s->width);
        }
    }
    free(s->slots);
    s->slots = grown.slots;
    s->capacity = grown.capacity;
    return status_ok();
}

struct status hash_set_add(struct hash_set *s, const void *hash, bool *is_new)
{
    TRY(make_room(s));
    unsigned char *slot = slot_of(s, hash);
    *is_new = is_empty(s, slot);
    if (*is_new && s->n < s->most) {
        memcpy(slot, hash, s->width);
        s->n++;
        if (s->has_file) {
            append_file_put(&s->file, hash, s->width);
        }
    }
    return status_ok();
}

/* ---- between runs ---- */

struct reader {
    struct hash_set *set;
    struct status status;
};

static void read_hashes(void *context, const unsigned char *bytes, size_t n)
{
    struct reader *r = context;
    bool is_new;
    for (size_t i = 0; i + r->set->width <= n && !failed(r->status); i += r->set->width) {
        r->status = hash_set_add(r->set, bytes + i, &is_new);
    }
}

struct status hash_set_open(struct hash_set *s, size_t width, size_t most, const char *path,
                            struct append_mark from)
{
    *s = (struct hash_set){.width = width, .most = most, .file.fd = -1};
    struct reader reader = {.set = s};
    if (path == NULL) {
        return status_ok();
    }
    TRY(append_file_open(&s->file, path, from));
    TRY(append_file_read(path, from.n_bytes, read_hashes, &reader));
    s->has_file = true;
    return reader.status;
}

void hash_set_close(struct hash_set *s)
{
    append_file_close(&s->file);
    free(s->slots);
    s->slots = NULL;
    s->n = s->capacity = 0;
    s->has_file = false;
}
