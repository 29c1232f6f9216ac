/* kneser_ney: a model of counts: interpolated, modified Kneser-Ney smoothing (Chen & Goodman 1998, TR-10-98,
 * section 4.1.6; here "a" are counts of the highest order, and below it the number of different tokens before
 * an n-gram).
 *
 *   p(w | h) = max(a(h w) - D(a(h w)), 0) / a(h .) + g(h) p(w | h'),   h' = h without its first token
 *   g(h) = (D_1 N_1(h) + D_2 N_2(h) + D_3+ N_3+(h)) / a(h .),   N_k(h): tokens w with a(h w) = k
 *   D_1 = 1 - 2 Y n_2 / n_1,  D_2 = 2 - 3 Y n_3 / n_2,  D_3+ = 3 - 4 Y n_4 / n_3,  Y = n_1 / (n_1 + 2 n_2)
 *
 * with n_k the n-grams of an order with a = k; the lowest order goes over to 1 / n_words, so probabilities of
 * all tokens sum to 1.  N-grams that begin a document have nothing before them, and keep their counts. */
#ifndef KILN_NGRAM_KNESER_NEY_H
#define KILN_NGRAM_KNESER_NEY_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NGRAM_BEGIN stands before each document: n-grams may begin with it, and none crosses it. */
enum { NGRAM_MOST_ORDER = 6, NGRAM_BEGIN = -1 };

struct ngram {
    int32_t token;  /* the last one; those of n-grams that continue one n-gram ascend */
    uint32_t first; /* the first of the n-grams that continue it; they end where those of the next begin */
    uint32_t count; /* a */
    union {
        uint32_t suffix; /* while it is made: the n-gram without its first token, of two levels */
        float p;         /* the probability of the last token after those before it */
    };
    float rest; /* g of the n-gram as a context */
};

/* The m-grams of a text, at most one for each of its tokens.  Those that continue n-gram i lie side by side
 * in the next level, and a token is found among them by bisection.  Level 0 is the empty n-gram. */
struct ngram_level {
    int64_t n;
    struct ngram *grams; /* [n + 1] */
    double discounts[4]; /* D of a count of 1, 2, and 3 or more; of 0 none */
    bool assumed;        /* the text is too small to find them: 0.5, 1 and 1.5 */
};

struct kneser_ney {
    int order;
    struct ngram_level levels[NGRAM_MOST_ORDER + 1];
};

/* Counts ids[n_ids], each NGRAM_BEGIN or in [0, n_words).  STATUS_DATA: no token, another id, or more than
 * 2^32 - 2 of them; STATUS_MEMORY. */
struct status kneser_ney_init(struct kneser_ney *k, const int32_t *ids, int64_t n_ids, int order,
                              int64_t n_words);
void kneser_ney_fini(struct kneser_ney *k); /* safe on a zeroed struct, and after a failed init */

/* The probability of a token in [0, n_words) after context[n], of which the last order - 1 tokens count. */
double kneser_ney_p(const struct kneser_ney *k, const int32_t *context, int64_t n, int32_t token);

/* The most memory that a model of so many tokens needs while it is made, and what this one holds. */
size_t kneser_ney_most_bytes(int64_t n_ids, int order);
size_t kneser_ney_bytes(const struct kneser_ney *k);

#endif
