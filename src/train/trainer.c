/* The order of a step, all of it queued on the device:
 *
 * 1. the numbers of the step: key of dropout, scalars of the update (trainer_begin_step);
 * 2. zeros in the sums and in the gradients that are sums (trainer_clear);
 * 3. for each micro-batch: send, forward, heads with loss, backward (micro_step; in a pipeline
 *    pipeline_step.c);
 * 4. sums over ranks (gradient_sums.c), a bucket at a time, while the backward continues;
 * 5. norm of all gradients, update, weights to the ranks that share the update (trainer_run_update);
 * 6. the step's only wait, for the norm and the sums (read_results).
 *
 * Losses are divided by the counts of the global batch, and multiplied by the loss scale, before their
 * backward.  So gradients of micro-batches and ranks are only added, and the update divides by the loss
 * scale. */
#include "core/rng.h"
#include "train/trainer_parts.h"
#include "watch/profile.h"

#include <math.h>

/* The purpose of keys drawn from the run's seed. */
enum { KEY_DROPOUT = 0x64726f70 };

tensor trainer_tied(const struct trainer *t, tensor flat)
{
    const struct param *p = param_table_find(&t->net.params, t->config.net.model->tied);
    return tensor_slice(flat, p->offset, param_count(p));
}

void trainer_add_tied(struct trainer *t)
{
    t->net.x.ops->add(&t->net.x, trainer_tied(t, t->grad), t->tied_part);
}

tensor trainer_own_gradients(const struct trainer *t)
{
    return trainer_shares_gradients(t) ? t->grad : update_own(&t->update, t->grad);
}

static struct optim_buffers buffers_of(const struct trainer *t)
{
    bool whole = network_has_master(&t->net);
    tensor master = whole ? update_own(&t->update, t->net.master) : t->net.master;
    return (struct optim_buffers){master, update_own(&t->update, t->net.working), trainer_own_gradients(t),
                                  t->exp_avg, t->exp_avg_sq};
}

void trainer_clear_added(struct trainer *t)
{
    if (!trainer_shares_gradients(t)) {
        t->net.x.ops->clear(&t->net.x, t->grad, t->added, t->n_added);
    }
}

/* Gathers the weights that passes read, in the dtypes in which they read them, where no rank has the complete
 * master. */
static void gather_copies(struct trainer *t)
{
    network_copy_vectors(&t->net);
    update_gather_flat(&t->update, &t->mesh, &t->net.x, t->net.working);
    comm_all_gather(&t->mesh.data, &t->net.x, t->net.vectors, t->vector_bounds);
}

/* The norm comes first: clipping needs it, and the update reads it on the device, without a wait. */
void trainer_run_update(struct trainer *t)
{
    exec_enter(&t->net.x, "optimizer", -1);
    struct exec *x = &t->net.x;
    const struct update *u = &t->update;
    const struct mesh *m = &t->mesh;
    struct optim_buffers b = buffers_of(t);
    if (t->config.counts_zeros) {
        update_zeros(u, m, x, b.grad, tensor_slice(t->results, TRAINER_ZEROS, 1));
    }
    update_norm(u, m, x, b.grad, t->norm);
    update_shard(u, m, x, b, tensor_slice(t->results, 0, TRAINER_N_FINITE), stage_scalars(&t->net.stage));
    if (t->config.measures_weights) {
        update_norm(u, m, x, b.master, tensor_slice(t->results, TRAINER_WEIGHT_NORM, 1));
    }
    if (network_has_master(&t->net)) {
        update_gather(u, m, x, t->net.master, t->net.working);
    } else {
        gather_copies(t);
    }
    stage_advance_histories(&t->net.stage);
}

static double reciprocal(int64_t n)
{
    return n > 0 ? 1.0 / (double)n : 0.0;
}

