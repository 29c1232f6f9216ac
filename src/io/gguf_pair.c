#include "io/gguf_pair.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t gguf_value_bytes(uint32_t type)
{
    static const unsigned char bytes[GGUF_N_VALUES] = {
        [GGUF_VALUE_U8] = 1,  [GGUF_VALUE_I8] = 1,  [GGUF_VALUE_U16] = 2, [GGUF_VALUE_I16] = 2,
        [GGUF_VALUE_U32] = 4, [GGUF_VALUE_I32] = 4, [GGUF_VALUE_F32] = 4, [GGUF_VALUE_BOOL] = 1,
        [GGUF_VALUE_U64] = 8, [GGUF_VALUE_I64] = 8, [GGUF_VALUE_F64] = 8,
    };
    return type < GGUF_N_VALUES ? bytes[type] : 0;
}

static float f32_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double f64_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nine digits tell all numbers of fp32 apart (IEEE 754, section 5.12.2). */
static double shortest(float value)
{
    char text[32];
    double found = (double)value;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
        found = strtod(text, NULL);
        if ((float)found == value) {
            break;
        }
    }
    return found;
}

/* An integer of any width, as its bits. */
static int64_t integer_at(const struct gguf_pair *p, uint64_t i)
{
    const unsigned char *at = p->values.data + i * gguf_value_bytes(p->type);
    switch (p->type) {
    case GGUF_VALUE_I8: return (int8_t)at[0];
    case GGUF_VALUE_U16: return bytes_load_u16(at);
    case GGUF_VALUE_I16: return (int16_t)bytes_load_u16(at);
    case GGUF_VALUE_U32: return bytes_load_u32(at);
    case GGUF_VALUE_I32: return (int32_t)bytes_load_u32(at);
    case GGUF_VALUE_U64:
    case GGUF_VALUE_I64: return (int64_t)bytes_load_u64(at);
    default: return at[0];
    }
}

double gguf_pair_number(const struct gguf_pair *p, uint64_t i)
{
    const unsigned char *at = p->values.data + i * gguf_value_bytes(p->type);
    switch (p->type) {
    case GGUF_VALUE_TEXT: return 0;
    case GGUF_VALUE_F32: return (double)f32_of(bytes_load_u32(at));
    case GGUF_VALUE_F64: return f64_of(bytes_load_u64(at));
    case GGUF_VALUE_U64: return (double)bytes_load_u64(at);
    default: return (double)integer_at(p, i);
    }
}

const char *gguf_next_text(struct span *s, size_t *n)
{
    if (s->failed || bytes_left(s) == 0) {
        return NULL;
    }
    uint64_t bytes = bytes_read_u64(s);
    *n = (size_t)bytes;
    return (const char *)bytes_take_items(s, bytes, 1);
}

static json_t *text_to_json(struct span s)
{
    size_t n;
    const char *text = gguf_next_text(&s, &n);
    return text == NULL || memchr(text, '\0', n) != NULL ? NULL : json_stringn(text, n);
}

json_t *gguf_pair_to_json(const struct gguf_pair *p)
{
    if (p->is_list) {
        return NULL;
    }
    switch (p->type) {
    case GGUF_VALUE_TEXT: return text_to_json(p->values);
    case GGUF_VALUE_BOOL: return json_boolean(p->values.data[0] != 0);
    case GGUF_VALUE_F32: {
        float value = f32_of(bytes_load_u32(p->values.data));
        return isfinite(value) ? json_real(shortest(value)) : NULL;
    }
    case GGUF_VALUE_F64: return json_real(gguf_pair_number(p, 0)); /* NULL where it is not finite */
    case GGUF_VALUE_U64: {
        uint64_t value = bytes_load_u64(p->values.data);
        return value > INT64_MAX ? NULL : json_integer((json_int_t)value);
    }
    default: return json_integer(integer_at(p, 0));
    }
}
