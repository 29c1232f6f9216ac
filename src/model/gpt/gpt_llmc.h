/* gpt_llmc: GPT-2 in the model files of karpathy/llm.c (io/llmc_file.h). */
#ifndef KILN_MODEL_GPT_GPT_LLMC_H
#define KILN_MODEL_GPT_GPT_LLMC_H

#include "model/model_dir.h"

/* In fp32 or bf16, by the form's type.  The table of words has as many rows as the tokenizer has pieces.
 * STATUS_UNAVAILABLE names what llm.c has only one value of. */
struct status gpt_llmc_write(const char *path, const struct model_dir_contents *c);

#endif
