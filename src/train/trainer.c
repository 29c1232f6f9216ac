/* The order of a step, all of it queued on the device:
 *
 * 1. the numbers of the step: key of dropout, scalars of the update (trainer_numbers);
 * 2. zeros in the sums and in the gradients that are sums (trainer_clear);
 * 3. for each micro-batch: send, forward, heads with loss, backward (micro_step);
 * 4. norm of all gradients, update, weights to the ranks that share the update (trainer_run_update);
 * 5. the step's only wait, for the norm and the sums (read_results).
 *
 * Losses are divided by the counts of the global batch, and multiplied by the loss scale, before their
 * backward. So gradients of micro-batches and ranks are only added, and the update divides by the loss
 * scale. */
#include "core/rng.h"
#include "train/diagnose.h"
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

bool trainer_has_tied_part(const struct trainer *t)
{
    return !tensor_is_null(t->tied_part);
}

void trainer_add_tied(struct trainer *t)
{
    t->net.x.ops->add(&t->net.x, trainer_tied(t, t->grad), t->tied_part);
}

tensor trainer_own_gradients(const struct trainer *t)
{
    return t->config.shares_gradients ? t->grad : update_own(&t->update, t->grad);
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
    if (!t->config.shares_gradients) {
        t->net.x.ops->clear(&t->net.x, t->grad, t->added, t->n_added);
    }
}

/* Where no rank has the whole master: what passes read, as they read it. */
static void gather_copies(struct trainer *t, const struct comm *c)
{
    network_copy_vectors(&t->net);
    if (c != NULL) {
        update_gather_flat(&t->update, c, &t->net.x, t->net.working);
        comm_all_gather(c, &t->net.x, t->net.vectors, t->vector_bounds);
    }
}

void trainer_gather_weights(struct trainer *t, const struct comm *c)
{
    if (!network_has_master(&t->net)) {
        gather_copies(t, c);
        return;
    }
    update_gather(&t->update, c, &t->net.x, t->net.master, t->net.working);
}

/* The norm comes first: clipping needs it, and the update reads it on the device, without a wait. */
void trainer_run_update(struct trainer *t, const struct comm *c)
{
    exec_enter(&t->net.x, "optimizer", -1);
    struct exec *x = &t->net.x;
    struct optim_buffers b = buffers_of(t);
    if (t->config.counts_zeros) {
        update_zeros(&t->update, c, t->mesh, x, b.grad, tensor_slice(t->results, TRAINER_ZEROS, 1));
    }
    update_norm(&t->update, c, t->mesh, x, b.grad, t->norm);
    update_shard(&t->update, c, t->mesh, x, b, tensor_slice(t->results, 0, TRAINER_N_FINITE),
                 stage_scalars(&t->net.stage));
    if (t->config.measures_weights) {
        update_norm(&t->update, c, t->mesh, x, b.master, tensor_slice(t->results, TRAINER_WEIGHT_NORM, 1));
    }
    trainer_gather_weights(t, c);
    stage_advance_histories(&t->net.stage);
}

static double reciprocal(int64_t n)
{
    return n > 0 ? 1.0 / (double)n : 0.0;
}

void trainer_scale_losses(const struct trainer *t, struct stage_numbers *n, const struct batch_step *batch,
                          const struct batch *micro, bool mean_of_micro_batches)
{
    const struct model *m = t->config.net.model;
    double scale = t->loss_scale.value, share = reciprocal(batch->n_to_fill);
    for (int i = 0, loss = 0; i < m->n_sums; i++) {
        int labels = m->sums[i].labels;
        if (!m->sums[i].is_loss) {
            continue;
        }
        n->loss_scales[loss++] =
            scale * (mean_of_micro_batches ? share * reciprocal(batch_count_labels(micro, labels))
                                           : reciprocal(batch->n_labels[labels]));
    }
}

static struct stage_numbers numbers_of(const struct trainer *t, int64_t step)
{
    return (struct stage_numbers){.dropout_key =
                                      rng_key(rng_key(t->config.seed, KEY_DROPOUT), (uint64_t)step)};
}

/* The first micro-batch of a step has a recording of its own: it rounds the weights to fp8 and
 * assigns the gradients that are products, to which the others add. Ranks sum a bucket once the last
 * micro-batch has queued it, or every micro-batch where ranks share gradients; with a tree of blocks only
 * after the tree is summed. */
