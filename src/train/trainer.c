#include "train/trainer.h"

#include "core/rng.h"
#include "dev/host_view.h"
#include "train/background_save.h"
#include "train/diagnose.h"
#include "train/profile.h"

#include <math.h>
#include <stdlib.h>

/* Purposes of keys drawn from the run's seed. */
enum { KEY_DROPOUT = 0x64726f70 };

static bool has_working_copy(const struct trainer_config *c)
{
    return c->dtype != dtype_of_vectors(c->dtype);
}

/* Carves everything but the activations; the order is that of the plan's table. */
static void carve_state(struct trainer *t, struct arena *a)
{
    const struct trainer_config *c = &t->config;
    enum dtype vector = dtype_of_vectors(c->dtype);
    int64_t n = t->params.n_elements;
    if (t->owner == NULL) {
        t->master = arena_carve_1d(a, vector, n);
        t->working = has_working_copy(c) ? arena_carve_1d(a, c->dtype, n) : NULL_TENSOR;
    } else {
        t->master = t->owner->master;
        t->working = t->owner->working;
    }
    t->plan.weight_bytes = a->used;
    if (c->training) {
        t->grad = arena_carve_1d(a, vector, n);
        t->plan.gradient_bytes = a->used - t->plan.weight_bytes;
        t->exp_avg = arena_carve_1d(a, vector, n);
        t->exp_avg_sq = arena_carve_1d(a, vector, n);
        t->plan.optimizer_bytes = a->used - t->plan.weight_bytes - t->plan.gradient_bytes;
    }
    t->metrics = arena_carve_1d(a, DTYPE_F64, BERT_N_METRICS);
    t->norm = arena_carve_1d(a, DTYPE_F64, 1);
    t->scalars = arena_carve_1d(a, DTYPE_F64, OPTIM_N_SCALARS);
}

static tensor matrices_of(const struct trainer *t)
{
    return tensor_is_null(t->working) ? t->master : t->working;
}

static struct optim_buffers buffers_of(const struct trainer *t)
{
    return (struct optim_buffers){t->master, t->working, t->grad, t->exp_avg, t->exp_avg_sq};
}

/* The parts that planning and running share: table, spans, views, stage.  Memory is carved by the caller. */
static struct status declare(struct trainer *t, const struct trainer_config *config,
                             const struct trainer *owner)
{
    *t = (struct trainer){.config = *config, .owner = owner};
    t->x = (struct exec){
        .device = config->device, .ops = config->ops, .layer_index = -1, .allow_tf32 = config->allow_tf32};
    TRY(bert_declare(&t->params, &t->config.model, t->config.task));
    t->spans = optimizer_spans(&config->optimizer, &t->params);
    if (t->spans == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the spans of %d parameters", t->params.n);
    }
    t->plan.n_params = param_table_count(&t->params);
    t->stage = (struct stage){
        .x = &t->x,
        .config = &t->config.model,
        .task = t->config.task,
        .weights = &t->weights,
        .grads = config->training ? &t->grads : NULL,
        .dtype = config->dtype,
        .recompute = config->recompute,
    };
    return stage_init(&t->stage);
}

static struct status view_weights(struct trainer *t)
{
    const struct param_table *layout = t->owner == NULL ? &t->params : &t->owner->params;
    TRY(bert_weights_init(&t->weights, layout, &t->config.model, t->config.task, matrices_of(t), t->master));
    if (t->config.training) {
        TRY(bert_weights_init(&t->grads, &t->params, &t->config.model, t->config.task, t->grad, t->grad));
    }
    return status_ok();
}

/* Runs a whole step of one micro-batch; on the plan table this checks and counts it. */
static void run_largest_micro_step(struct trainer *t)
{
    struct bert_batch largest = stage_largest_batch(t->config.limits);
    stage_forward(&t->stage, &largest, t->config.training);
    stage_loss(&t->stage, t->metrics, (struct bert_loss_scale){1, 1, 1});
    if (t->config.training) {
        stage_backward(&t->stage, true);
    }
    t->plan.micro_flops = t->x.totals.flops;
    t->plan.micro_bytes = t->x.totals.bytes;
    if (t->config.training) {
        t->x.ops->global_norm(&t->x, t->norm, t->grad, t->spans, t->params.n);
        optimizer_update(&t->x, &t->config.optimizer, buffers_of(t), t->spans, t->params.n, t->norm,
                         t->scalars);
    }
}

