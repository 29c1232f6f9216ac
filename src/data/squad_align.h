/* squad_align: finds the place in a context of an answer made of word pieces.
 *
 * Pieces are lower-cased and split, so the words they come from may contain more than the answer:
 * "(1895-1943)." for "1895".  The words are tokenized again and matched with the original character by
 * character, without spaces; if that fails, the answer is the complete words.  The rule: the text is that of
 * run_squad.py's get_final_text. Source: Devlin et al. 2018, run_squad.py.  It expects WordPiece's "##";
 * pieces of other tokenizers do not match, so their answers are complete words. */
#ifndef KILN_DATA_SQUAD_ALIGN_H
#define KILN_DATA_SQUAD_ALIGN_H

#include "core/buf.h"
#include "text/basic_tokenizer.h"
#include "text/tokenizer.h"

/* Scratch of one thread. */
struct squad_align {
    const struct tokenizer *tokenizer;
    struct basic_tokenizer basic;
    struct buf pieces, answer, tokens;
    bool joins;    /* the next word continues the last one */
    bool too_long; /* a word was too long to be checked completely */
};

/* Borrows the tokenizer. */
struct status squad_align_init(struct squad_align *a, const struct tokenizer *tokenizer);
void squad_align_fini(struct squad_align *a);

/* Narrows [*start, *end), bytes of text that are the words which ids[0..n) come from, to what the ids spell.
 * STATUS_MEMORY is its only failure. */
struct status squad_align_find(struct squad_align *a, int32_t *start, int32_t *end, const char *text,
                               const int32_t *ids, int64_t n);

#endif
