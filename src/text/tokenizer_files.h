/* tokenizer_files: the files of a tokenizer in the directories that kiln writes: those of its vocabulary,
 * whose hash goes along, tokenizer_config.json, and what else `transformers` wants in a model directory. */
#ifndef KILN_TEXT_TOKENIZER_FILES_H
#define KILN_TEXT_TOKENIZER_FILES_H

#include "text/tokenizer.h"

#define TOKENIZER_CONFIG_NAME "tokenizer_config.json"

/* The result of comparing the vocabulary files in a directory with a tokenizer's own. */
enum tokenizer_copy { TOKENIZER_COPY_ABSENT, TOKENIZER_COPY_SAME, TOKENIZER_COPY_OTHER };

/* Compares the files of the vocabulary.  If some differ, or only some exist, `name` gets the first such file;
 * else it is unchanged. */
struct status tokenizer_files_compare(enum tokenizer_copy *copy, const char **name, const struct tokenizer *t,
                                      const char *directory);

/* Writes the files of the vocabulary, each completely or not at all. */
struct status tokenizer_files_write(const struct tokenizer *t, const char *directory);

/* The contents of tokenizer_config.json, which the caller json_decref's; NULL if memory runs out.  All that a
 * decoder's special and added tokens are is in it. */
json_t *tokenizer_files_config(const struct tokenizer *t, int64_t max_length);

/* Writes tokenizer_config.json; max_length is the number of tokens that the model can read. */
struct status tokenizer_files_write_config(const struct tokenizer *t, const char *directory,
                                           int64_t max_length);

/* Writes all tokenizer files of a model directory. */
struct status tokenizer_files_write_all(const struct tokenizer *t, const char *directory, int64_t max_length);

#endif
