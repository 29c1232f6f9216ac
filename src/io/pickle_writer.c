#include "io/pickle_writer.h"

#include "core/bytes.h"
#include "io/pickle_opcodes.h"

#include <string.h>

static void put(struct buf *b, int opcode)
{
    buf_putc(b, (char)opcode);
}

void pickle_put_begin(struct buf *b)
{
    put(b, PROTO);
    put(b, 2);
}

void pickle_put_end(struct buf *b)
{
    put(b, STOP);
}

void pickle_put_text(struct buf *b, const char *text)
{
    unsigned char n[4];
    bytes_store_u32(n, (uint32_t)strlen(text));
    put(b, BINUNICODE);
    buf_append(b, n, sizeof n);
    buf_puts(b, text);
}

void pickle_put_int(struct buf *b, int64_t value)
{
    unsigned char bytes[8];
    bytes_store_u64(bytes, (uint64_t)value);
    if (value >= INT32_MIN && value <= INT32_MAX) {
        put(b, BININT);
        buf_append(b, bytes, 4);
    } else {
        put(b, LONG1);
        put(b, sizeof bytes);
        buf_append(b, bytes, sizeof bytes);
    }
}

/* The only number that is big-endian. */
void pickle_put_real(struct buf *b, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(b, BINFLOAT);
    for (int shift = 56; shift >= 0; shift -= 8) {
        buf_putc(b, (char)(bits >> shift & 0xff));
    }
}

void pickle_put_bool(struct buf *b, bool value)
{
    put(b, value ? NEWTRUE : NEWFALSE);
}

void pickle_put_none(struct buf *b)
{
    put(b, NONE);
}

void pickle_put_list(struct buf *b)
{
    put(b, EMPTY_LIST);
    put(b, MARK);
}

void pickle_put_list_end(struct buf *b)
{
    put(b, APPENDS);
}

void pickle_put_global(struct buf *b, const char *module, const char *name)
{
    put(b, GLOBAL);
    buf_printf(b, "%s\n%s\n", module, name);
}

void pickle_put_mark(struct buf *b)
{
    put(b, MARK);
}

void pickle_put_tuple(struct buf *b)
{
    put(b, TUPLE);
}

void pickle_put_dict(struct buf *b)
{
    put(b, EMPTY_DICT);
}

void pickle_put_ordered_dict(struct buf *b)
{
    pickle_put_global(b, "collections", "OrderedDict");
    put(b, EMPTY_TUPLE);
    put(b, REDUCE);
}

void pickle_put_items(struct buf *b)
{
    put(b, SETITEMS);
}

void pickle_put_call(struct buf *b)
{
    put(b, REDUCE);
}

void pickle_put_outside(struct buf *b)
{
    put(b, BINPERSID);
}

void pickle_put_dict_begin(struct buf *b)
{
    pickle_put_dict(b);
    pickle_put_mark(b);
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
    pickle_put_none(b);
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
    pickle_put_list_end(b);
}

void pickle_put_attributes(struct buf *b)
{
    put(b, BUILD);
}
