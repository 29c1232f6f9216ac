/* pair_loss: losses over the vectors of n pairs of texts, and their gradients, in fp64.
 *
 * With u = v / |v|, c_ij = u_ai . u_bj and the scale s:
 *
 *     in-batch negatives   mean_i (log sum_j exp(s c_ij) - s c_ii): the second text of each other pair is a
 *                          wrong answer to the first of this one.  van den Oord et al. 2018
 *                          (arXiv:1807.03748) equation 4; MultipleNegativesRankingLoss of
 *                          sentence-transformers
 *     CoSENT               log (1 + sum exp(s c_ii - s c_jj)) over all i, j where the score of pair i is less
 *                          than that of pair j.  Su 2022 (kexue.fm/archives/8847); CoSENTLoss */
#ifndef KILN_TASK_PAIR_LOSS_H
#define KILN_TASK_PAIR_LOSS_H

#include "core/status.h"

#include <stdint.h>

/* The vectors of n pairs, [n, 2, width]; scores [n] of the pairs: with them CoSENT, NULL: in-batch
 * negatives. */
struct pair_vectors {
    const float *vectors, *scores;
    int64_t n, width;
    double scale;
};

/* Sets the loss, and gradients [n, 2, width] to its gradient by the vectors.  STATUS_MEMORY. */
struct status pair_loss(double *loss, double *gradients, const struct pair_vectors *p);

/* u_a . u_b of pair i; a vector of zeros stays zero. */
double pair_loss_cosine(const float *a, const float *b, int64_t width);

#endif