void trainer_scale_losses(struct trainer *t, const struct batch_step *batch, const struct batch *micro)
{
    const struct model *m = t->config.net.model;
    double scale = t->loss_scale.value, share = reciprocal(batch->n_to_fill);
    for (int i = 0, loss = 0; i < m->n_sums; i++) {
        int labels = m->sums[i].labels;
        if (!m->sums[i].is_loss) {
            continue;
        }
        t->numbers.loss_scales[loss++] =
            scale * (t->config.mean_of_micro_batches ? share * reciprocal(batch_count_labels(micro, labels))
                                                     : reciprocal(batch->n_labels[labels]));
    }
}

static struct stage_numbers numbers_of(const struct trainer *t, int64_t step)
{
    return (struct stage_numbers){.dropout_key =
                                      rng_key(rng_key(t->config.seed, KEY_DROPOUT), (uint64_t)step)};
}

/* Sets when ranks sum a bucket: once the last micro-batch has queued it, or every micro-batch where ranks
 * share gradients; with a tree of blocks only after the tree is summed. */
static void set_gradient_done(struct trainer *t, bool sums)
{
    struct stage *s = &t->net.stage;
    if (t->gradient_done != NULL) {
        s->gradient_done = sums ? t->gradient_done : NULL;
        s->gradient_done_context = t->gradient_done_context;
    } else {
        s->gradient_done = sums && t->mesh.data.size > 1 ? gradient_sums_up_to : NULL;
        s->gradient_done_context = t;
    }
}

/* The first micro-batch of a step has a recording of its own: it rounds the weights to fp8 and
 * assigns the gradients that are products, to which the others add. */
static void micro_step(struct trainer *t, const struct batch *micro, bool first, bool last)
{
    enum stage_work work = first ? STAGE_TRAIN_FIRST : STAGE_TRAIN_NEXT;
    stage_begin(&t->net.stage, micro, &t->numbers);
    if (t->pass_hook != NULL) {
        t->pass_hook->begin(t->pass_hook->self,
                            &(struct trainer_pass){micro, t->step, first, last, t->loss_scale.value});
    }
    bool in_rooms = trainer_shares_gradients(t);
    set_gradient_done(t, in_rooms || (last && t->tree.n_levels == 0));
    if (stage_graph_begin(&t->net.stage, work)) {
        if (first) {
            stage_round_weights(&t->net.stage);
        }
        stage_forward(&t->net.stage, true);
        stage_learn(&t->net.stage, t->sums, !first && !in_rooms);
        profile_phase(t->net.profile, "backward");
        stage_backward(&t->net.stage, true, !first && !in_rooms);
        stage_graph_end(&t->net.stage, work);
    }
    t->net.stage.gradient_done = NULL;
    if (t->pass_hook != NULL) {
        t->pass_hook->end(t->pass_hook->self);
    }
    stage_weights_rounded(&t->net.stage);
}

void trainer_clear(struct trainer *t, int64_t n)
{
    t->turn = (struct trainer_turn){.n = n};
    exec_enter(&t->net.x, "gradients", -1);
    t->net.x.ops->fill(&t->net.x, t->results, 0);
    trainer_clear_added(t);
}

bool trainer_abandons(struct trainer *t)
{
    const struct micro_hook *hook = t->micro_hook;
    struct trainer_turn *turn = &t->turn;
    if (hook == NULL) {
        return false;
    }
    struct status s = hook->next(hook->self, t->net.x.status, turn->n_done++, turn->n, &turn->abandoned);
    if (failed(s)) {
        t->net.x.status = failed(t->net.x.status) ? t->net.x.status : s;
        turn->abandoned = true;
    }
    return turn->abandoned;
}

/* Ends a step before its update, when it has changed no weight and no moment.  Only the largest magnitudes
 * for fp8 have been written, so these are forgotten. */
static struct status abandon(struct trainer *t, struct trainer_result *result)
{
    comm_join(&t->mesh.data, &t->net.x);
    stage_forget_histories(&t->net.stage);
    exec_synchronize(&t->net.x);
    *result = (struct trainer_result){.abandoned = true};
    return t->net.x.status;
}

/* Queues a block of micro-batches whose gradients are added to one another; `last`: none follow in this
 * step. */
