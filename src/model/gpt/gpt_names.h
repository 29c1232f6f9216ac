/* gpt_names: what files of decoders call the tensors of GPT-2 and BLOOM: Hugging Face's directories, and the
 * forms of other programs.  kiln's own names are those of its parameter tables (nn/gpt). */
#ifndef KILN_MODEL_GPT_GPT_NAMES_H
#define KILN_MODEL_GPT_GPT_NAMES_H

#include "model/model_family.h"

/* For reading, of all forms; those of Hugging Face's come first. */
extern const struct model_family_rename gpt2_renames[], gpt2_forms[], bloom_renames[];
extern const struct model_family_join gpt2_joins[], bloom_joins[];

/* For writing. */
extern const struct model_family_layout gpt2_gguf_layout, bloom_gguf_layout, gpt2_megatron_layout,
    bloom_megatron_layout;

#endif
