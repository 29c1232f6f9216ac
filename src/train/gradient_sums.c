/* gradient_sums: the sums of a step's gradients over blocks of micro-batches (train/gradient_tree.h) and over
 * the ranks of a mesh.
 *
 * Replicas, the ranks with the same part of the model, sum a bucket of layers (core/param_buckets.h), in rank
 * order, as soon as their last micro-batch has queued it, from the heads to the input; so its recording has a
 * segment for each bucket.  Every rank makes the same list of sums, even after a failure.  Where they share
 * gradients (train/trainer_ranks.h) that is so in every micro-batch: the sum is over ranks first, and over
 * rounds of one micro-batch each second.
 * In fp8 replicas also take the maximum of their largest magnitudes, for the scales of the next step.
 *
 * A replica alone sums nothing and makes no call. */
#include "dev/peers.h"
#include "train/trainer_parts.h"
#include "watch/profile.h"

/* ---- over micro-batches: the tree ---- */

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

/* ---- over ranks ---- */

/* Sums a bucket over the replicas.  Those that share the update need the sums of their shards only. */
static void reduce_bucket(struct trainer *t, int bucket)
{
    struct network *n = &t->net;
    tensor grad = param_buckets_view(&n->stage.buckets, bucket, &n->params, t->grad);
    if (t->update.n_ranks > 1) {
        int64_t from, to;
        param_buckets_range(&n->stage.buckets, bucket, &n->params, &from, &to);
        update_cut(&t->update, from, to);
        comm_queue_reduce_scatter_sum(&t->mesh.data, &n->x, grad, t->update.cut);
    } else {
        comm_queue_all_reduce_sum(&t->mesh.data, &n->x, grad);
    }
}

/* Sums a bucket of one micro-batch of each rank.  The rank's part is copied out of the room, which the next
 * bucket then uses. */
static void reduce_room(struct trainer *t, int bucket)
{
    struct exec *x = &t->net.x;
    tensor room = gradient_rooms_view(&t->rooms, bucket), kept, passing;
    bool has_part = gradient_rooms_cut(&t->rooms, bucket, &t->update, t->grad, &kept, &passing);
    if (t->turn.is_empty) {
        x->ops->fill(x, room, 0);
    }
    comm_queue_reduce_scatter_sum(&t->mesh.data, x, room, t->update.cut);
    comm_join(&t->mesh.data, x);
    /* The first round assigns this rank's part and later rounds add to it; with a tree every round
     * assigns, and the tree adds. */
    if (has_part) {
        (t->turn.round == 0 || t->tree.n_levels > 0 ? x->ops->cast : x->ops->add)(x, kept, passing);
    }
    gradient_rooms_leave(&t->rooms, x, bucket);
}

void gradient_sums_up_to(void *trainer, int bucket)
{
    struct trainer *t = trainer;
    for (; t->turn.n_summed <= bucket; t->turn.n_summed++) {
        (trainer_shares_gradients(t) ? reduce_room : reduce_bucket)(t, t->turn.n_summed);
    }
}

/* A round is a block of the canonical sum if micro-batches are dealt to ranks one by one, and blocks are
 * single micro-batches. */
static void check_rounds(struct trainer *t, const struct batch_step *batch, int64_t n_rounds)
{
    const struct gradient_blocks *b = &t->tree.blocks;
    if (batch->n_micro > n_rounds) {
        exec_fail(&t->net.x, STATUS_INTERNAL, "gradients",
                  "a rank has %lld micro-batches, but the limit is %lld", (long long)batch->n_micro,
                  (long long)n_rounds);
    }
    if (b->n_all > 0 && (b->n_all != batch->n_all_micro || (b->n > 1 && batch->apart != t->mesh.data.size))) {
        exec_fail(&t->net.x, STATUS_INTERNAL, "gradients",
                  "%lld micro-batches, dealt %lld apart, do not fit %d blocks of ranks that take turns",
                  (long long)batch->n_all_micro, (long long)batch->apart, b->n_all);
    }
}

/* No rank has more micro-batches than n_all_micro over ranks, rounded up (batch_step_init_part); so all know
 * the same number of rounds. */
void gradient_sums_in_rounds(struct trainer *t, const struct batch_step *batch)
{
    struct trainer_turn *turn = &t->turn;
    int64_t n_rounds = (batch->n_all_micro + t->mesh.data.size - 1) / t->mesh.data.size;
    trainer_clear(t, n_rounds);
    check_rounds(t, batch, n_rounds);
    for (turn->round = 0; turn->round < n_rounds && !trainer_abandons(t); turn->round++) {
        turn->n_summed = 0;
        turn->is_empty = turn->round >= batch->n_micro || batch->micro[turn->round].n_sequences == 0;
        trainer_queue_micro(t, batch, turn->round);
        /* buckets left without a micro-batch, or after a failure */
        gradient_sums_up_to(t, t->net.stage.buckets.n - 1);
        if (t->tree.n_levels > 0 && turn->round < t->tree.blocks.n) {
            gradient_tree_add(&t->tree, &t->net.x, (int)turn->round, t->grad);
        }
    }
}

/* Sums, over the ranks that have slices of the layers, the gradients of parameters that each rank applies
 * to its own heads only, or to its own rows of the residual stream.  It runs once a step, after the sums
 * over replicas: then the fewest bytes are sent, and with ZeRO only those of the rank's shard. */
static void sum_gradients_in_parts(struct trainer *t)
{
    const struct param_table *params = &t->net.params;
    for (int i = 0; i < params->n && peers_size(&t->net.x) > 1; i++) {
        const struct param *p = &params->params[i];
        tensor own = update_own_param(&t->update, p, trainer_own_gradients(t));
        if (param_sums_parts(p, t->net.config.sequence_parallel) && !tensor_is_null(own)) {
            peers_sum(&t->net.x, own);
        }
    }
}

void gradient_sums_end(struct trainer *t)
{
    const struct comm *replicas = &t->mesh.data;
    if (replicas->size > 1) {
        gradient_sums_up_to(t, t->net.stage.buckets.n - 1);
        comm_all_reduce_sum(replicas, &t->net.x, t->sums); /* from here on ops wait for all sums */
        if (!tensor_is_null(t->net.stage.histories)) {     /* all use the same scales in the next step */
            comm_all_reduce_max(replicas, &t->net.x, t->net.stage.histories);
        }
    }
    trainer_share_sums(t);
    sum_gradients_in_parts(t);
}
