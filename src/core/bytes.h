/* bytes: binary fields read from untrusted files, and overflow-checked arithmetic on them.
 *
 * The rule: no offset, count or size from a file is used before one of these functions has checked it.  A
 * span's failure is sticky: a read past its end yields zero and marks it, so a reader checks once, after its
 * last field. All fields are little-endian, whatever the host is. */
#ifndef KILN_CORE_BYTES_H
#define KILN_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A checked reader over borrowed bytes. */
struct span {
    const unsigned char *data; /* [n] */
    size_t n;
    size_t at;   /* next byte to read; at <= n */
    bool failed; /* something was read past the end */
};

/* A span of all n bytes, to be read from the front. */
struct span bytes_span(const void *data, size_t n);

/* Bytes that are still unread. */
size_t bytes_left(const struct span *s);

/* The next `n` bytes, borrowed; NULL and a failed span if there are fewer. */
const unsigned char *bytes_take(struct span *s, size_t n);

/* Takes `n` items of `item_bytes` each, as bytes_take; the product is checked for overflow. */
const unsigned char *bytes_take_items(struct span *s, uint64_t n, size_t item_bytes);

/* The next value, little-endian; 0 and a failed span if it is cut short. */
uint8_t bytes_read_u8(struct span *s);
uint16_t bytes_read_u16(struct span *s);
uint32_t bytes_read_u32(struct span *s);
uint64_t bytes_read_u64(struct span *s);
int32_t bytes_read_i32(struct span *s);
int64_t bytes_read_i64(struct span *s);

/* A number in groups of 7 bits, the lowest first, each byte but the last with its highest bit set: the varint
 * of Protocol Buffers.  A failed span for one of more than 64 bits. */
uint64_t bytes_read_varint(struct span *s);

/* Fields at any address, aligned or not. */
uint16_t bytes_load_u16(const void *p);
uint32_t bytes_load_u32(const void *p);
uint64_t bytes_load_u64(const void *p);
void bytes_store_u16(void *p, uint16_t value);
void bytes_store_u32(void *p, uint32_t value);
void bytes_store_u64(void *p, uint64_t value);

/* *result = a + b or a * b; false, and *result unspecified, if that does not fit. */
static inline bool bytes_add(uint64_t a, uint64_t b, uint64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static inline bool bytes_multiply(uint64_t a, uint64_t b, uint64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

#endif
