#include "train/pipeline_step.h"

#include "core/integers.h"
#include "dist/pipeline.h"
#include "train/data_parallel_step.h"
#include "watch/profile.h"

struct status pipeline_configure(struct trainer_config *config, int stage, int n_stages, int64_t n_micro)
{
    const struct model *m = config->net.model;
    if (n_stages > m->n_layers) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages needs a layer for each, but the model has %lld",
                            n_stages, (long long)m->n_layers);
    }
    if (n_stages > 1 && m->hands_on_more) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages cannot run pre-LN layers: stages pass on the output of "
                            "a layer, but not its sum",
                            n_stages);
    }
    if (n_stages > 1 && config->shares_gradients) {
        return status_error(STATUS_USAGE,
                            "a pipeline of %d stages keeps the gradients of all its micro-batches, so ranks "
                            "cannot share them: use ZeRO stage 0 or 1",
                            n_stages);
    }
    config->net.part.n_ranges = 1;
    config->net.part.ranges[0] = pipeline_layers(m->n_layers, stage, n_stages);
    config->net.n_slots = pipeline_in_flight(&(struct pipeline_shape){n_stages, 1, n_micro}, stage, 0);
    return status_ok();
}

struct pipeline {
    struct trainer *t;
    struct pipeline_ranks ranks;
    const struct batch_step *batch;
    struct stage_numbers *numbers;
    bool mean_of_micro_batches;
    int64_t n_micro; /* with sequences */
    int stage, last;
};

static void select_slot(const struct pipeline *p, int64_t micro)
{
    stage_select(&p->t->net.stage, 0, micro % p->t->net.config.n_slots);
}

static void receive_input(struct trainer *t, const struct comm *stages)
{
    if (stages->rank > 0) {
        comm_receive(stages, &t->net.x, stage_input(&t->net.stage), stages->rank - 1);
    }
}

static void send_output(struct trainer *t, const struct comm *stages)
{
    if (stages->rank < stages->size - 1) {
        comm_send(stages, &t->net.x, stage_output(&t->net.stage), stages->rank + 1);
    }
}

static void forward(const struct pipeline *p, int64_t micro)
{
    struct trainer *t = p->t;
    struct stage *s = &t->net.stage;
    const struct batch *b = batch_step_filled(p->batch, micro);
    select_slot(p, micro);
    trainer_scale_losses(t, p->numbers, p->batch, b, p->mean_of_micro_batches);
    stage_begin(s, b, p->numbers);
    receive_input(t, p->ranks.stages);
    enum stage_work work = micro == 0 ? STAGE_FORWARD_FIRST : STAGE_FORWARD_NEXT;
    if (stage_graph_begin(s, work)) {
        if (micro == 0) {
            stage_round_weights(s);
        }
        stage_forward(s, true);
        stage_learn(s, t->sums, micro > 0);
        stage_graph_end(s, work);
    }
    send_output(t, p->ranks.stages);
}

static void backward(const struct pipeline *p, int64_t micro)
{
    struct trainer *t = p->t;
    struct stage *s = &t->net.stage;
    select_slot(p, micro);
    if (p->stage < p->last) {
        comm_receive(p->ranks.stages, &t->net.x, stage_gradient(s), p->stage + 1);
    }
    enum stage_work work = micro == 0 ? STAGE_BACKWARD_FIRST : STAGE_BACKWARD_NEXT;
    if (stage_graph_begin(s, work)) {
        stage_backward(s, true, micro > 0);
        stage_graph_end(s, work);
    }
    if (p->stage > 0) {
        comm_send(p->ranks.stages, &t->net.x, stage_gradient(s), p->stage - 1);
    }
}

static bool is_tied(const struct trainer *t, const struct comm *stages)
{
    return t->config.net.model->tied != NULL && stages->size > 1;
}

