/* model_gguf: writes a model as one GGUF file: what its family says of it, its tokenizer, and its weights in
 * one of four types.  Vectors are fp32 in all of them. */
#ifndef KILN_MODEL_MODEL_GGUF_H
#define KILN_MODEL_MODEL_GGUF_H

#include "model/model_dir.h"

/* general.name is `name`.  The table of words has as many rows as the tokenizer has pieces.  Matrices whose
 * rows are no whole blocks of Q8_0 are F16 there, and a log line says how many.  STATUS_UNAVAILABLE: GGUF has
 * no such model or tokenizer; STATUS_NUMERIC: a value that fp16 cannot hold. */
struct status model_gguf_write(const char *path, const char *name, const struct model_dir_contents *c);

#endif
