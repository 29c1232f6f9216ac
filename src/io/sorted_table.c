#include "io/sorted_table.h"

#include "core/bytes.h"
#include "core/hash.h"

#include <string.h>

static const uint64_t MAGIC = 0xdb4775248b80fb57;

/* Position of a block, in bytes. */
struct handle {
    uint64_t begin, n;
};

static struct status damaged(const char *source, const char *what)
{
    return status_error(STATUS_DATA, "%s is a damaged table, or cut short: %s", source, what);
}

static struct handle read_handle(struct span *s)
{
    struct handle h = {.begin = bytes_read_varint(s)};
    h.n = bytes_read_varint(s);
    return h;
}

/* Reads a block, which must end before `end`: checks its checksum and decompresses it. */
static struct status read_block(struct sorted_table *t, struct span *block, struct handle h,
                                const unsigned char *bytes, uint64_t end, const char *source)
{
    uint64_t with_trailer;
    if (!bytes_add(h.n, SORTED_TABLE_TRAILER_BYTES, &with_trailer) || h.begin > end ||
        with_trailer > end - h.begin) {
        return damaged(source, "a block is not inside it");
    }
    const unsigned char *data = bytes + h.begin;
    size_t n = (size_t)h.n;
    if (hash_mask_crc(hash_crc32c(0, data, n + 1)) != bytes_load_u32(data + n + 1)) {
        return damaged(source, "the checksum of a block is wrong");
    }
    *block = bytes_span(data, n);
    if (data[n] == SORTED_TABLE_PLAIN) {
        return status_ok();
    }
    size_t length;
    if (data[n] != SORTED_TABLE_SNAPPY || !snappy_length(&length, data, n)) {
        return damaged(source, "a block has an unknown compression, or an impossible size");
    }
    void *out = bump_take(&t->memory, length);
    if (out == NULL) {
        return bump_status(&t->memory, source);
    }
    *block = bytes_span(out, length);
    return snappy_expand(out, length, data, n) ? status_ok()
                                               : damaged(source, "a compressed block is damaged");
}

/* Skips the restart points after the entries: offsets of complete keys, for binary search. */
static bool cut_restarts(struct span *block)
{
    if (block->n < sizeof(uint32_t)) {
        return false;
    }
    uint64_t n_restarts = bytes_load_u32(block->data + block->n - sizeof(uint32_t));
    uint64_t bytes = (n_restarts + 1) * sizeof(uint32_t);
    if (bytes > block->n) {
        return false;
    }
    block->n -= (size_t)bytes;
    return true;
}

/* The current entry of a block. */
struct cursor {
    struct span block;
    size_t key_bytes;
    const unsigned char *value;
    size_t value_bytes;
    char key[SORTED_TABLE_KEY_BYTES];
};

/* Reads the next entry; false if it is damaged. */
static bool read_entry(struct cursor *c)
{
    uint64_t shared = bytes_read_varint(&c->block);
    uint64_t rest = bytes_read_varint(&c->block);
    uint64_t value_bytes = bytes_read_varint(&c->block);
    const unsigned char *key = bytes_take_items(&c->block, rest, 1);
    c->value = bytes_take_items(&c->block, value_bytes, 1);
    if (c->value == NULL || shared > c->key_bytes || rest >= sizeof c->key - shared) {
        return false;
    }
    memcpy(c->key + shared, key, (size_t)rest);
    c->key_bytes = (size_t)(shared + rest);
    c->value_bytes = (size_t)value_bytes;
    return true;
}

static struct status add_entry(struct sorted_table *t, const struct cursor *c, const char *source)
{
    const struct sorted_table_entry *last = t->n > 0 ? &t->entries[t->n - 1] : NULL;
    if (last != NULL) {
        size_t shorter = last->key_bytes < c->key_bytes ? last->key_bytes : c->key_bytes;
        int order = memcmp(last->key, c->key, shorter);
        if (order > 0 || (order == 0 && last->key_bytes >= c->key_bytes)) {
            return damaged(source, "its keys are not in order");
        }
    }
    if (t->n == t->capacity) {
        size_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
        struct sorted_table_entry *grown = bump_take(&t->memory, capacity * sizeof *grown);
        if (grown == NULL) {
            return bump_status(&t->memory, source);
        }
        if (t->n > 0) {
            memcpy(grown, t->entries, t->n * sizeof *grown);
        }
        t->entries = grown;
        t->capacity = capacity;
    }
    const char *key = bump_copy(&t->memory, c->key, c->key_bytes);
    if (key == NULL) {
        return bump_status(&t->memory, source);
    }
    t->entries[t->n++] = (struct sorted_table_entry){key, c->key_bytes, c->value, c->value_bytes};
    return status_ok();
}

static struct status read_entries(struct sorted_table *t, struct span block, const char *source)
{
    struct cursor c = {.block = block};
    if (!cut_restarts(&c.block)) {
        return damaged(source, "a block lacks its restart points");
    }
    while (bytes_left(&c.block) > 0) {
        if (!read_entry(&c)) {
            return damaged(source, "an entry is damaged, or has a key of more than 4095 bytes");
        }
        TRY(add_entry(t, &c, source));
    }
    return status_ok();
}

/* The values of the index are handles of blocks; its keys only separate them and are not needed. */
static struct status read_index(struct sorted_table *t, struct span index, const unsigned char *bytes,
                                uint64_t end, const char *source)
{
    struct cursor c = {.block = index};
    uint64_t last_end = 0;
    if (!cut_restarts(&c.block)) {
        return damaged(source, "its index lacks its restart points");
    }
    while (bytes_left(&c.block) > 0) {
        struct span block;
        if (!read_entry(&c)) {
            return damaged(source, "an entry of its index is damaged");
        }
        struct span value = bytes_span(c.value, c.value_bytes);
        struct handle h = read_handle(&value);
        if (value.failed || h.begin < last_end) {
            return damaged(source, "its blocks overlap");
        }
        TRY(read_block(t, &block, h, bytes, end, source));
        TRY(read_entries(t, block, source));
        last_end = h.begin + h.n;
    }
    return status_ok();
}

static struct status read_table(struct sorted_table *t, const unsigned char *bytes, size_t n,
                                const char *source)
{
    FAIL_IF(n < SORTED_TABLE_FOOTER_BYTES || bytes_load_u64(bytes + n - sizeof MAGIC) != MAGIC, STATUS_DATA,
            "%s is not the index of a TensorFlow checkpoint, or is cut short: it does not end as "
            "one",
            source);
    struct span block;
    struct span footer = bytes_span(bytes + n - SORTED_TABLE_FOOTER_BYTES, SORTED_TABLE_FOOTER_BYTES);
    struct handle about = read_handle(&footer); /* the metaindex, which is empty */
    struct handle index = read_handle(&footer);
    TRY(read_block(t, &block, about, bytes, n - SORTED_TABLE_FOOTER_BYTES, source));
    TRY(read_block(t, &block, index, bytes, n - SORTED_TABLE_FOOTER_BYTES, source));
    return read_index(t, block, bytes, index.begin, source);
}

struct status sorted_table_parse(struct sorted_table *t, const void *bytes, size_t n, const char *source)
{
    *t = (struct sorted_table){.memory = bump_with_limit(SORTED_TABLE_MAX_BYTES)};
    struct status s = read_table(t, bytes, n, source);
    if (failed(s)) {
        sorted_table_close(t);
    }
    return s;
}

void sorted_table_close(struct sorted_table *t)
{
    bump_fini(&t->memory);
    *t = (struct sorted_table){0};
}
