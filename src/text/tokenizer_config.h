/* tokenizer_config: Hugging Face's tokenizer_config.json of a BERT model: how text becomes pieces of vocab.txt. */
#ifndef KILN_TEXT_TOKENIZER_CONFIG_H
#define KILN_TEXT_TOKENIZER_CONFIG_H

#include "core/json.h"

struct tokenizer_config {
    bool lower_case;          /* also strips accents */
    int64_t model_max_length; /* tokens, special ones included */
};

/* STATUS_DATA for keys of another tokenizer; `source` names the file in messages. */
struct status tokenizer_config_parse(struct tokenizer_config *c, const json_t *object, const char *source);

/* The caller json_decref's it; NULL without memory. */
json_t *tokenizer_config_to_json(const struct tokenizer_config *c);

#endif
