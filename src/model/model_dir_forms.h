/* model_dir_forms: the weights of a model in other forms than Hugging Face's, for model_dir_save and
 * model_dir_verify. */
#ifndef KILN_MODEL_MODEL_DIR_FORMS_H
#define KILN_MODEL_MODEL_DIR_FORMS_H

#include "model/model_dir.h"

/* Name of the form for messages: "a model in PyTorch's form". */
const char *model_dir_form_name(struct model_dir_form form);

/* Whether a save in this form, which is not Hugging Face's, writes a file of that name next to those of the
 * tokenizer. */
bool model_dir_form_has(struct model_dir_form form, const char *name);

/* The configuration that goes along with the weights of MODEL_DIR_SCRIPT, whose vocabulary is rounded up; the
 * caller frees it.  STATUS_UNAVAILABLE: the family has no such form. */
struct status model_dir_script_config(void **config, const struct model_dir_contents *c);

/* The configuration with `rows` rows of words; the caller frees it. */
struct status model_dir_padded_config(void **config, const struct model_dir_contents *c, int64_t rows);

/* Write the weights, of a family that has such a configuration, to the file `path`, or the directory. */
struct status model_dir_write_script(const char *path, const struct model_dir_contents *c);
struct status model_dir_write_deepspeed(const char *path, const struct model_dir_contents *c);

/* Writes a GGUF file, whose general.name is `name`.  The table of words has one row for each piece of the
 * tokenizer.  Matrices whose rows are no complete blocks of Q8_0 are F16 there, and a log line says how many.
 * STATUS_UNAVAILABLE: GGUF has no such model or tokenizer; STATUS_NUMERIC: a value that fp16 cannot hold. */
struct status model_gguf_write(const char *path, const char *name, const struct model_dir_contents *c);

/* Rows of the table of words in Megatron's files: the pieces, rounded up to 128 times the ranks. */
int64_t megatron_write_rows(const struct model_dir_contents *c);

/* Writes Megatron-DeepSpeed's files into a directory that is there.  Rows after those that the model has
 * repeat its last row, as Megatron's own tools fill them: its loss counts them.  STATUS_UNAVAILABLE: the
 * family has no such form; STATUS_USAGE: the ranks or stages do not divide it. */
struct status megatron_write(const char *directory, const struct model_dir_contents *c);

#endif
