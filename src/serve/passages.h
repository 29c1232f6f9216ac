/* passages: texts cut into windows of tokens that overlap and begin and end with words, and how well the
 * words of a question fit each: Okapi BM25 ("The Probabilistic Relevance Framework: BM25 and Beyond", 2009,
 * doi:10.1561/1500000019), with the weights of rare words that Lucene has. */
#ifndef KILN_SERVE_PASSAGES_H
#define KILN_SERVE_PASSAGES_H

#include "core/buf.h"
#include "text/tokenizer.h"

struct passage {
    const char *file; /* name of the text that it is of; NULL: none */
    int64_t at;       /* characters of that text before it */
    const char *text; /* [n]; borrowed, like the name */
    size_t n;
    int64_t first_id, n_ids; /* tokens in passages.ids */
};

struct passages {
    struct buf list;    /* struct passage */
    struct id_list ids; /* tokens of all texts */
    int64_t n;
};

/* Appends the passages of a text: at most `room` tokens in each, `step` from one to the next, but for words
 * that would be cut.  STATUS_MEMORY. */
struct status passages_cut(struct passages *p, struct tokenizer_scratch *scratch, const char *file,
                           const char *text, size_t n, int64_t room, int64_t step);
void passages_fini(struct passages *p);
const struct passage *passages_get(const struct passages *p, int64_t i);

/* Sets scores [p->n] for the tokens of a question: BM25 with k1 1.2 and b 0.75.  STATUS_MEMORY. */
struct status passages_score(const struct passages *p, double *scores, struct tokenizer_scratch *scratch,
                             const char *question);

#endif
