/* ngram_trie: all n-grams of a token text up to an order, with how often each occurs.
 *
 * Level m holds the m-grams as sorted arrays.  Those that continue n-gram i lie side by side in level m + 1,
 * and a token is found among them by bisection.  Level 0 is the empty n-gram.  NGRAM_BEGIN stands before each
 * document: n-grams may begin with it, and none crosses it.
 *
 * Memory: 9 bytes a token while tokens are sorted; the arrays take 8 bytes an n-gram, and 4 more below the
 * last level.  There are at most as many n-grams of a level as there are tokens. */
#ifndef KILN_NGRAM_NGRAM_TRIE_H
#define KILN_NGRAM_NGRAM_TRIE_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

enum { NGRAM_MOST_ORDER = 6, NGRAM_BEGIN = -1 };

struct ngram_level {
    int64_t n;
    int32_t *token;  /* [n] the last of each; those that continue one n-gram ascend */
    uint32_t *first; /* [n + 1] n-gram i is continued by [first[i], first[i + 1]) of the next level */
    uint32_t *count; /* [n] */
};

struct ngram_trie {
    int order;
    struct ngram_level levels[NGRAM_MOST_ORDER + 1];
};

/* Builds it of ids[n_ids], each NGRAM_BEGIN or in [0, n_words).  STATUS_DATA: another id, or more than 2^32 -
 * 2 of them; STATUS_MEMORY. */
struct status ngram_trie_init(struct ngram_trie *t, const int32_t *ids, int64_t n_ids, int order,
                              int64_t n_words);
void ngram_trie_fini(struct ngram_trie *t); /* safe on a zeroed struct, and after a failed init */

/* The (m + 1)-gram that continues m-gram i with this token, of level m + 1; -1: there is none. */
int64_t ngram_trie_find(const struct ngram_trie *t, int m, int64_t i, int32_t token);

/* The number of m-grams that begin with NGRAM_BEGIN; they are the first ones. */
int64_t ngram_trie_n_begins(const struct ngram_trie *t, int m);

#endif
