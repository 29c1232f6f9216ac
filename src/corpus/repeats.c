#include "corpus/repeats.h"

#include "core/hash.h"
#include "core/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct status repeats_init(struct repeats *r)
{
    *r = (struct repeats){.slots = calloc(REPEATS_SLOTS, sizeof *r->slots)};
    FAIL_IF(r->slots == NULL, STATUS_MEMORY, "out of memory for the hashes of %d lines", (int)REPEATS_SLOTS);
    return status_ok();
}

void repeats_fini(struct repeats *r)
{
    free(r->slots);
    r->slots = NULL;
}

/* The slot of a hash, or the empty slot where it goes. */
static struct repeats_slot *slot_of(const struct repeats *r, uint64_t hash)
{
    size_t at = hash % REPEATS_SLOTS;
    while (r->slots[at].hash != 0 && r->slots[at].hash != hash) {
        at = (at + 1) % REPEATS_SLOTS;
    }
    return &r->slots[at];
}

/* Forgets lines seen at most `rarely` times; all lines, if there is no memory for the copy. */
static void forget(struct repeats *r, uint32_t rarely)
{
    struct repeats_slot *old = malloc(REPEATS_SLOTS * sizeof *old);
    if (old != NULL) {
        memcpy(old, r->slots, REPEATS_SLOTS * sizeof *old);
    }
    memset(r->slots, 0, REPEATS_SLOTS * sizeof *r->slots);
    r->n_used = 0;
    for (size_t i = 0; old != NULL && i < REPEATS_SLOTS; i++) {
        if (old[i].count > rarely) {
            *slot_of(r, old[i].hash) = old[i];
            r->n_used++;
        }
    }
    free(old);
}

static void make_room(struct repeats *r)
{
    for (uint32_t rarely = 1; r->n_used > REPEATS_SLOTS / 4 * 3; rarely *= 2) {
        forget(r, rarely);
    }
}

/* The beginning of a line, cut between characters. */
static void keep_example(struct repeats *r, const char *line, size_t n)
{
    size_t kept = n < REPEATS_EXAMPLE_BYTES ? n : REPEATS_EXAMPLE_BYTES;
    while (kept < n && kept > 0 && ((unsigned char)line[kept] & 0xC0) == 0x80) {
        kept--;
    }
    memcpy(r->example, line, kept);
    r->example[kept] = '\0';
}

uint64_t repeats_hash(const char *line, size_t n)
{
    uint64_t hash = hash_bytes(line, n);
    return hash != 0 ? hash : 1; /* 0 is an empty slot */
}

uint32_t repeats_add(struct repeats *r, uint64_t hash, const char *line, size_t n)
{
    struct repeats_slot *slot = slot_of(r, hash);
    r->n_bytes += n;
    if (slot->hash == 0) {
        *slot = (struct repeats_slot){.hash = hash, .count = 1};
        r->n_used++;
        make_room(r);
        return 1;
    }
    r->n_repeated += n;
    slot->count += slot->count < UINT32_MAX;
    if ((uint64_t)(slot->count - 1) * n > r->most) {
        r->most = (uint64_t)(slot->count - 1) * n;
        r->most_count = slot->count;
        keep_example(r, line, n);
    }
    return slot->count;
}

void repeats_save(const struct repeats *r, struct buf *out)
{
    uint64_t head[] = {(uint64_t)r->n_used, r->n_bytes, r->n_repeated, r->most, r->most_count};
    buf_append(out, head, sizeof head);
    buf_append(out, r->example, sizeof r->example);
    for (size_t i = 0; i < REPEATS_SLOTS; i++) {
        if (r->slots[i].hash != 0) {
            buf_append(out, &r->slots[i].hash, sizeof r->slots[i].hash);
            buf_append(out, &r->slots[i].count, sizeof r->slots[i].count);
        }
    }
}

struct status repeats_load(struct repeats *r, struct span *in)
{
    uint64_t n_used = bytes_read_u64(in);
    r->n_bytes = bytes_read_u64(in);
    r->n_repeated = bytes_read_u64(in);
    r->most = bytes_read_u64(in);
    r->most_count = (uint32_t)bytes_read_u64(in);
    const unsigned char *example = bytes_take(in, sizeof r->example);
    FAIL_IF(in->failed || n_used >= REPEATS_SLOTS, STATUS_DATA,
            "the counts of repeated lines of an earlier run are damaged");
    memcpy(r->example, example, sizeof r->example);
    for (uint64_t i = 0; i < n_used && !in->failed; i++) {
        struct repeats_slot slot = {.hash = bytes_read_u64(in)};
        slot.count = bytes_read_u32(in);
        if (slot.hash != 0) {
            *slot_of(r, slot.hash) = slot;
            r->n_used++;
        }
    }
    return in->failed
               ? status_error(STATUS_DATA, "the counts of repeated lines of an earlier run are damaged")
               : status_ok();
}

void repeats_tell(const struct repeats *r)
{
    enum { ONE_IN = 20 };
    if (r->n_repeated * ONE_IN > r->n_bytes) {
        log_warning("%.1f %% of the text is repeated lines, most often \"%s\" (%" PRIu32
                    " times); a model memorises such lines, and its losses look better than it is: remove "
                    "the repeats",
                    100.0 * (double)r->n_repeated / (double)r->n_bytes, r->example, r->most_count);
    }
}
