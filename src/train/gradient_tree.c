#include "train/gradient_tree.h"

#include "core/status.h"
#include "ops/ops.h"

static bool is_power_of_two(int n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

struct gradient_blocks gradient_blocks_of(int n_all, int rank, int n_ranks)
{
    CHECK(is_power_of_two(n_all) && n_all <= GRADIENT_TREE_MOST_BLOCKS && n_all % n_ranks == 0,
          "%d blocks of %d ranks", n_all, n_ranks);
    int n = n_all / n_ranks;
    return (struct gradient_blocks){.n_all = n_all, .first = rank * n, .n = n};
}

int gradient_tree_levels(struct gradient_blocks blocks)
{
    int levels = 0;
    while ((1 << levels) < blocks.n) {
        levels++;
    }
    return levels;
}

void gradient_tree_carve(struct gradient_tree *t, struct arena *a, struct gradient_blocks blocks,
                         enum dtype dtype, int64_t n)
{
    t->blocks = blocks;
    t->n_levels = gradient_tree_levels(blocks);
    for (int i = 0; i < t->n_levels; i++) {
        t->sums[i] = arena_carve_1d(a, dtype, n);
    }
}

static void swap(tensor *a, tensor *b)
{
    tensor kept = *a;
    *a = *b;
    *b = kept;
}

/* Works as a binary counter: the one bits of `block` are the levels that hold a sum, and a carry adds them
 * up.  The last sum of a carry moves to its level with its buffer. */
void gradient_tree_add(struct gradient_tree *t, struct exec *x, int block, tensor grad)
{
    int level = 0;
    if (block == t->blocks.n - 1) { /* all levels hold one */
        for (; level < t->n_levels; level++) {
            x->ops->add(x, grad, t->sums[level]);
        }
        return;
    }
    if ((block & 1) == 0) {
        x->ops->cast(x, t->sums[0], grad); /* a copy */
        return;
    }
    x->ops->add(x, t->sums[0], grad);
    for (level = 1; (block >> level & 1) != 0; level++) {
        x->ops->add(x, t->sums[level], t->sums[level - 1]);
    }
    swap(&t->sums[level - 1], &t->sums[level]);
}
