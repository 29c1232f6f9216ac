#include "train/data_parallel_step.h"

/* Sums of gradients, a layer at a time. */
struct reduction {
    struct trainer *t;
    const struct comm *c;
    int64_t next; /* next layer to sum: those after it are done */
};

/* Sums all layers down to this one that are not summed yet. */
static void reduce_down_to(void *context, int64_t layer)
{
    struct reduction *r = context;
    for (; r->next >= layer; r->next--) {
        int64_t begin, end;
        param_table_range(&r->t->net.params, r->next, r->next + 1, &begin, &end);
        comm_all_reduce_sum(r->c, &r->t->net.x, tensor_slice(r->t->grad, begin, end - begin));
    }
}

void data_parallel_gradients(struct trainer *t, const struct comm *c, const struct batch_step *part,
                             struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    struct reduction r = {t, c, t->config.model->n_layers};
    t->gradient_done = reduce_down_to;
    t->gradient_done_context = &r;
    trainer_queue_gradients(t, part, numbers, mean_of_micro_batches);
    t->gradient_done = NULL;
    reduce_down_to(&r, MODEL_INPUT_LAYER); /* without micro-batches, or after a failure, nobody was called */
    comm_all_reduce_sum(c, &t->net.x, t->sums);
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
    return trainer_update(t, t->config.n_shards > 1 ? c : NULL, part, step, result);
}
