#include "train/data_parallel_step.h"

/* Sums of gradients, a bucket at a time. */
struct reduction {
    struct trainer *t;
    const struct comm *c;
    int n_done;
};

/* Ranks that share the update need the sums of their shards only. */
static void reduce_bucket(const struct reduction *r, int bucket)
{
    struct network *n = &r->t->net;
    struct update *u = &r->t->update;
    tensor grad = param_buckets_view(&n->stage.buckets, bucket, &n->params, r->t->grad);
    if (u->n_ranks > 1) {
        int64_t from, to;
        param_buckets_range(&n->stage.buckets, bucket, &n->params, &from, &to);
        comm_cut_bounds(u->cut, u->bounds, u->n_ranks, from, to);
        comm_queue_reduce_scatter_sum(r->c, &n->x, grad, u->cut);
    } else {
        comm_queue_all_reduce_sum(r->c, &n->x, grad);
    }
}

/* Sums all buckets up to this one that are not summed yet. */
static void reduce_up_to(void *context, int bucket)
{
    struct reduction *r = context;
    for (; r->n_done <= bucket; r->n_done++) {
        reduce_bucket(r, r->n_done);
    }
}

void data_parallel_gradients(struct trainer *t, const struct comm *c, const struct batch_step *part,
                             struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    struct reduction r = {.t = t, .c = c};
    t->gradient_done = reduce_up_to;
    t->gradient_done_context = &r;
    trainer_queue_gradients(t, part, numbers, mean_of_micro_batches);
    t->gradient_done = NULL;
    reduce_up_to(&r, t->net.stage.buckets.n - 1);  /* without micro-batches, or after a failure */
    comm_all_reduce_sum(c, &t->net.x, t->sums);    /* what is given from here on waits for all sums */
    if (!tensor_is_null(t->net.stage.histories)) { /* all ranks use the same scales in the next step */
        comm_all_reduce_max(c, &t->net.x, t->net.stage.histories);
    }
}

struct status data_parallel_step(struct trainer *t, const struct comm *c, const struct batch_step *part,
                                 int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                                 struct trainer_result *result)
{
    struct stage_numbers numbers = trainer_numbers(t, step, update, lr);
    data_parallel_gradients(t, c, part, &numbers, mean_of_micro_batches);
    struct status s = trainer_update(t, t->config.n_shards > 1 ? c : NULL, part, step, result);
    struct status sums =
        comm_check(c); /* of the step's sums: those of one that was given up are no reason for the rest */
    return failed(sums) ? sums : s;
}
