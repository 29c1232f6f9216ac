/* snappy: what Snappy compressed, as it was (google/snappy, format_description.txt): blocks in the tables of TensorFlow's
 * checkpoints.  The format does not change any more; docs/decisions/0043_foreign_checkpoints.md says why it is read here. */
#ifndef KILN_IO_SNAPPY_H
#define KILN_IO_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes it becomes; false if the bytes do not say, or say more than `n` bytes can become. */
bool snappy_length(size_t *length, const void *bytes, size_t n);

/* All of it, into `out` of just that length; false if it is damaged. */
bool snappy_expand(void *out, size_t length, const void *bytes, size_t n);

#endif
