/* snappy: decompresses Snappy (google/snappy, format_description.txt), which the index of a TensorFlow
 * checkpoint may use. docs/decisions/0043_foreign_checkpoints.md says why kiln does not use the library. */
#ifndef KILN_IO_SNAPPY_H
#define KILN_IO_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* The decompressed size; false if it is missing, or more than `n` bytes can decompress to. */
bool snappy_length(size_t *length, const void *bytes, size_t n);

/* Decompresses into `out`, which has exactly that size; false if the input is damaged. */
bool snappy_expand(void *out, size_t length, const void *bytes, size_t n);

#endif
