/* special_tokens: which tokens have a use in a model's input, such as the end of a text, by the files of a
 * model directory.
 *
 * The rule: only this file reads them and says them to the files that kiln writes; all others use
 * tokenizer.special and tokenizer.ends. As in transformers:
 *   - tokenizer_config.json names them by their texts, "eos_token"; so does special_tokens_map.json, which
 *     counts where the former has no "added_tokens_decoder" (files before version 4.34);
 *   - generation_config.json, else config.json, has the ids, one or a list, that end a text which a model
 *     continues ("eos_token_id"). If no file names the token, they name it for documents and prompts too,
 *     if it is a special one: a config.json often has the ids of its class, which here are any pieces;
 *   - what no file says is found by the names that GPT-2, BLOOM and BERT gave their tokens. */
#ifndef KILN_TEXT_SPECIAL_TOKENS_H
#define KILN_TEXT_SPECIAL_TOKENS_H

#include "text/tokenizer.h"

/* Completes a tokenizer that has its pieces and added tokens. `directory` has the files; NULL: names alone
 * count. A setting of a file for a token that the vocabulary lacks is warned of and not used. STATUS_DATA: a
 * file is no JSON. */
struct status special_tokens_find(struct tokenizer *t, const char *directory);

/* Makes the token of this text the one that ends documents and texts; the user's word counts more than files.
 * STATUS_USAGE: there is none; the message has `flag`. */
struct status special_tokens_set_end(struct tokenizer *t, const char *text, const char *flag);

/* Says them by their texts, in an object for tokenizer_config.json or special_tokens_map.json; and by their
 * ids, in one for config.json or generation_config.json, where a decoder's begin and end are null rather
 * than absent, which would mean GPT-2's 50256 to transformers. */
void special_tokens_put_texts(json_t *object, const struct tokenizer *t);
void special_tokens_put_ids(json_t *object, const struct tokenizer *t);

#endif
