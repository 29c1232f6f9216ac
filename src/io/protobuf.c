#include "io/protobuf.h"

#include <string.h>

bool protobuf_read(struct protobuf_field *f, struct span *message)
{
    if (bytes_left(message) == 0 || message->failed) {
        return false;
    }
    uint64_t key = bytes_read_varint(message);
    *f = (struct protobuf_field){.number = (unsigned)(key >> 3), .type = (enum protobuf_wire)(key & 7)};
    switch (f->type) {
    case PROTOBUF_VARINT: f->value = bytes_read_varint(message); break;
    case PROTOBUF_64: f->value = bytes_read_u64(message); break;
    case PROTOBUF_32: f->value = bytes_read_u32(message); break;
    case PROTOBUF_BYTES: {
        uint64_t n = bytes_read_varint(message);
        const unsigned char *p = bytes_take_items(message, n, 1);
        f->bytes = bytes_span(p, p == NULL ? 0 : (size_t)n);
        break;
    }
    default: message->failed = true;
    }
    return !message->failed;
}

static void put_varint(struct buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        buf_putc(b, (char)((value & 0x7F) | 0x80));
    }
    buf_putc(b, (char)value);
}

static void put_tag(struct buf *b, int field, enum protobuf_wire wire)
{
    put_varint(b, (uint64_t)field << 3 | (unsigned)wire);
}

void protobuf_put_int(struct buf *b, int field, int64_t value)
{
    put_tag(b, field, PROTOBUF_VARINT);
    put_varint(b, (uint64_t)value);
}

void protobuf_put_float(struct buf *b, int field, float value)
{
    uint32_t bits;
    unsigned char bytes[4];
    memcpy(&bits, &value, sizeof bits);
    bytes_store_u32(bytes, bits);
    put_tag(b, field, PROTOBUF_32);
    buf_append(b, bytes, sizeof bytes);
}

void protobuf_put_double(struct buf *b, int field, double value)
{
    uint64_t bits;
    unsigned char bytes[8];
    memcpy(&bits, &value, sizeof bits);
    bytes_store_u64(bytes, bits);
    put_tag(b, field, PROTOBUF_64);
    buf_append(b, bytes, sizeof bytes);
}

void protobuf_put_bytes(struct buf *b, int field, const void *bytes, size_t n)
{
    put_tag(b, field, PROTOBUF_BYTES);
    put_varint(b, n);
    buf_append(b, bytes, n);
}

void protobuf_put_text(struct buf *b, int field, const char *text)
{
    protobuf_put_bytes(b, field, text, strlen(text));
}

void protobuf_put_message(struct buf *b, int field, const struct buf *message)
{
    protobuf_put_bytes(b, field, message->data, message->n);
    b->failed = b->failed || message->failed;
}
