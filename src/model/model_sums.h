/* model_sums: kiln.sha256, the checksums of the small files of a model directory, in the form of sha256sum,
 * which checks them too: the configuration and the files of the tokenizer, which a flipped bit can change
 * into others that are read without an error.
 *
 * The rules: files of tensors have sums of their own (io/safetensors.h; PyTorch's in their archive).  A file
 * that is not listed, or not there, is not checked.  A directory whose safetensors lack sums was written
 * again by another program, which knows nothing of the list: it is not looked at. */
#ifndef KILN_MODEL_MODEL_SUMS_H
#define KILN_MODEL_MODEL_SUMS_H

#include "core/status.h"

#include <stdbool.h>

/* Lists the .json and .txt files of a directory.  The same files give the same list. */
struct status model_sums_write(const char *directory);

/* Whether this is the name of the list. */
bool model_sums_is_list(const char *name);

/* STATUS_DATA if a listed file is not the one that was listed, or the list is malformed. */
struct status model_sums_check(const char *directory);

#endif