static void queue_block(struct trainer *t, const struct batch_step *batch, bool last)
{
    struct exec *x = &t->net.x;
    int64_t n = batch_step_n_filled(batch);
    for (int64_t i = 0; i < n && !trainer_abandons(t); i++) {
        const struct batch *micro = batch_step_filled(batch, i);
        if (i > 0) {
            profile_micro_step(t->net.profile);
        }
        profile_phase(t->net.profile, "forward");
        trainer_scale_losses(t, batch, micro);
        micro_step(t, micro, i == 0, last && i == n - 1);
    }
    if (n == 0) {
        x->ops->fill(x, t->grad, 0);
        stage_send_numbers(&t->net.stage, &t->numbers);
    }
}

static void queue_tree(struct trainer *t, const struct batch_step *batch)
{
    struct gradient_blocks blocks = t->tree.blocks;
    for (int i = 0; i < blocks.n && !t->turn.abandoned; i++) {
        struct batch_step block = batch_step_part(batch, blocks.first + i, blocks.n_all);
        if (i > 0) {
            trainer_clear_added(t);
        }
        queue_block(t, &block, i == blocks.n - 1);
        gradient_tree_add(&t->tree, &t->net.x, i, t->grad);
    }
}

static void queue_passes(struct trainer *t, const struct batch_step *batch)
{
    int64_t n = batch_step_n_filled(batch);
    trainer_clear(t, n);
    if (n == 0 && trainer_abandons(t)) {
        return;
    }
    if (t->tree.n_levels > 0) {
        queue_tree(t, batch);
    } else {
        queue_block(t, batch, true);
    }
}

/* A step is abandoned on all ranks before the same round. */
void trainer_queue_gradients(struct trainer *t, const struct batch_step *batch)
{
    if (t->mesh.pipe.size > 1) {
        pipeline_gradients(t, batch);
    } else if (trainer_shares_gradients(t)) {
        gradient_sums_in_rounds(t, batch);
    } else {
        queue_passes(t, batch);
    }
    profile_phase(t->net.profile, "optimizer");
    if (!t->turn.abandoned) {
        gradient_sums_end(t);
    }
}

void trainer_queue_micro(struct trainer *t, const struct batch_step *batch, int64_t k)
{
    struct batch_step before = *batch;
    before.n_micro = k < batch->n_micro ? k : batch->n_micro;
    int64_t n = batch_step_n_filled(batch), n_before = batch_step_n_filled(&before);
    if (k == 0 && n == 0) { /* the update reads its numbers there */
        stage_send_numbers(&t->net.stage, &t->numbers);
    }
    if (k >= batch->n_micro || batch->micro[k].n_sequences == 0) {
        return;
    }
    if (n_before > 0) {
        profile_micro_step(t->net.profile);
    }
    profile_phase(t->net.profile, "forward");
    gradient_rooms_begin(&t->rooms, &t->net.x);
    trainer_scale_losses(t, batch, &batch->micro[k]);
    micro_step(t, &batch->micro[k], n_before == 0, n_before == n - 1);
}

struct status trainer_passes(struct trainer *t, const struct batch_step *batch, int64_t step)
{
    t->numbers = numbers_of(t, step);
    trainer_scale_losses(t, batch, batch->micro);
    micro_step(t, batch->micro, true, true);
    exec_synchronize(&t->net.x);
    return t->net.x.status;
}

struct status trainer_gradients(struct trainer *t, const struct batch_step *batch, int64_t step,
                                struct trainer_result *result)
{
    t->numbers = numbers_of(t, step);
    trainer_queue_gradients(t, batch);
    update_norm(&t->update, &t->mesh, &t->net.x, trainer_own_gradients(t), t->norm);
    return trainer_read_results(t, batch, result);
}

void trainer_begin_step(struct trainer *t, int64_t step, int64_t update_number, double lr)
{
    t->step = step;
    t->numbers = numbers_of(t, step);
    optimizer_scalars(&t->config.optimizer, lr, update_number, 1 / t->loss_scale.value, t->numbers.scalars);
}

