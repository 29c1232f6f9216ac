/* tokenizer_config: Hugging Face's tokenizer_config.json of a BERT model: how text becomes pieces of
 * vocab.txt. */
#ifndef KILN_TEXT_TOKENIZER_CONFIG_H
#define KILN_TEXT_TOKENIZER_CONFIG_H

#include "core/json.h"

struct tokenizer_config {
    bool lower_case;          /* also strips accents */
    int64_t model_max_length; /* tokens, special ones included; INT64_MAX: no limit is known */
};

/* What holds where there is no file. */
struct tokenizer_config tokenizer_config_defaults(void);

/* Overwrites what text[0..n) says and leaves the rest alone.  STATUS_DATA for settings that would give other
 * ids than kiln's tokenizer; with `any_class`, for where tokenizer.json has told what the tokenizer is, its
 * class may be one of those that say nothing. `source` names the file in messages. */
struct status tokenizer_config_parse(struct tokenizer_config *c, const char *text, size_t n, bool any_class,
                                     const char *source);

/* The caller json_decref's it; NULL without memory. */
json_t *tokenizer_config_to_json(const struct tokenizer_config *c);

#endif
