/* protobuf: fields of Protocol Buffers messages in the wire format
 * (protobuf.dev/programming-guides/encoding), read from untrusted bytes, and appended to a buffer.
 * TensorFlow's bundles and events consist of such messages; docs/decisions/0043_foreign_checkpoints.md and
 * 0045_convert.md say why no library does it. */
#ifndef KILN_IO_PROTOBUF_H
#define KILN_IO_PROTOBUF_H

#include "core/buf.h"
#include "core/bytes.h"

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_32 = 5 };

/* One field of a message: a number, or bytes. */
struct protobuf_field {
    unsigned number;
    enum protobuf_wire type;
    uint64_t value;    /* value of a number */
    struct span bytes; /* content of bytes: a text or another message */
};

/* The next field; false at the end, or with a failed span. */
bool protobuf_read(struct protobuf_field *f, struct span *message);

/* Append a field by its number in the message; the int is an int32, int64 or enum. */
void protobuf_put_int(struct buf *b, int field, int64_t value);
void protobuf_put_float(struct buf *b, int field, float value);
void protobuf_put_double(struct buf *b, int field, double value);
void protobuf_put_bytes(struct buf *b, int field, const void *bytes, size_t n);
void protobuf_put_text(struct buf *b, int field, const char *text);
void protobuf_put_message(struct buf *b, int field, const struct buf *message);

#endif
