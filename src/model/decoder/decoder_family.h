/* decoder_family: the model directories of decoders in Hugging Face's format: GPT-2 (GPT2LMHeadModel),
 * BLOOM (BloomForCausalLM), GPT-NeoX (GPTNeoXForCausalLM), and Llama with its relatives. */
#ifndef KILN_MODEL_DECODER_FAMILY_H
#define KILN_MODEL_DECODER_FAMILY_H

#include "model/model_family.h"

extern const struct model_family gpt2_family, bloom_family, tied_gpt_neox_family, gpt_neox_family;

/* Llama's relatives, with the word embeddings as the decoder, and with a decoder of its own. */
extern const struct model_family tied_llama_family, llama_family, tied_mistral_family, mistral_family,
    tied_qwen2_family, qwen2_family, tied_qwen3_family, qwen3_family, tied_olmo2_family, olmo2_family,
    tied_smollm3_family, smollm3_family, tied_phi3_family, phi3_family;

#endif
