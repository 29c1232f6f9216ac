/* tokenizer_json: Hugging Face's tokenizer.json of a BERT model: vocabulary, normaliser and special tokens in
 * one file (https://github.com/huggingface/tokenizers).
 *
 * The rule: a file of another tokenizer than kiln's wordpiece.h, or with settings that would give other ids,
 * is refused, and the error names the setting.  Padding and truncation are not tokenization and are
 * ignored. */
#ifndef KILN_TEXT_TOKENIZER_JSON_H
#define KILN_TEXT_TOKENIZER_JSON_H

#include "core/buf.h"
#include "core/json.h"
#include "text/added_tokens.h"
#include "text/input_frame.h"
#include "text/vocab.h"

struct tokenizer_json {
    bool lower_case;  /* also strips accents */
    struct buf vocab; /* the pieces as vocab.txt would hold them: one a line, in the order of their ids */
    struct added_tokens added;
    struct input_frame frame; /* frame of the post_processor */
};

/* Checks all of the settings.  STATUS_DATA names the first that is not BERT's, and for the vocabulary an id
 * that is missing or given twice.  `source` names the file in messages. */
struct status tokenizer_json_parse(struct tokenizer_json *t, const char *text, size_t n, const char *source);

/* Safe on a zeroed struct and after a failed parse. */
void tokenizer_json_fini(struct tokenizer_json *t);

/* The contents of the file for a vocabulary, tokens that were added, its special ones among them, and a
 * frame, or BERT's where none is given; the caller json_decref's it.  STATUS_DATA for a piece that JSON
 * cannot hold as a key (U+0000). */
struct status tokenizer_json_make(json_t **root, const struct vocab *v, bool lower_case,
                                  const struct added_tokens *added, const struct input_frame *frame);

#endif
