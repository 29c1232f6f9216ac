/* model_dir_forms: the weights of a model in other forms than Hugging Face's, for model_dir_save and
 * model_dir_verify. */
#ifndef KILN_MODEL_MODEL_DIR_FORMS_H
#define KILN_MODEL_MODEL_DIR_FORMS_H

#include "model/model_dir.h"

/* For messages: "a model in PyTorch's form". */
const char *model_dir_form_name(struct model_dir_form form);

/* Whether a save in this form, which is not Hugging Face's, writes a file of that name beside those of the
 * tokenizer. */
bool model_dir_form_has(struct model_dir_form form, const char *name);

/* The configuration that goes along with the weights of MODEL_DIR_SCRIPT, whose vocabulary is rounded up; the
 * caller frees it. */
struct status model_dir_script_config(void **config, const struct model_dir_contents *c);

/* The configuration with so many rows of words; the caller frees it. */
struct status model_dir_padded_config(void **config, const struct model_dir_contents *c, int64_t rows);

/* Write the weights to the file `path`.  STATUS_UNAVAILABLE: the family has no such form. */
struct status model_dir_write_script(const char *path, const struct model_dir_contents *c);
struct status model_dir_write_deepspeed(const char *path,
                                        const struct model_dir_contents *c); /* a directory */

#endif
