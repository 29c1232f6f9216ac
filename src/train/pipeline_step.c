#include "train/pipeline_step.h"

#include "dist/pipeline.h"

struct status pipeline_configure(struct trainer_config *config, int stage, int n_stages, int64_t n_micro)
{
    int64_t n_layers = config->net.model->n_layers;
    if (n_stages > n_layers) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages needs a layer for each, but the model has %lld",
                            n_stages, (long long)n_layers);
    }
    if (n_stages > 1 && config->net.model->hands_on_more) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages cannot run pre-LN layers: stages pass on the output of "
                            "a layer, but not its sum",
                            n_stages);
    }
    config->net.first_layer = pipeline_first_layer(n_layers, stage, n_stages);
    config->net.end_layer = pipeline_first_layer(n_layers, stage + 1, n_stages);
    config->net.n_slots = pipeline_in_flight(stage, n_stages, n_micro);
    config->n_shards = n_stages;
    config->shard = stage;
    config->shards_are_stages = true;
    return status_ok();
}

struct pipeline {
    struct trainer *t;
    const struct comm *c;
    const struct batch_step *batch;
    struct stage_numbers *numbers;
    bool mean_of_micro_batches;
    int64_t n_micro; /* with sequences */
    int last;        /* stage */
    bool is_tied;    /* the first and the last have a parameter in common */
};

static void select_slot(const struct pipeline *p, int64_t micro)
{
    stage_select(&p->t->net.stage, micro % pipeline_in_flight(p->c->rank, p->c->size, p->n_micro));
}

static void forward(const struct pipeline *p, int64_t micro)
{
    struct trainer *t = p->t;
    struct stage *s = &t->net.stage;
    const struct batch *b = batch_step_filled(p->batch, micro);
    select_slot(p, micro);
    trainer_scale_losses(t, p->numbers, p->batch, b, p->mean_of_micro_batches);
    stage_begin(s, b, p->numbers);
    if (p->c->rank > 0) {
        comm_receive(p->c, &t->net.x, stage_input(s), p->c->rank - 1);
    }
    if (p->is_tied && p->c->rank == p->last) { /* the heads' part is that of one micro-batch */
        t->net.x.ops->fill(&t->net.x, trainer_tied(t, t->grad), 0);
    }
    enum stage_work work = micro == 0 ? STAGE_FORWARD_FIRST : STAGE_FORWARD_NEXT;
    if (stage_graph_begin(s, work)) {
        if (micro == 0) {
            stage_round_weights(s);
        }
        stage_forward(s, true);
        stage_learn(s, t->sums, micro > 0);
        stage_graph_end(s, work);
    }
    if (p->c->rank < p->last) {
        comm_send(p->c, &t->net.x, stage_output(s), p->c->rank + 1);
    }
}

/* Before a backward.  On the input layer's stage the shared gradient is added to those of the earlier
 * micro-batches. */
static void receive_gradients(const struct pipeline *p)
{
    struct trainer *t = p->t;
    if (p->c->rank < p->last) {
        comm_receive(p->c, &t->net.x, stage_gradient(&t->net.stage), p->c->rank + 1);
    }
    if (p->is_tied && p->c->rank == 0) {
        comm_receive(p->c, &t->net.x, t->tied_part, p->last);
        trainer_add_tied(t);
    }
}

static void send_gradients(const struct pipeline *p)
{
    struct trainer *t = p->t;
    if (p->c->rank > 0) {
        comm_send(p->c, &t->net.x, stage_gradient(&t->net.stage), p->c->rank - 1);
    }
    if (p->is_tied && p->c->rank == p->last) {
        comm_send(p->c, &t->net.x, trainer_tied(t, t->grad), 0);
    }
}

static void backward(const struct pipeline *p, int64_t micro)
{
    struct stage *s = &p->t->net.stage;
    select_slot(p, micro);
    receive_gradients(p);
    enum stage_work work = micro == 0 ? STAGE_BACKWARD_FIRST : STAGE_BACKWARD_NEXT;
    if (stage_graph_begin(s, work)) {
        stage_backward(s, true, micro > 0);
        stage_graph_end(s, work);
    }
    send_gradients(p);
}

void pipeline_gradients(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                        struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    struct pipeline p = {.t = t,
                         .c = c,
                         .batch = batch,
                         .numbers = numbers,
                         .mean_of_micro_batches = mean_of_micro_batches,
                         .n_micro = batch_step_n_filled(batch),
                         .last = c->size - 1,
                         .is_tied = t->config.net.model->tied != NULL && c->size > 1};
    CHECK(t->net.config.first_layer == pipeline_first_layer(t->config.net.model->n_layers, c->rank, c->size),
          "the trainer is not for stage %d of %d", c->rank, c->size);
    if (p.n_micro == 0) {
        trainer_queue_gradients(t, batch, numbers, mean_of_micro_batches);
    } else {
        trainer_clear(t, p.n_micro);
    }
    for (int64_t i = 0; i < 2 * p.n_micro; i++) {
        struct pipeline_action a = pipeline_action(i, c->rank, c->size, p.n_micro);
        (a.work == PIPELINE_FORWARD ? forward : backward)(&p, a.micro);
    }
    comm_broadcast(c, &t->net.x, t->sums, p.last);
    stage_weights_rounded(&t->net.stage);
}

/* The heads of the last stage read the weights that the first has updated: sending them costs as many bytes
 * as sending the gradient would, and the last stage needs no moments for them. */
static void share_tied(struct trainer *t, const struct comm *c)
{
    tensor master = trainer_tied(t, t->net.master);
    if (c->rank == 0) {
        comm_send(c, &t->net.x, master, c->size - 1);
    }
    if (c->rank == c->size - 1) {
        comm_receive(c, &t->net.x, master, 0);
        if (!tensor_is_null(t->net.working)) {
            t->net.x.ops->cast(&t->net.x, trainer_tied(t, t->net.working), master);
        }
    }
}

struct status pipeline_step(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                            int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                            struct trainer_result *result)
{
    struct stage_numbers numbers = trainer_numbers(t, step, update, lr);
    pipeline_gradients(t, c, batch, &numbers, mean_of_micro_batches);
    struct status s = trainer_update(t, c->size > 1 ? c : NULL, batch, step, result);
    bool is_tied = t->config.net.model->tied != NULL && c->size > 1;
    if (is_tied) { /* after a failure, too: the other stage makes the call */
        share_tied(t, c);
    }
    return failed(s) ? s : t->net.x.status;
}

void pipeline_gather_weights(struct trainer *t, const struct comm *c)
{
    trainer_gather_weights(t, c);
    t->net.version++;
}
