#include "train/data_parallel_step.h"

#include "watch/profile.h"

/* Sums of gradients, a bucket at a time. */
struct reduction {
    struct trainer *t;
    const struct comm *c;
    int n_done;
    int64_t round; /* where ranks share gradients: of micro-batches, one on each rank */
    bool is_empty; /* this rank has none in it */
};

/* Ranks that share the update need the sums of their shards only. */
static void reduce_bucket(const struct reduction *r, int bucket)
{
    struct network *n = &r->t->net;
    const struct update *u = &r->t->update;
    tensor grad = param_buckets_view(&n->stage.buckets, bucket, &n->params, r->t->grad);
    if (u->n_ranks > 1) {
        int64_t from, to;
        param_buckets_range(&n->stage.buckets, bucket, &n->params, &from, &to);
        update_cut(u, from, to);
        comm_queue_reduce_scatter_sum(r->c, &n->x, grad, u->cut);
    } else {
        comm_queue_all_reduce_sum(r->c, &n->x, grad);
    }
}

/* The same of one micro-batch of each rank.  The rank's part is taken out of the room, which is then the next
 * bucket's. */
static void reduce_room(const struct reduction *r, int bucket)
{
    struct trainer *t = r->t;
    struct exec *x = &t->net.x;
    tensor room = gradient_rooms_view(&t->rooms, bucket), kept, passing;
    bool has_part = gradient_rooms_cut(&t->rooms, bucket, &t->update, t->grad, &kept, &passing);
    if (r->is_empty) {
        x->ops->fill(x, room, 0);
    }
    comm_queue_reduce_scatter_sum(r->c, x, room, t->update.cut);
    comm_join(r->c, x);
    /* The first round assigns this rank's part and later rounds add to it; with a tree every round
     * assigns, and the tree adds. */
    if (has_part) {
        (r->round == 0 || t->tree.n_levels > 0 ? x->ops->cast : x->ops->add)(x, kept, passing);
    }
    gradient_rooms_leave(&t->rooms, x, bucket);
}

/* Those up to this one that have not been summed yet. */
static void reduce_up_to(void *context, int bucket)
{
    struct reduction *r = context;
    for (; r->n_done <= bucket; r->n_done++) {
        (r->t->config.shares_gradients ? reduce_room : reduce_bucket)(r, r->n_done);
    }
}

/* A round is a block of the canonical sum if ranks take turns, and blocks are single micro-batches. */
static void check_rounds(const struct reduction *r, const struct batch_step *part, int64_t n_rounds)
{
    const struct gradient_blocks *b = &r->t->config.blocks;
    if (part->n_micro > n_rounds) {
        exec_fail(&r->t->net.x, STATUS_INTERNAL, "gradients",
                  "a rank has %lld micro-batches, but the limit is %lld", (long long)part->n_micro,
                  (long long)n_rounds);
    }
    if (b->n_all > 0 && (b->n_all != part->n_all_micro || (b->n > 1 && part->apart != r->c->size))) {
        exec_fail(&r->t->net.x, STATUS_INTERNAL, "gradients",
                  "%lld micro-batches, dealt %lld apart, do not fit %d blocks of ranks that take turns",
                  (long long)part->n_all_micro, (long long)part->apart, b->n_all);
    }
}

/* No rank has more micro-batches than n_all_micro over ranks, rounded up (batch_step_init_part); so all know
 * of as many rounds. */
static void sum_in_rounds(struct reduction *r, const struct batch_step *part, struct stage_numbers *numbers,
                          bool mean_of_micro_batches)
{
    struct trainer *t = r->t;
    int64_t n_rounds = (part->n_all_micro + r->c->size - 1) / r->c->size;
    trainer_clear(t, n_rounds);
    check_rounds(r, part, n_rounds);
    for (r->round = 0; r->round < n_rounds && !trainer_abandons(t); r->round++) {
        r->n_done = 0;
        r->is_empty = r->round >= part->n_micro || part->micro[r->round].n_sequences == 0;
        trainer_queue_micro(t, part, r->round, numbers, mean_of_micro_batches);
        reduce_up_to(r, t->net.stage.buckets.n - 1); /* without a micro-batch, or after a failure */
        if (t->tree.n_levels > 0 && r->round < t->config.blocks.n) {
            gradient_tree_add(&t->tree, &t->net.x, t->config.blocks, (int)r->round, t->grad);
        }
    }
    profile_phase(t->net.profile, "optimizer");
}

/* What no backward has told of: without micro-batches, or after a failure; and what is no bucket. */
static void sum_the_rest(struct reduction *r)
{
    struct trainer *t = r->t;
    reduce_up_to(r, t->net.stage.buckets.n - 1);
    comm_all_reduce_sum(r->c, &t->net.x, t->sums); /* what is given from here on waits for all sums */
    if (!tensor_is_null(t->net.stage.histories)) { /* all ranks use the same scales in the next step */
        comm_all_reduce_max(r->c, &t->net.x, t->net.stage.histories);
    }
}

void data_parallel_gradients(struct trainer *t, const struct comm *c, const struct batch_step *part,
                             struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    struct reduction r = {.t = t, .c = c};
    t->gradient_done = reduce_up_to;
    t->gradient_done_context = &r;
    if (t->config.shares_gradients) {
        sum_in_rounds(&r, part, numbers, mean_of_micro_batches);
    } else {
        trainer_queue_gradients(t, part, numbers, mean_of_micro_batches);
    }
    t->gradient_done = NULL;
    if (t->turn.abandoned) { /* on all ranks, before the same round */
        comm_join(c, &t->net.x);
        return;
    }
    sum_the_rest(&r);
}

void data_parallel_sum(struct trainer *t, const struct comm *c)
{
    struct reduction r = {.t = t, .c = c};
    sum_the_rest(&r);
}

struct status data_parallel_step(struct trainer *t, const struct comm *c, const struct batch_step *part,
                                 int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                                 struct trainer_result *result)
{
    struct stage_numbers numbers = trainer_numbers(t, step, update, lr);
    data_parallel_gradients(t, c, part, &numbers, mean_of_micro_batches);
    struct status s = t->turn.abandoned
                          ? trainer_abandon(t, result)
                          : trainer_update(t, t->config.n_shards > 1 ? c : NULL, part, step, result);
    struct status sums =
        comm_check(c); /* of the step's sums: those of one that was given up are no reason for the rest */
    return failed(sums) ? sums : s;
}