/* The heads' gradient of the parameter that they share with the input layer, of all micro-batches. */
static void send_tied_gradient(struct trainer *t, const struct comm *stages)
{
    if (stages->rank == stages->size - 1) {
        comm_send(stages, &t->net.x, trainer_tied(t, t->grad), 0);
    }
    if (stages->rank == 0) {
        comm_receive(stages, &t->net.x, t->tied_part, stages->size - 1);
        trainer_add_tied(t);
    }
}

/* The weights of that parameter, as passes read them. */
static tensor tied_weights(const struct trainer *t)
{
    const struct network *n = &t->net;
    return trainer_tied(t, tensor_is_null(n->working) ? n->master : n->working);
}

/* The heads' stage reads the weights that the input layer's has updated: sending them costs as many bytes as
 * sending the gradient would, and the heads' stage needs no moments for them. */
static void send_tied_weights(struct trainer *t, const struct comm *stages)
{
    if (stages->rank == 0) {
        comm_send(stages, &t->net.x, tied_weights(t), stages->size - 1);
    }
    if (stages->rank == stages->size - 1) {
        comm_receive(stages, &t->net.x, tied_weights(t), 0);
    }
}

static void run_actions(const struct pipeline *p)
{
    struct pipeline_shape shape = {p->last + 1, 1, p->n_micro};
    trainer_clear(p->t, 1);
    if (p->n_micro == 0) {
        stage_send_numbers(&p->t->net.stage, p->numbers);
    }
    if (trainer_abandons(p->t)) {
        return;
    }
    for (int64_t i = 0; i < pipeline_n_actions(&shape); i++) {
        struct pipeline_action a = pipeline_action(&shape, p->stage, i);
        (a.work == PIPELINE_FORWARD ? forward : backward)(p, a.micro);
    }
}

void pipeline_gradients(struct trainer *t, struct pipeline_ranks ranks, const struct batch_step *part,
                        struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    struct pipeline p = {.t = t,
                         .ranks = ranks,
                         .batch = part,
                         .numbers = numbers,
                         .mean_of_micro_batches = mean_of_micro_batches,
                         .n_micro = batch_step_n_filled(part),
                         .stage = ranks.stages->rank,
                         .last = ranks.stages->size - 1};
    run_actions(&p);
    if (t->turn.abandoned) {
        return;
    }
    profile_phase(t->net.profile, "optimizer");
    if (is_tied(t, ranks.stages)) {
        send_tied_gradient(t, ranks.stages);
    }
    data_parallel_sum(t, ranks.data);
    comm_broadcast(ranks.stages, &t->net.x, t->sums, p.last);
    stage_weights_rounded(&t->net.stage);
}

struct status pipeline_step(struct trainer *t, struct pipeline_ranks ranks, const struct batch_step *part,
                            int64_t step, int64_t update, double lr, bool mean_of_micro_batches,
                            struct trainer_result *result)
{
    struct stage_numbers numbers = trainer_numbers(t, step, update, lr);
    pipeline_gradients(t, ranks, part, &numbers, mean_of_micro_batches);
    struct status s = t->turn.abandoned
                          ? trainer_abandon(t, result)
                          : trainer_update(t, t->config.n_shards > 1 ? ranks.data : NULL, part, step, result);
    if (!t->turn.abandoned && is_tied(t, ranks.stages)) { /* after a failure, too: the other makes the call */
        send_tied_weights(t, ranks.stages);
    }
    return failed(s) ? s : t->net.x.status;
}

void pipeline_evaluate_batch(struct trainer *t, const struct comm *stages, const struct batch *batch)
{
    struct stage *s = &t->net.stage;
    stage_select(s, 0, 0);
    stage_begin(s, batch, &(struct stage_numbers){0});
    stage_round_changed(s);
    receive_input(t, stages);
    if (stage_graph_begin(s, STAGE_EVALUATE)) {
        stage_forward(s, false);
        stage_measure(s, t->sums, false);
        stage_graph_end(s, STAGE_EVALUATE);
    }
    send_output(t, stages);
}