static struct status measure(struct trainer *t, const struct trainer_config *config,
                             const struct trainer *owner)
{
    struct trainer_config planned = *config;
    planned.ops = &ops_plan;
    TRY(declare(t, &planned, owner));
    struct arena state = arena_measuring();
    carve_state(t, &state);
    TRY(view_weights(t));
    t->stage.arena = arena_measuring();
    run_largest_micro_step(t);
    TRY(t->x.status);
    t->plan.activation_bytes = stage_bytes(&t->stage, config->limits);
    t->plan.workspace_bytes = t->x.totals.workspace_bytes;
    arena_carve(&state, t->plan.workspace_bytes); /* as trainer_init will */
    arena_carve(&state, t->plan.activation_bytes);
    t->plan.saving_bytes = config->saving ? background_save_bytes(&t->params, t->master.dtype) : 0;
    t->plan.library_bytes = config->device->overhead_bytes;
    t->plan.total_bytes = state.used + t->plan.saving_bytes + t->plan.library_bytes;
    return status_ok();
}

static struct status plan_over(struct trainer_plan *plan, const struct trainer_config *config,
                               const struct trainer *owner)
{
    struct trainer t;
    struct status s = measure(&t, config, owner);
    *plan = t.plan;
    trainer_fini(&t);
    return s;
}

struct status trainer_plan(struct trainer_plan *plan, const struct trainer_config *config)
{
    return plan_over(plan, config, NULL);
}

/* What the trainer itself takes. */
static size_t own_bytes(const struct trainer_plan *plan)
{
    return plan->total_bytes - plan->saving_bytes - plan->library_bytes;
}

static struct status init_over(struct trainer *t, const struct trainer_config *config,
                               const struct trainer *owner)
{
    struct trainer_plan plan;
    *t = (struct trainer){0};
    TRY(plan_over(&plan, config, owner));
    struct status s = declare(t, config, owner);
    t->plan = plan;
    if (!failed(s)) {
        s = config->device->open(&t->x.context);
    }
    if (!failed(s)) {
        s = config->device->allocate(&t->memory, own_bytes(&plan), "the model");
    }
    if (!failed(s)) {
        struct arena all = arena_over(t->memory, own_bytes(&plan));
        carve_state(t, &all);
        t->x.workspace = arena_carve(&all, plan.workspace_bytes);
        t->x.workspace_bytes = plan.workspace_bytes;
        t->stage.arena = arena_over(arena_carve(&all, plan.activation_bytes), plan.activation_bytes);
        t->plan = plan;
        s = view_weights(t);
    }
    if (failed(s)) {
        trainer_fini(t);
    }
    return s;
}

static struct status initialize_weights(struct trainer *t)
{
    struct host_view master;
    TRY(host_view_open_blank(&master, &t->x, t->master));
    bert_initialize(master.host, &t->params, t->config.seed);
    host_view_commit(&master, &t->x, t->master);
    host_view_close(&master);
    trainer_weights_changed(t);
    return t->x.status;
}

struct status trainer_init(struct trainer *t, const struct trainer_config *config)
{
    TRY(init_over(t, config, NULL));
    return config->training ? initialize_weights(t) : status_ok(); /* elsewhere they are read from files */
}

struct status trainer_init_shared(struct trainer *t, const struct trainer_config *config,
                                  const struct trainer *owner)
{
    CHECK(!config->training && config->dtype == owner->config.dtype, "the weights of another are read only");
    return init_over(t, config, owner);
}

void trainer_fini(struct trainer *t)
{
    stage_fini(&t->stage);
    bert_weights_fini(&t->weights);
    bert_weights_fini(&t->grads);
    param_table_fini(&t->params);
    free(t->spans);
    if (t->memory != NULL) {
        t->config.device->release(t->memory, own_bytes(&t->plan));
    }
    if (t->x.context != NULL) {
        t->config.device->close(t->x.context);
    }
    *t = (struct trainer){0};
}

void trainer_weights_changed(struct trainer *t)
{
    if (!tensor_is_null(t->working)) {
        t->x.ops->cast(&t->x, t->working, t->master);
    }
}

static double reciprocal(int64_t n)
{
    return n > 0 ? 1.0 / (double)n : 0.0;
}

