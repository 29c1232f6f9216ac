/* gradient_tree: the sum of a step's gradients that does not depend on how many ranks compute it.
 *
 * The micro-batches of a global batch are cut into blocks, a power of two of them, of consecutive ones.  In a
 * block each micro-batch adds to the sum of those before it (`+=`); the sums of blocks are added in pairs,
 * those in pairs, and so on, in the order of blocks: ((b0 + b1) + (b2 + b3)) + ...  Ranks that are a smaller
 * power of two have a subtree each, and the communicator adds these in the same manner (dist/comm.h).  So 1,
 * 2, 4 ... ranks get the same bits, up to the number of blocks.
 *
 * A rank with k blocks keeps at most log2(k) finished sums in addition to the one that it computes. */
#ifndef KILN_TRAIN_GRADIENT_TREE_H
#define KILN_TRAIN_GRADIENT_TREE_H

#include "core/arena.h"
#include "dev/exec.h"

enum { GRADIENT_TREE_MOST_BLOCKS = 1024, GRADIENT_TREE_MOST_LEVELS = 10 };

/* This rank's blocks of the global batch's n_all. n_all 0: one block, which is this rank's complete part. */
struct gradient_blocks {
    int n_all, first, n;
};

struct gradient_tree {
    struct gradient_blocks blocks;
    int n_levels;                           /* 0: there is nothing to add, and no call of gradient_tree_add */
    tensor sums[GRADIENT_TREE_MOST_LEVELS]; /* [n_levels] flat: of 2^i blocks each */
};

/* The blocks of rank `rank` of n_ranks.  n_all is a power of two that n_ranks divides. */
struct gradient_blocks gradient_blocks_of(int n_all, int rank, int n_ranks);

/* log2 of this rank's blocks. */
int gradient_tree_levels(struct gradient_blocks blocks);

/* Carves the sums of n elements. */
void gradient_tree_carve(struct gradient_tree *t, struct arena *a, struct gradient_blocks blocks,
                         enum dtype dtype, int64_t n);

/* Takes the sum of this rank's block number `block` (from 0; in order), which is in grad.  After the last
 * `grad` has the sum of all; before that the next block may overwrite it. */
void gradient_tree_add(struct gradient_tree *t, struct exec *x, int block, tensor grad);

#endif
