/* added_tokens: tokens that were given to a tokenizer after its vocabulary was made, such as "<url>" or
 * "[E1]": they are found in a text before it is split into words, and have rows of their own in the
 * embeddings.
 *
 * As Hugging Face's BertTokenizerFast: the leftmost match counts, of several the longest; a token with
 * single_word matches where no letter, digit or underscore touches it; one that is `normalized` matches the
 * folded text, so "<URL>" too in an uncased model; one with lstrip or rstrip takes the white space before or
 * after it.  Tokens that are not normalized are found first, and the others in what is left.  Differences:
 * folding knows ASCII only, and of white space in front of a token at most 256 bytes count against another.
 *
 * The special tokens of the vocabulary are in the list too; they are found only where the tokenizer parses
 * them (tokenizer.parses_special). */
#ifndef KILN_TEXT_ADDED_TOKENS_H
#define KILN_TEXT_ADDED_TOKENS_H

#include "core/buf.h"
#include "core/json.h"

struct added_token {
    size_t at, n; /* bytes of the token in the list's text */
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
};

struct added_tokens {
    struct buf text;
    struct added_token *tokens; /* [n] the longest first */
    int n;
    size_t capacity;
    int32_t end;     /* one more than the largest id */
    bool first[256]; /* whether some token begins with this byte, in either case */
};

/* Safe on a zeroed struct. */
void added_tokens_fini(struct added_tokens *l);

/* Adds the tokens of a file that the list does not have yet: the earlier file counts.  STATUS_DATA for ids
 * that cannot be. `source` names the file in messages. */
struct status added_tokens_read_json(struct added_tokens *l, const json_t *added,
                                     const char *source); /* tokenizer.json */
struct status added_tokens_read_decoder(struct added_tokens *l, const json_t *decoder,
                                        const char *source); /* tokenizer_config.json */
struct status added_tokens_read_map(struct added_tokens *l, const json_t *ids,
                                    const char *source); /* added_tokens.json */

/* Adds one; nothing happens if it is there. */
struct status added_tokens_add(struct added_tokens *l, const char *content, size_t n,
                               struct added_token token, const char *source);

/* Call it once all are there: sorts them. */
void added_tokens_close(struct added_tokens *l);

/* Leaves out those of the ids from `end` on. */
void added_tokens_cut(struct added_tokens *l, int32_t end);

/* The first token in text[0..n) that begins at `from` or later, with the white space that it takes; false:
 * there is none. Special ones count only if `special`; `folds`: text loses its upper case. */
struct added_match {
    size_t at, n;
    const struct added_token *token;
};
bool added_tokens_find(const struct added_tokens *l, struct added_match *match, const char *text, size_t n,
                       size_t from, bool special, bool folds);

/* The token of an id or of a text, NULL if there is none; and its bytes, borrowed. */
const struct added_token *added_tokens_find_text(const struct added_tokens *l, const char *text, size_t n);
const struct added_token *added_tokens_of(const struct added_tokens *l, int32_t id);
const char *added_tokens_text(const struct added_tokens *l, const struct added_token *t);

/* The list as "added_tokens" of tokenizer.json and "added_tokens_decoder" of tokenizer_config.json; and those
 * that are not special as added_tokens.json.  NULL if memory runs out. */
json_t *added_tokens_json(const struct added_tokens *l);
json_t *added_tokens_decoder(const struct added_tokens *l);
json_t *added_tokens_map(const struct added_tokens *l);

/* Whether there is one that is not special. */
bool added_tokens_has_ordinary(const struct added_tokens *l);

#endif
