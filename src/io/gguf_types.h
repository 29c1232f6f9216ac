/* gguf_types: the types of values and of elements in GGUF files (github.com/ggml-org/ggml, "GGUF", ggml.h),
 * and their blocks. */
#ifndef KILN_IO_GGUF_TYPES_H
#define KILN_IO_GGUF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_VERSION = 3, GGUF_ALIGNMENT = 32, GGUF_MOST_DIMS = 4 };

#define GGUF_MAGIC 0x46554747U /* "GGUF" */

/* Types of the values of pairs, by their numbers in the file. */
enum gguf_value {
    GGUF_VALUE_U8,
    GGUF_VALUE_I8,
    GGUF_VALUE_U16,
    GGUF_VALUE_I16,
    GGUF_VALUE_U32,
    GGUF_VALUE_I32,
    GGUF_VALUE_F32,
    GGUF_VALUE_BOOL,
    GGUF_VALUE_TEXT,
    GGUF_VALUE_ARRAY,
    GGUF_VALUE_U64,
    GGUF_VALUE_I64,
    GGUF_VALUE_F64,
    GGUF_N_VALUES,
};

/* Types of the elements of tensors, by their numbers in the file. */
enum gguf_type { GGUF_F32 = 0, GGUF_F16 = 1, GGUF_Q8_0 = 8, GGUF_BF16 = 30 };

/* "F32", and so on; NULL: kiln does not know the type. */
const char *gguf_type_name(int64_t type);

/* A block of Q8_0 is its scale in fp16 and 32 integers of 8 bits. */
enum { GGUF_Q8_ITEMS = 32, GGUF_Q8_BYTES = 34 };

/* Bytes of n elements, which are complete blocks; false if that does not fit. */
bool gguf_type_bytes(uint64_t *bytes, enum gguf_type type, uint64_t n);

/* Writes n elements, complete blocks of them, as `type`.  Q8_0: the scale is the largest magnitude / 127, and
 * a number is the value times the inverse of that, rounded, halves away from zero (ggml-quants.c,
 * quantize_row_q8_0_ref). */
void gguf_encode(enum gguf_type type, void *to, const float *from, int64_t n);

/* Decodes n elements of Q8_0, complete blocks of them, to fp32. */
void gguf_decode_q8(float *to, const void *from, int64_t n);

#endif