/* Checks all groups: a collective that was given up leaves undefined contents in its tensors. */
static struct status check_groups(const struct mesh *m)
{
    TRY(comm_check(&m->tensor));
    TRY(comm_check(&m->pipe));
    TRY(comm_check(&m->ends));
    return comm_check(&m->data);
}

static void add_sent(struct mesh_sent *sent, struct mesh_sent before, struct mesh_sent after)
{
    sent->slices += after.slices - before.slices;
    sent->stages += after.stages - before.stages;
    sent->replicas += after.replicas - before.replicas;
}

struct status trainer_step(struct trainer *t, const struct batch_step *batch, int64_t step,
                           int64_t update_number, double lr, struct trainer_result *result)
{
    struct mesh_sent before = mesh_sent(&t->mesh);
    struct status s;
    trainer_begin_step(t, step, update_number, lr);
    trainer_queue_gradients(t, batch);
    if (t->turn.abandoned) {
        s = abandon(t, result);
    } else {
        s = trainer_update(t, batch, step, result);
        pipeline_share_tied(t); /* after a failure, too: the other rank makes the call */
    }
    struct status sums = check_groups(&t->mesh);
    add_sent(&t->sent, before, mesh_sent(&t->mesh));
    return failed(sums) ? sums : failed(s) ? s : t->net.x.status;
}

struct status trainer_update(struct trainer *t, const struct batch_step *batch, int64_t step,
                             struct trainer_result *result)
{
    if (t->update.n_ranks > 1 || mesh_cuts_model(t->mesh.shape)) { /* calls between ranks are not recorded */
        trainer_run_update(t);
    } else if (stage_graph_begin(&t->net.stage, STAGE_UPDATE)) {
        trainer_run_update(t);
        stage_graph_end(&t->net.stage, STAGE_UPDATE);
    }
    t->net.version++;
    TRY(trainer_read_results(t, batch, result));
    if (isfinite(trainer_result_loss(result) + result->grad_norm)) {
        loss_scale_raise(&t->loss_scale);
        return status_ok();
    }
    result->skipped = 1;
    if (loss_scale_lower(&t->loss_scale)) {
        return status_ok();
    }
    if (t->update.n_ranks > 1 && !trainer_shares_gradients(t)) { /* all ranks look at the same gradients */
        update_gather_flat(&t->update, &t->mesh, &t->net.x, t->grad);
        TRY(t->net.x.status);
    }
    return trainer_name_nonfinite(t, step, result);
}

/* Broadcasts the sums from the heads' stage, which computes them. */
void trainer_share_sums(struct trainer *t)
{
    const struct comm *stages = &t->mesh.pipe;
    if (stages->size > 1) {
        comm_broadcast(stages, &t->net.x, t->sums, stages->size - 1);
    }
}

void trainer_evaluate_begin(struct trainer *t)
{
    t->net.x.ops->fill(&t->net.x, t->results, 0);
}

void trainer_evaluate_batch(struct trainer *t, const struct batch *batch)
{
    if (t->mesh.pipe.size > 1) {
        pipeline_evaluate_batch(t, batch);
        return;
    }
    stage_begin(&t->net.stage, batch, &(struct stage_numbers){0});
    stage_round_changed(&t->net.stage);
    if (stage_graph_begin(&t->net.stage, STAGE_EVALUATE)) {
        stage_forward(&t->net.stage, false);
        stage_measure(&t->net.stage, t->sums, false);
        stage_graph_end(&t->net.stage, STAGE_EVALUATE);
    }
}

struct status trainer_evaluate_end(struct trainer *t, const struct batch_step *counts,
                                   struct trainer_result *result)
{
    trainer_share_sums(t);
    return trainer_read_results(t, counts, result);
}

struct status trainer_evaluate(struct trainer *t, const struct batch_step *batch,
                               struct trainer_result *result)
{
    trainer_evaluate_begin(t);
    for (int64_t i = 0; i < batch->n_micro; i++) {
        trainer_evaluate_batch(t, &batch->micro[i]);
    }
    return trainer_evaluate_end(t, batch, result);
}
