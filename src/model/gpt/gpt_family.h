/* gpt_family: the model directories of GPT-2 (GPT2LMHeadModel) and BLOOM (BloomForCausalLM) in Hugging Face's
 * format. */
#ifndef KILN_MODEL_GPT_FAMILY_H
#define KILN_MODEL_GPT_FAMILY_H

#include "model/model_family.h"

extern const struct model_family gpt2_family, bloom_family;

#endif
