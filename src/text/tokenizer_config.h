/* tokenizer_config: Hugging Face's tokenizer_config.json of a BERT model: how text becomes pieces of
 * vocab.txt. */
#ifndef KILN_TEXT_TOKENIZER_CONFIG_H
#define KILN_TEXT_TOKENIZER_CONFIG_H

#include "core/json.h"
#include "text/added_tokens.h"

struct tokenizer_config {
    bool lower_case;            /* also strips accents */
    int64_t model_max_length;   /* tokens, special ones included; INT64_MAX: no limit is known */
    struct added_tokens *added; /* gets those of the file; NULL: not wanted.  Borrowed */
};

/* The values that hold if there is no file. */
struct tokenizer_config tokenizer_config_defaults(void);

/* Overwrites the values that text[0..n) sets and leaves the rest.  STATUS_DATA for settings that would give
 * other ids than kiln's tokenizer.  With `any_class`, for when tokenizer.json has already said what the
 * tokenizer is, generic class names are accepted too.  `source` names the file in messages. */
struct status tokenizer_config_parse(struct tokenizer_config *c, const char *text, size_t n, bool any_class,
                                     const char *source);

/* The caller json_decref's it; NULL if memory runs out. */
json_t *tokenizer_config_to_json(const struct tokenizer_config *c);

#endif
