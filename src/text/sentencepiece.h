/* sentencepiece: text to ids as SentencePiece's models do it (Kudo and Richardson 2018, arXiv:1808.06226):
 * a space is the character U+2581, which belongs to the word after it, and pieces are found by merges (BPE)
 * or by their probabilities (unigram).  A character without a piece is its bytes, where the model has
 * pieces for these, else the unknown token.
 *
 * The rule: ids are those of Hugging Face's `tokenizers` for a tokenizer.json, and of SentencePiece's
 * library for a tokenizer.model. */
#ifndef KILN_TEXT_SENTENCEPIECE_H
#define KILN_TEXT_SENTENCEPIECE_H

#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/tokenizer.h"
#include "text/unigram.h"

#define SENTENCEPIECE_SPACE "\xE2\x96\x81" /* U+2581 */
enum { SENTENCEPIECE_SPACE_BYTES = 3 };

/* Which texts get a space in front. */
enum sentencepiece_prefix { SENTENCEPIECE_NEVER, SENTENCEPIECE_FIRST, SENTENCEPIECE_ALWAYS };

/* How a normalized text is cut before its pieces are found. */
struct sentencepiece_cut {
    bool at_white;      /* white space is dropped, and each word is alone */
    bool marks_spaces;  /* spaces become U+2581, and the prefix holds; else the normalizer does that */
    bool before_spaces; /* each U+2581 begins a text of its own */
    enum sentencepiece_prefix prefix;
};

/* The rules of a tokenizer.model for spaces, which are SentencePiece's normalizer. */
struct sentencepiece_rules {
    bool given; /* else the normalizer of tokenizer.json holds */
    bool drops_spaces, has_charsmap;
    struct charsmap charsmap;
};

struct sentencepiece {
    bool is_unigram;
    struct bpe bpe; /* all pieces, and the merges of BPE */
    struct unigram unigram;
    struct normalizer normalizer;
    struct sentencepiece_rules rules;
    struct sentencepiece_cut cut;
    bool words_are_apart;   /* no piece has U+2581 after another character: words have their ids alone */
    bool adds_space;        /* decoding a text drops the space that encoding has put first */
    uint64_t settings_hash; /* hash of what decides ids besides the pieces */
};

/* Safe on a zeroed struct. */
void sentencepiece_fini(struct sentencepiece *p);

/* Lower than the least score, by so much, is that of a character without a piece. */
#define SENTENCEPIECE_UNKNOWN_PENALTY 10

/* For readers, once the pieces and the unknown token are there: makes it a unigram model of these scores,
 * [n], of which the least is that of the pieces that count.  A text has those that are marked; NULL: all. */
struct status sentencepiece_set_unigram(struct sentencepiece *p, const double *scores, const bool *is_text,
                                        double least, const char *source);

/* For readers, once pieces and merges are there: finds what else follows from them. */
void sentencepiece_close(struct sentencepiece *p);

/* The memory that encoding writes to: of one thread. */
struct sentencepiece_scratch {
    const struct sentencepiece *model;
    struct bpe_scratch bpe;
    struct unigram_scratch unigram;
    struct normalizer_scratch normalizer;
    struct normal_text word, ruled;
    struct word_cache cache; /* of words, for unigram */
    struct id_list ids;
};

/* Fini is safe on a zeroed struct and after a failed init. */
struct status sentencepiece_scratch_init(struct sentencepiece_scratch *s, const struct sentencepiece *p);
void sentencepiece_scratch_fini(struct sentencepiece_scratch *s);

/* Where tokens go: one of the two lists is NULL. */
struct sentencepiece_output {
    struct id_list *ids;
    struct token_list *tokens;
};

/* Appends the tokens of text[0..n), any bytes. */
struct status sentencepiece_encode(struct sentencepiece_scratch *s, const struct sentencepiece_output *out,
                                   const char *text, size_t n, enum tokenizer_place place);

#endif
