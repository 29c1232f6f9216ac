/* tokenizer_config: Hugging Face's tokenizer_config.json of a BERT model: how text becomes pieces of
 * vocab.txt. */
#ifndef KILN_TEXT_TOKENIZER_CONFIG_H
#define KILN_TEXT_TOKENIZER_CONFIG_H

#include "core/json.h"
#include "text/added_tokens.h"

struct tokenizer_config {
    bool lower_case;            /* also strips accents */
    bool adds_space;            /* the tokenizer does: "add_prefix_space" may be true */
    int64_t model_max_length;   /* tokens, special ones included; INT64_MAX: no limit is known */
    struct added_tokens *added; /* gets those of the file; NULL: not wanted.  Borrowed */
};

/* The values of "tokenizer_class" that are accepted: what other files say of a tokenizer counts more. */
enum tokenizer_classes {
    TOKENIZER_CLASS_BERT,    /* there is only a vocab.txt */
    TOKENIZER_CLASS_GENERIC, /* a tokenizer.json says that it is BERT's */
    TOKENIZER_CLASS_ANY      /* other files say all */
};

/* The values that hold if there is no file. */
struct tokenizer_config tokenizer_config_defaults(void);

/* Overwrites the values that text[0..n) sets and leaves the rest.  STATUS_DATA for settings that would give
 * other ids than kiln's tokenizer.  `source` names the file in messages. */
struct status tokenizer_config_parse(struct tokenizer_config *c, const char *text, size_t n,
                                     enum tokenizer_classes allowed, const char *source);

/* The caller json_decref's it; NULL if memory runs out. */
json_t *tokenizer_config_to_json(const struct tokenizer_config *c);

#endif
