#include "io/pickle_writer.h"

#include "core/bytes.h"

#include <string.h>

void pickle_put(struct buf *b, enum opcode opcode)
{
    buf_putc(b, (char)opcode);
}

void pickle_put_begin(struct buf *b)
{
    pickle_put(b, PROTO);
    buf_putc(b, 2);
}

void pickle_put_text(struct buf *b, const char *text)
{
    unsigned char n[4];
    bytes_store_u32(n, (uint32_t)strlen(text));
    pickle_put(b, BINUNICODE);
    buf_append(b, n, sizeof n);
    buf_puts(b, text);
}

void pickle_put_int(struct buf *b, int64_t value)
{
    unsigned char bytes[8];
    bytes_store_u64(bytes, (uint64_t)value);
    if (value >= INT32_MIN && value <= INT32_MAX) {
        pickle_put(b, BININT);
        buf_append(b, bytes, 4);
    } else {
        pickle_put(b, LONG1);
        buf_putc(b, sizeof bytes);
        buf_append(b, bytes, sizeof bytes);
    }
}

/* The only number that is big-endian. */
void pickle_put_real(struct buf *b, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pickle_put(b, BINFLOAT);
    for (int shift = 56; shift >= 0; shift -= 8) {
        buf_putc(b, (char)(bits >> shift & 0xff));
    }
}

void pickle_put_bool(struct buf *b, bool value)
{
    pickle_put(b, value ? NEWTRUE : NEWFALSE);
}

void pickle_put_list(struct buf *b)
{
    pickle_put(b, EMPTY_LIST);
    pickle_put(b, MARK);
}

void pickle_put_global(struct buf *b, const char *module, const char *name)
{
    pickle_put(b, GLOBAL);
    buf_printf(b, "%s\n%s\n", module, name);
}

void pickle_put_ordered_dict(struct buf *b)
{
    pickle_put_global(b, "collections", "OrderedDict");
    pickle_put(b, EMPTY_TUPLE);
    pickle_put(b, REDUCE);
}

void pickle_put_dict_begin(struct buf *b)
{
    pickle_put(b, EMPTY_DICT);
    pickle_put(b, MARK);
}

void pickle_put_key_int(struct buf *b, const char *key, int64_t value)
{
    pickle_put_text(b, key);
    pickle_put_int(b, value);
}

void pickle_put_key_real(struct buf *b, const char *key, double value)
{
    pickle_put_text(b, key);
    pickle_put_real(b, value);
}

void pickle_put_key_text(struct buf *b, const char *key, const char *text)
{
    pickle_put_text(b, key);
    pickle_put_text(b, text);
}

void pickle_put_key_none(struct buf *b, const char *key)
{
    pickle_put_text(b, key);
    pickle_put(b, NONE);
}

void pickle_put_key_bool(struct buf *b, const char *key, bool value)
{
    pickle_put_text(b, key);
    pickle_put_bool(b, value);
}

void pickle_put_key_dict_begin(struct buf *b, const char *key)
{
    pickle_put_text(b, key);
    pickle_put_dict_begin(b);
}

void pickle_put_key_list_begin(struct buf *b, const char *key)
{
    pickle_put_text(b, key);
    pickle_put_list(b);
}

void pickle_put_key_list(struct buf *b, const char *key)
{
    pickle_put_key_list_begin(b, key);
    pickle_put(b, APPENDS);
}
