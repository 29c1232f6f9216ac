#include "core/bytes.h"

struct span bytes_span(const void *data, size_t n)
{
    return (struct span){.data = data, .n = n};
}

size_t bytes_left(const struct span *s)
{
    return s->n - s->at;
}

const unsigned char *bytes_take(struct span *s, size_t n)
{
    if (s->failed || n > bytes_left(s)) {
        s->failed = true;
        return NULL;
    }
    const unsigned char *p = s->data + s->at;
    s->at += n;
    return p;
}

const unsigned char *bytes_take_items(struct span *s, uint64_t n, size_t item_bytes)
{
    uint64_t total;
    if (!bytes_multiply(n, item_bytes, &total) || total > bytes_left(s)) {
        s->failed = true;
        return NULL;
    }
    return bytes_take(s, (size_t)total);
}

uint8_t bytes_read_u8(struct span *s)
{
    const unsigned char *p = bytes_take(s, 1);
    return p == NULL ? 0 : *p;
}

uint16_t bytes_read_u16(struct span *s)
{
    const unsigned char *p = bytes_take(s, 2);
    return p == NULL ? 0 : bytes_load_u16(p);
}

uint32_t bytes_read_u32(struct span *s)
{
    const unsigned char *p = bytes_take(s, 4);
    return p == NULL ? 0 : bytes_load_u32(p);
}

uint64_t bytes_read_u64(struct span *s)
{
    const unsigned char *p = bytes_take(s, 8);
    return p == NULL ? 0 : bytes_load_u64(p);
}

int32_t bytes_read_i32(struct span *s)
{
    return (int32_t)bytes_read_u32(s);
}

int64_t bytes_read_i64(struct span *s)
{
    return (int64_t)bytes_read_u64(s);
}

uint64_t bytes_read_varint(struct span *s)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = bytes_read_u8(s);
        uint64_t bits = byte & 0x7f;
        if (shift == 63 && bits > 1) {
            break;
        }
        value |= bits << shift;
        if (byte < 0x80) {
            return s->failed ? 0 : value;
        }
    }
    s->failed = true;
    return 0;
}

static uint64_t load(const void *from, int n)
{
    const unsigned char *p = from;
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) {
        value = value << 8 | p[i];
    }
    return value;
}

static void store(void *to, uint64_t value, int n)
{
    unsigned char *p = to;
    for (int i = 0; i < n; i++) {
        p[i] = (unsigned char)(value >> (8 * i));
    }
}

uint16_t bytes_load_u16(const void *p)
{
    return (uint16_t)load(p, 2);
}

uint32_t bytes_load_u32(const void *p)
{
    return (uint32_t)load(p, 4);
}

uint64_t bytes_load_u64(const void *p)
{
    return load(p, 8);
}

void bytes_store_u16(void *p, uint16_t value)
{
    store(p, value, 2);
}

void bytes_store_u32(void *p, uint32_t value)
{
    store(p, value, 4);
}

void bytes_store_u64(void *p, uint64_t value)
{
    store(p, value, 8);
}
