/* gpt_gguf: what GGUF files say of GPT-2 and BLOOM, so that llama.cpp computes them (its src/models/gpt2.cpp
 * and bloom.cpp). */
#ifndef KILN_MODEL_GPT_GPT_GGUF_H
#define KILN_MODEL_GPT_GPT_GGUF_H

#include "model/model_family.h"

extern const struct model_family_gguf gpt2_gguf, bloom_gguf;

#endif
