#include "io/sorted_table.h"

#include "core/bytes.h"

#include <string.h>

/* The lowest two bits of an element's first byte. */
enum tag { TAG_LITERAL, TAG_COPY_1, TAG_COPY_2, TAG_COPY_4 };

/* The best compression that an element reaches: a copy of 64 bytes in 3. */
enum { MOST_BYTES = 64, FOR_BYTES = 3 };

bool snappy_length(size_t *length, const void *bytes, size_t n)
{
    struct span s = bytes_span(bytes, n);
    uint64_t wide = bytes_read_varint(&s);
    *length = (size_t)wide;
    return !s.failed && wide <= UINT32_MAX && wide <= ((uint64_t)bytes_left(&s) / FOR_BYTES + 1) * MOST_BYTES;
}

/* Copies bytes from the input; the length is in the tag, or in one to four bytes after it. */
static bool expand_literal(struct span *out, unsigned char *to, struct span *in, unsigned tag)
{
    enum { LONGEST_IN_TAG = 60 };
    uint64_t n = tag >> 2;
    if (n >= LONGEST_IN_TAG) {
        unsigned n_bytes = tag >> 2;
        n = 0;
        for (unsigned i = 0; i <= n_bytes - LONGEST_IN_TAG; i++) {
            n |= (uint64_t)bytes_read_u8(in) << 8 * i;
        }
    }
    const unsigned char *from = bytes_take_items(in, n + 1, 1);
    if (from == NULL || n + 1 > bytes_left(out)) {
        return false;
    }
    memcpy(to + out->at, from, (size_t)n + 1);
    out->at += (size_t)n + 1;
    return true;
}

/* Copies bytes from `offset` back in the output; source and destination may overlap, which repeats a
 * pattern. */
static bool expand_copy(struct span *out, unsigned char *to, struct span *in, unsigned tag)
{
    size_t n = (tag >> 2) + 1;
    uint32_t offset;
    switch ((enum tag)(tag & 3)) {
    case TAG_COPY_1:
        n = (tag >> 2 & 7) + 4;
        offset = (uint32_t)(tag >> 5) << 8 | bytes_read_u8(in);
        break;
    case TAG_COPY_2: offset = bytes_read_u16(in); break;
    default: offset = bytes_read_u32(in);
    }
    if (in->failed || offset == 0 || offset > out->at || n > bytes_left(out)) {
        return false;
    }
    for (; n > 0; n--, out->at++) {
        to[out->at] = to[out->at - offset];
    }
    return true;
}

bool snappy_expand(void *out, size_t length, const void *bytes, size_t n)
{
    struct span in = bytes_span(bytes, n);
    struct span written = bytes_span(out, length);
    if (bytes_read_varint(&in) != length || in.failed) {
        return false;
    }
    while (bytes_left(&in) > 0) {
        unsigned tag = bytes_read_u8(&in);
        bool whole = (tag & 3) == TAG_LITERAL ? expand_literal(&written, out, &in, tag)
                                              : expand_copy(&written, out, &in, tag);
        if (!whole) {
            return false;
        }
    }
    return bytes_left(&written) == 0;
}
