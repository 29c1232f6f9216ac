/* last_words: whether a decoder guesses how texts end, as LAMBADA asks (Paperno et al. 2016,
 * arXiv:1606.06031).
 *
 * The last word is the text after the last white space, with the space before it; its tokens are those in
 * which the text differs from the text without it.  It is guessed if each of them is more probable than any
 * other after those before it, and its nats are the sum of their -log p.  Of a text that is longer than the
 * model reads, the end is read. */
#ifndef KILN_SERVE_LAST_WORDS_H
#define KILN_SERVE_LAST_WORDS_H

#include "serve/session.h"

struct last_word {
    size_t first;   /* place of its text's first token in `ids` */
    int64_t before; /* tokens that are read before it */
    int64_t n;      /* tokens that it is */
    double nats;
    bool guessed;
};

/* Texts as a job (serve/request.h): they are added, then computed together. */
struct last_words {
    struct request request;
    const struct session *session; /* borrowed, of MODEL_TASK_CAUSAL_LM */
    struct id_list ids;            /* ids of all texts */
    struct buf words;              /* struct last_word */
    int64_t n, longest;            /* texts; tokens of the longest word */
};

/* Adds a text.  STATUS_DATA: it has no word after another, or its last word has more tokens than a batch asks
 * for. */
struct status last_words_add(struct last_words *l, struct tokenizer_scratch *scratch, const char *text,
                             size_t n);

/* Makes the request for all texts, which ends with STATUS_NUMERIC where the model computes something that is
 * not finite.  STATUS_DATA: there is no text. */
struct status last_words_make(struct last_words *l);
void last_words_fini(struct last_words *l); /* safe on a zeroed struct */

/* Results, once the request has ended: the part of the words that was guessed, and the mean of their nats. */
double last_words_accuracy(const struct last_words *l);
double last_words_nats(const struct last_words *l);

#endif