/* What each label's loss is multiplied by. */
static struct bert_loss_scale loss_scale(const struct bert_step *batch, const struct bert_batch *micro,
                                         bool mean_of_micro_batches)
{
    if (!mean_of_micro_batches) {
        return (struct bert_loss_scale){reciprocal(batch->n_masked), reciprocal(batch->n_nsp),
                                        reciprocal(2 * batch->n_spans)};
    }
    int64_t n_nsp = 0, n_spans = 0;
    for (int64_t i = 0; i < micro->n_sequences; i++) {
        n_nsp += micro->nsp_labels[i] >= 0;
        n_spans += micro->span_labels[2 * i] >= 0;
    }
    double share = reciprocal(batch->n_micro);
    return (struct bert_loss_scale){share * reciprocal(micro->n_real_masked), share * reciprocal(n_nsp),
                                    share * reciprocal(2 * n_spans)};
}

static void read_metrics(struct trainer *t, const struct bert_step *batch, struct trainer_result *r)
{
    double sums[BERT_N_METRICS] = {0};
    exec_copy_out(&t->x, sums, t->metrics.data, sizeof sums);
    *r = (struct trainer_result){
        .mlm_loss = sums[BERT_MLM_LOSS] * reciprocal(batch->n_masked),
        .mlm_accuracy = sums[BERT_MLM_CORRECT] * reciprocal(batch->n_masked),
        .nsp_loss = sums[BERT_NSP_LOSS] * reciprocal(batch->n_nsp),
        .nsp_accuracy = sums[BERT_NSP_CORRECT] * reciprocal(batch->n_nsp),
        .span_loss = sums[BERT_SPAN_LOSS] * reciprocal(2 * batch->n_spans),
        .span_accuracy = sums[BERT_SPAN_CORRECT] * reciprocal(2 * batch->n_spans),
    };
}

struct status trainer_gradients(struct trainer *t, const struct bert_step *batch, int64_t step,
                                bool mean_of_micro_batches, struct trainer_result *result)
{
    struct exec *x = &t->x;
    x->dropout_key = rng_key(rng_key(t->config.seed, KEY_DROPOUT), (uint64_t)step);
    profile_phase(t->profile, "forward");
    exec_enter(x, "gradients", -1);
    x->ops->fill(x, t->metrics, 0);
    x->ops->fill(x, t->grad, 0);
    for (int64_t i = 0; i < batch->n_micro; i++) {
        if (batch->micro[i].n_sequences == 0) { /* the end of an epoch */
            continue;
        }
        if (i > 0) {
            profile_micro_step(t->profile);
            profile_phase(t->profile, "forward");
        }
        stage_forward(&t->stage, &batch->micro[i], true);
        stage_loss(&t->stage, t->metrics, loss_scale(batch, &batch->micro[i], mean_of_micro_batches));
        profile_phase(t->profile, "backward");
        stage_backward(&t->stage, true);
    }
    profile_phase(t->profile, "optimizer");
    exec_enter(x, "optimizer", -1);
    x->ops->global_norm(x, t->norm, t->grad, t->spans, t->params.n);
    TRY(x->status);
    read_metrics(t, batch, result);
    exec_copy_out(x, &result->grad_norm, t->norm.data, sizeof result->grad_norm);
    return x->status;
}

struct status trainer_step(struct trainer *t, const struct bert_step *batch, int64_t step, int64_t update,
                           double lr, bool mean_of_micro_batches, struct trainer_result *result)
{
    TRY(trainer_gradients(t, batch, step, mean_of_micro_batches, result));
    if (!isfinite(result->mlm_loss + result->nsp_loss + result->span_loss + result->grad_norm)) {
        return diagnose_nonfinite(t, step, result);
    }
    double scalars[OPTIM_N_SCALARS];
    optimizer_scalars(&t->config.optimizer, lr, update, scalars);
    exec_copy_in(&t->x, t->scalars.data, scalars, sizeof scalars);
    optimizer_update(&t->x, &t->config.optimizer, buffers_of(t), t->spans, t->params.n, t->norm, t->scalars);
    return t->x.status;
}

struct status trainer_evaluate(struct trainer *t, const struct bert_step *batch,
                               struct trainer_result *result)
{
    t->x.ops->fill(&t->x, t->metrics, 0);
    for (int64_t i = 0; i < batch->n_micro; i++) {
        stage_forward(&t->stage, &batch->micro[i], false);
        stage_loss(&t->stage, t->metrics, (struct bert_loss_scale){0, 0, 0});
    }
    TRY(t->x.status);
    read_metrics(t, batch, result);
    return status_ok();
}