static void micro_step(struct trainer *t, const struct batch *micro, const struct stage_numbers *n,
                       bool first, bool last)
{
    enum stage_work work = first ? STAGE_TRAIN_FIRST : STAGE_TRAIN_NEXT;
    stage_begin(&t->net.stage, micro, n);
    tensor_log_begin(t->tensor_log, &(struct tensor_log_pass){micro, first, last, t->loss_scale.value});
    bool in_rooms = t->config.shares_gradients;
    t->net.stage.gradient_done = in_rooms || (last && t->tree.n_levels == 0) ? t->gradient_done : NULL;
    t->net.stage.gradient_done_context = t->gradient_done_context;
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
    tensor_log_end(t->tensor_log);
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

/* Until its update a step changes no weight and no moment. Only the largest magnitudes for fp8 have
 * been written, so these are forgotten. */
struct status trainer_abandon(struct trainer *t, struct trainer_result *result)
{
    stage_forget_histories(&t->net.stage);
    exec_synchronize(&t->net.x);
    *result = (struct trainer_result){.abandoned = true};
    return t->net.x.status;
}

/* The gradients of some micro-batches that are added to one another; `last`: none follow in this step. */
static void queue_block(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                        bool mean_of_micro_batches, bool last)
{
    struct exec *x = &t->net.x;
    int64_t n = batch_step_n_filled(batch);
    for (int64_t i = 0; i < n && !trainer_abandons(t); i++) {
        const struct batch *micro = batch_step_filled(batch, i);
        if (i > 0) {
            profile_micro_step(t->net.profile);
            profile_phase(t->net.profile, "forward");
        }
        trainer_scale_losses(t, numbers, batch, micro, mean_of_micro_batches);
        micro_step(t, micro, numbers, i == 0, last && i == n - 1);
    }
    if (n == 0) {
        x->ops->fill(x, t->grad, 0);
        stage_send_numbers(&t->net.stage, numbers);
    }
}

static void queue_tree(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                       bool mean_of_micro_batches)
{
    struct gradient_blocks blocks = t->config.blocks;
    for (int i = 0; i < blocks.n && !t->turn.abandoned; i++) {
        struct batch_step block = batch_step_part(batch, blocks.first + i, blocks.n_all);
        if (i > 0) {
            trainer_clear_added(t);
        }
        queue_block(t, &block, numbers, mean_of_micro_batches, i == blocks.n - 1);
        gradient_tree_add(&t->tree, &t->net.x, blocks, i, t->grad);
    }
}

void trainer_queue_gradients(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                             bool mean_of_micro_batches)
{
    CHECK(!t->config.shares_gradients, "nobody sums the gradients of micro-batches");
    int64_t n = batch_step_n_filled(batch);
    trainer_clear(t, n);
    if (n == 0 && trainer_abandons(t)) {
        return;
    }
    if (t->tree.n_levels > 0) {
        queue_tree(t, batch, numbers, mean_of_micro_batches);
    } else {
        queue_block(t, batch, numbers, mean_of_micro_batches, true);
    }
    profile_phase(t->net.profile, "optimizer");
}

void trainer_queue_micro(struct trainer *t, const struct batch_step *batch, int64_t k,
                         struct stage_numbers *numbers, bool mean_of_micro_batches)
{
    struct batch_step before = *batch;
    before.n_micro = k < batch->n_micro ? k : batch->n_micro;
    int64_t n = batch_step_n_filled(batch), n_before = batch_step_n_filled(&before);
    if (k == 0 && n == 0) { /* the update reads its numbers there */
        stage_send_numbers(&t->net.stage, numbers);
    }
    if (k >= batch->n_micro || batch->micro[k].n_sequences == 0) {
        return;
    }
    if (n_before > 0) {
        profile_micro_step(t->net.profile);
    }
    profile_phase(t->net.profile, "forward");
    gradient_rooms_begin(&t->rooms, &t->net.x);
    trainer_scale_losses(t, numbers, batch, &batch->micro[k], mean_of_micro_batches);
    micro_step(t, &batch->micro[k], numbers, n_before == 0, n_before == n - 1);
}

struct status trainer_passes(struct trainer *t, const struct batch_step *batch, int64_t step)
{
    struct stage_numbers n = numbers_of(t, step);
    trainer_scale_losses(t, &n, batch, batch->micro, false);
    micro_step(t, batch->micro, &n, true, true);
    exec_synchronize(&t->net.x);
    return t->net.x.status;
}

/* Waits for all earlier work. */
static struct status read_results(struct trainer *t, const struct batch_step *batch, struct trainer_result *r)
{
    const struct model *m = t->config.net.model;
    double results[TRAINER_N_RESULTS] = {0}, zeros;
    exec_copy_out(&t->net.x, results, t->results.data, sizeof results);
    zeros = results[TRAINER_ZEROS] * results[TRAINER_ZEROS];
    *r = (struct trainer_result){.n_sums = m->n_sums,
                                 .grad_norm = results[TRAINER_NORM] / t->loss_scale.value,
                                 .n_zeros = llround(zeros),
                                 .weight_norm = results[TRAINER_WEIGHT_NORM],
                                 .loss_scale = t->loss_scale.value};
    for (int i = 0; i < m->n_sums; i++) {
        r->sums[i] =
            (struct trainer_sum){&m->sums[i], results[TRAINER_SUMS + i], batch->n_labels[m->sums[i].labels]};
    }
    return t->net.x.status;
}

struct status trainer_gradients(struct trainer *t, const struct batch_step *batch, int64_t step,
                                bool mean_of_micro_batches, struct trainer_result *result)
{
    struct stage_numbers n = numbers_of(t, step);
    trainer_queue_gradients(t, batch, &n, mean_of_micro_batches);
    CHECK(t->update.n_ranks == 1, "the norm of a shard's gradients");
    update_norm(&t->update, NULL, NULL, &t->net.x, trainer_own_gradients(t), t->norm);
    return read_results(t, batch, result);
}

struct stage_numbers trainer_numbers(const struct trainer *t, int64_t step, int64_t update_number, double lr)
{
    struct stage_numbers n = numbers_of(t, step);
    tensor_log_step(t->tensor_log, step);
    optimizer_scalars(&t->config.optimizer, lr, update_number, 1 / t->loss_scale.value, n.scalars);
    return n;
}

struct status trainer_step(struct trainer *t, const struct batch_step *batch, int64_t step,
                           int64_t update_number, double lr, bool mean_of_micro_batches,
                           struct trainer_result *result)
{
    struct stage_numbers n = trainer_numbers(t, step, update_number, lr);
    profile_phase(t->net.profile, "forward");
    trainer_queue_gradients(t, batch, &n, mean_of_micro_batches);
    return t->turn.abandoned ? trainer_abandon(t, result) : trainer_update(t, NULL, batch, step, result);
}

struct status trainer_update(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                             int64_t step, struct trainer_result *result)
{
    CHECK(c == NULL ? t->update.n_ranks == 1 : c->size == t->update.n_ranks && c->rank == t->update.rank,
          "an update by shard %d of %d", t->update.rank, t->update.n_ranks);
    if (c != NULL || t->mesh != NULL) { /* calls between ranks are not recorded */
        trainer_run_update(t, c);
    } else if (stage_graph_begin(&t->net.stage, STAGE_UPDATE)) {
        trainer_run_update(t, NULL);
        stage_graph_end(&t->net.stage, STAGE_UPDATE);
    }
    t->net.version++;
    TRY(read_results(t, batch, result));
    if (isfinite(trainer_result_loss(result) + result->grad_norm)) {
        loss_scale_raise(&t->loss_scale);
        return status_ok();
    }
    result->skipped = 1;
    if (loss_scale_lower(&t->loss_scale)) {
        return status_ok();
    }
    if (c != NULL && !t->config.shares_gradients) { /* all ranks look at the same gradients */
        update_gather_flat(&t->update, c, &t->net.x, t->grad);
        TRY(t->net.x.status);
    }
    return diagnose_nonfinite(t, c, step, result);
}

void trainer_evaluate_begin(struct trainer *t)
{
    t->net.x.ops->fill(&t->net.x, t->results, 0);
}

void trainer_evaluate_batch(struct trainer *t, const struct batch *batch)
{
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
    return read_results(t, counts, result);
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
