/* gguf_config: the configuration of a model in the keys of a GGUF file.  A table of its family has each
 * number under its two names, that of GGUF and that of config.json (model_family_gguf_key): from
 * config.json a file is written, and of a file config.json is made, which the family's parser reads.
 *
 * The rule: a key of the architecture that the table lacks is refused, for it may make another network;
 * what a value may be is the parser's to say, and its message gets GGUF's names. */
#ifndef KILN_MODEL_GGUF_CONFIG_H
#define KILN_MODEL_GGUF_CONFIG_H

#include "io/gguf_file.h"
#include "io/gguf_writer.h"
#include "model/model_family.h"

/* Whether the path is a GGUF file that says its architecture, or is too damaged to tell. */
bool gguf_config_is_at(const char *path);

/* The config.json of an open file, which the caller json_decref's, and a family of its architecture.
 * STATUS_DATA: no family has it, the file is one of several shards, or a key is missing, unknown, of another
 * type or against another one. */
struct status gguf_config_read(json_t **config, const struct model_family **family, const struct gguf_file *f,
                               const char *source);

/* Puts the pairs of the architecture.  STATUS_MEMORY. */
struct status gguf_config_put(struct gguf_writer *w, const struct model_family *family, const void *config);

/* The error of a parser of config.json, in the words of GGUF. */
struct status gguf_config_in_words(struct status s, const struct model_family *family);

#endif
