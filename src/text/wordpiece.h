/* wordpiece: text to the ids of a BERT model, and back; and the same as a tokenizer (text/tokenizer.h), whose
 * vocabulary is vocab.txt and whose special tokens are BERT's.
 *
 * The rule: ids and offsets are those of Hugging Face's BertTokenizerFast for every input, cased and uncased,
 * with one difference: "[SEP]" inside a text is text, not a special token.  Special tokens are added by the
 * code that builds the model's input. Source: Wu et al. 2016 (arXiv:1609.08144) section 4.1, as greedy
 * longest match: Devlin et al. 2018, tokenization.py. */
#ifndef KILN_TEXT_WORDPIECE_H
#define KILN_TEXT_WORDPIECE_H

#include "core/buf.h"
#include "text/basic_tokenizer.h"
#include "text/token_list.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "text/word_cache.h"

/* The memory that encoding writes to.  Belongs to one thread; several may share a vocabulary. */
struct wordpiece_scratch {
    const struct vocab *vocab;
    struct basic_tokenizer basic;
    struct word_cache cache; /* cache of runs */
    int32_t *roles;          /* [65536] effect of each code point on a run, and its id if it stands alone */
    struct token_list *tokens_out; /* the output: one of the two */
    struct id_list *ids_out;
    bool out_of_memory;
};

/* Borrows the vocabulary, which must outlive it.  `lower_case` also strips accents, as for BERT uncased. */
struct status wordpiece_scratch_init(struct wordpiece_scratch *t, const struct vocab *vocab, bool lower_case);
void wordpiece_scratch_fini(struct wordpiece_scratch *t);

/* Appends the tokens of text[0..n), any bytes, with their offsets.  STATUS_MEMORY is its only failure. */
struct status wordpiece_encode(struct wordpiece_scratch *t, struct token_list *out, const char *text,
                               size_t n);

/* Appends only the ids, many times faster. */
struct status wordpiece_encode_ids(struct wordpiece_scratch *t, struct id_list *out, const char *text,
                                   size_t n);

/* Appends a readable form of ids[0..n): pieces joined into words, a space between words, none before closing
 * and after opening ASCII punctuation. */
void wordpiece_decode(const struct vocab *v, struct buf *out, const int32_t *ids, size_t n);

extern const struct tokenizer_kind wordpiece_tokenizer_kind;

/* Reads vocab.txt, whatever its path is, as vocab_open does. */
struct status wordpiece_tokenizer_open(struct tokenizer *t, const char *path, bool lower_case);

/* Reads the text of a vocab.txt from memory, which is copied; `source` names it in messages. */
struct status wordpiece_tokenizer_init(struct tokenizer *t, const char *text, size_t n, const char *source,
                                       bool lower_case);

/* For tokens that another program made with an unknown vocabulary: its file is empty, and it encodes nothing.
 * The padding token is 0, as in BERT's vocabularies. */
void wordpiece_tokenizer_init_unknown(struct tokenizer *t, bool lower_case);

#endif
