#include "io/gguf_types.h"

#include "core/bytes.h"
#include "io/stored_tensor.h"

#include <math.h>
#include <string.h>

const char *gguf_type_name(int64_t type)
{
    switch (type) {
    case GGUF_F32: return "F32";
    case GGUF_F16: return "F16";
    case GGUF_Q8_0: return "Q8_0";
    case GGUF_BF16: return "BF16";
    default: return NULL;
    }
}

bool gguf_type_bytes(uint64_t *bytes, enum gguf_type type, uint64_t n)
{
    switch (type) {
    case GGUF_F32: return bytes_multiply(n, sizeof(float), bytes);
    case GGUF_Q8_0: return bytes_multiply(n / GGUF_Q8_ITEMS, GGUF_Q8_BYTES, bytes);
    default: return bytes_multiply(n, sizeof(uint16_t), bytes);
    }
}

static void encode_block(unsigned char to[GGUF_Q8_BYTES], const float from[GGUF_Q8_ITEMS])
{
    float largest = 0;
    for (int i = 0; i < GGUF_Q8_ITEMS; i++) {
        largest = fmaxf(largest, fabsf(from[i]));
    }
    float scale = largest / 127, inverse = scale > 0 ? 1 / scale : 0;
    bytes_store_u16(to, f16_from_f32(scale));
    for (int i = 0; i < GGUF_Q8_ITEMS; i++) {
        to[2 + i] = (unsigned char)(int8_t)roundf(from[i] * inverse);
    }
}

void gguf_encode(enum gguf_type type, void *to, const float *from, int64_t n)
{
    if (type == GGUF_Q8_0) {
        unsigned char *block = to;
        for (int64_t i = 0; i < n; i += GGUF_Q8_ITEMS, block += GGUF_Q8_BYTES) {
            encode_block(block, from + i);
        }
        return;
    }
    enum dtype dtype = type == GGUF_F32 ? DTYPE_F32 : type == GGUF_F16 ? DTYPE_F16 : DTYPE_BF16;
    stored_tensor_convert(dtype, to, DTYPE_F32, from, n);
}

void gguf_decode_q8(float *to, const void *from, int64_t n)
{
    const unsigned char *block = from;
    for (int64_t i = 0; i < n; i += GGUF_Q8_ITEMS, block += GGUF_Q8_BYTES) {
        float scale = f16_to_f32(bytes_load_u16(block));
        for (int k = 0; k < GGUF_Q8_ITEMS; k++) {
            to[i + k] = scale * (float)(int8_t)block[2 + k];
        }
    }
}
