#include "train/trainer.h"

#include "core/rng.h"
#include "dev/host_memory.h"
#include "dev/host_view.h"
#include "dev/queue.h"
#include "dist/pipeline.h"
#include "model/background_save.h"
#include "train/diagnose.h"
#include "watch/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Purposes of keys drawn from the run's seed. */
enum { KEY_DROPOUT = 0x64726f70 };

static bool has_working_copy(const struct trainer_config *c)
{
    return c->precision.dtype != dtype_of_vectors(c->precision.dtype);
}

/* On the first stage of a pipeline, whose last has the other reader of the parameter. */
static void carve_tied(struct trainer *t, struct arena *a)
{
    const struct model *m = t->config.model;
    if (m->tied != NULL && t->stage.first == 0 && t->stage.end < m->n_layers) {
        t->tied_part = arena_carve_1d(a, t->grad.dtype, param_count(param_table_find(&t->params, m->tied)));
    }
}

tensor trainer_tied(const struct trainer *t, tensor flat)
{
    const struct param *p = param_table_find(&t->params, t->config.model->tied);
    return tensor_slice(flat, p->offset, param_count(p));
}

void trainer_add_tied(struct trainer *t)
{
    t->x.ops->add(&t->x, trainer_tied(t, t->grad), t->tied_part);
}

/* Carves everything but the activations; the order is that of the plan's table. */
static void carve_state(struct trainer *t, struct arena *a)
{
    const struct trainer_config *c = &t->config;
    enum dtype vector = dtype_of_vectors(c->precision.dtype);
    int64_t n = t->params.n_elements;
    if (t->owner == NULL) {
        t->master = arena_carve_1d(a, vector, n);
        t->working = has_working_copy(c) ? arena_carve_1d(a, c->precision.dtype, n) : NULL_TENSOR;
    } else {
        t->master = t->owner->master;
        t->working = t->owner->working;
    }
    stage_carve_weights(&t->stage, a);
    t->plan.weight_bytes = a->used;
    if (c->training) {
        t->grad = arena_carve_1d(a, vector, n);
        carve_tied(t, a);
        t->plan.gradient_bytes = a->used - t->plan.weight_bytes;
        int64_t n_moments = t->update.shard.end - t->update.shard.begin;
        t->exp_avg = arena_carve_1d(a, vector, n_moments);
        t->exp_avg_sq = arena_carve_1d(a, vector, n_moments);
        update_carve(&t->update, a);
        stage_carve_histories(&t->stage, a);
        t->plan.optimizer_bytes = a->used - t->plan.weight_bytes - t->plan.gradient_bytes;
    }
    t->results = arena_carve_1d(a, DTYPE_F64, 1 + MODEL_MOST_SUMS);
    t->norm = tensor_slice(t->results, 0, 1);
    t->sums = tensor_slice(t->results, 1, MODEL_MOST_SUMS);
}

static tensor matrices_of(const struct trainer *t)
{
    return tensor_is_null(t->working) ? t->master : t->working;
}

static struct optim_buffers buffers_of(const struct trainer *t)
{
    return (struct optim_buffers){t->master, t->working, t->grad, t->exp_avg, t->exp_avg_sq};
}

static struct loss_scale loss_scale_of_config(const struct trainer_config *c)
{
    if (c->precision.dtype != DTYPE_F16) {
        return loss_scale_of(1, 1);
    }
    return loss_scale_of(c->loss_scale, c->first_loss_scale > 0 ? c->first_loss_scale : LOSS_SCALE_FIRST);
}

static enum fp8_factors fp8_factors_of(const struct trainer_config *c)
{
    if (!c->precision.fp8) {
        return FP8_NONE;
    }
    if (!c->device->computes_in_fp8) {
        return FP8_IN_BF16;
    }
    return c->training ? FP8_ROWS_AND_COLUMNS : FP8_ROWS;
}

static struct status find_added(struct trainer *t)
{
    t->added = calloc((size_t)t->params.n, sizeof *t->added);
    if (t->added == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the spans of %d parameters", t->params.n);
    }
    for (int i = 0; i < t->params.n; i++) {
        const struct param *p = &t->params.params[i];
        if (!p->by_product) {
            t->added[t->n_added++] = (struct optim_span){.offset = p->offset, .n = param_count(p)};
        }
    }
    return status_ok();
}

/* The input with the first stage, the heads with the last. */
static struct param_shard layers_of_stage(const struct trainer *t, int stage, int n_stages)
{
    int64_t n = t->config.model->n_layers;
    int64_t first = stage == 0 ? MODEL_INPUT_LAYER : pipeline_first_layer(n, stage, n_stages);
    int64_t end = stage == n_stages - 1 ? n + 1 : pipeline_first_layer(n, stage + 1, n_stages);
    struct param_shard s;
    param_table_range(&t->params, first, end, &s.begin, &s.end);
    return s;
}

/* Which elements this rank updates. */
static struct status share_update(struct trainer *t)
{
    const struct trainer_config *c = &t->config;
    int n = c->n_shards > 0 ? c->n_shards : 1;
    int64_t *bounds = malloc(((size_t)n + 1) * sizeof *bounds);
    if (bounds == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the shards of %d ranks", n);
    }
    for (int r = 0; r < n; r++) {
        struct param_shard s =
            c->shards_are_stages ? layers_of_stage(t, r, n) : param_shard_of(&t->params, r, n);
        bounds[r] = s.begin;
        bounds[r + 1] = s.end;
    }
    struct status s = update_init(&t->update, &c->optimizer, &t->params, bounds, c->shard, n);
    free(bounds);
    return s;
}

/* The parts that planning and running share: table, spans, views, stage.  Memory is carved by the caller. */
static struct status declare(struct trainer *t, const struct trainer_config *config,
                             const struct trainer *owner)
{
    *t = (struct trainer){.config = *config, .owner = owner, .version = 1};
    t->x = (struct exec){.device = config->device,
                         .ops = config->ops,
                         .layer_index = -1,
                         .allow_tf32 = config->precision.allow_tf32};
    TRY(config->model->type->declare(config->model, &t->params));
    TRY(share_update(t));
    TRY(find_added(t));
    t->plan.n_params = param_table_count(&t->params);
    t->loss_scale = loss_scale_of_config(config);
    t->stage = (struct stage){
        .x = &t->x,
        .model = config->model,
        .learns = config->training,
        .dtype = config->precision.dtype,
        .fp8 = fp8_factors_of(config),
        .recompute = config->recompute,
        .limits = config->limits,
        .first = config->first_layer,
        .end = config->end_layer > 0 ? config->end_layer : config->model->n_layers,
        .n_slots = config->n_slots > 0 ? config->n_slots : 1,
        .version = owner == NULL ? &t->version : &owner->version,
    };
    return stage_init(&t->stage);
}

static struct status view_weights(struct trainer *t)
{
    const struct param_table *layout = t->owner == NULL ? &t->params : &t->owner->params;
    tensor matrices = matrices_of(t), biases = t->config.device->takes_rounded_biases ? matrices : t->master;
    const struct model *m = t->config.model;
    TRY(m->type->create_weights(m, &t->weights, layout, matrices, t->master, biases));
    if (t->config.training) {
        TRY(m->type->create_weights(m, &t->grads, &t->params, t->grad, t->grad, t->grad));
    }
    t->stage.weights = t->weights;
    t->stage.grads = t->grads;
    return status_ok();
}

/* Makes ready the gradients that the first micro-batch adds to; products assign the others. */
static void clear_added(struct trainer *t)
{
    t->x.ops->clear(&t->x, t->grad, t->added, t->n_added);
}

void trainer_gather_weights(struct trainer *t, const struct comm *c)
{
    update_gather(&t->update, c, &t->x, t->master, t->working);
}

/* c: NULL, or of the ranks that share it. */
static void update(struct trainer *t, const struct comm *c)
{
    exec_enter(&t->x, "optimizer", -1);
    update_norm(&t->update, c, &t->x, t->grad, t->norm);
    update_shard(&t->update, c, &t->x, buffers_of(t), t->results, t->stage.slot->block.scalars);
    if (!t->config.shards_are_stages) {
        trainer_gather_weights(t, c);
    }
    stage_advance_histories(&t->stage);
}

/* Runs a whole step of one micro-batch of the largest size, on the plan table: this checks and counts it. */
static void plan_micro_step(struct trainer *t)
{
    stage_carve_largest(&t->stage);
    stage_round_weights(&t->stage);
    stage_forward(&t->stage, t->config.training);
    stage_loss(&t->stage, t->sums);
    if (t->config.training) {
        stage_backward(&t->stage, true, false);
    }
    if (!tensor_is_null(t->tied_part)) {
        trainer_add_tied(t);
    }
    t->plan.activation_bytes = stage_bytes(&t->stage);
    t->plan.micro_flops = t->x.totals.flops;
    t->plan.micro_bytes = t->x.totals.bytes;
    if (t->config.training) {
        update(t, NULL);
    }
}

static struct status check_fp8(const struct trainer_config *c)
{
    int64_t h = c->model->hidden_size, f = c->model->feed_forward_size;
    if (c->precision.fp8 && (h % OPS_FP8_MULTIPLE != 0 || f % OPS_FP8_MULTIPLE != 0)) {
        return status_error(STATUS_USAGE,
                            "products in fp8 have dims that are multiples of %d, but hidden_size is %lld and "
                            "intermediate_size %lld: leave out --fp8",
                            OPS_FP8_MULTIPLE, (long long)h, (long long)f);
    }
    return status_ok();
}

/* A trainer whose tensors have shapes and no memory, of which `ops` computes nothing. */
static struct status declare_planned(struct trainer *t, struct arena *state,
                                     const struct trainer_config *config, const struct ops *ops,
                                     const struct trainer *owner)
{
    struct trainer_config planned = *config;
    planned.ops = ops;
    TRY(declare(t, &planned, owner));
    TRY(check_fp8(config));
    *state = arena_measuring();
    carve_state(t, state);
    TRY(view_weights(t));
    stage_share_arena(&t->stage, arena_measuring());
    return status_ok();
}

static struct status measure(struct trainer *t, const struct trainer_config *config,
                             const struct trainer *owner)
{
    struct arena state;
    TRY(declare_planned(t, &state, config, &ops_plan, owner));
    plan_micro_step(t);
    TRY(t->x.status);
    t->plan.workspace_bytes = t->x.totals.workspace_bytes;
    t->plan.beside_bytes = t->x.totals.beside_bytes;
    arena_carve(&state, t->plan.workspace_bytes); /* as trainer_init will */
    arena_carve(&state, t->plan.beside_bytes);
    arena_carve(&state, t->plan.activation_bytes);
    t->plan.saving_bytes =
        config->saving ? background_save_bytes(&t->params, t->master.dtype) + tensor_bytes(t->stage.histories)
                       : 0;
    t->plan.library_bytes =
        config->device->is_host
            ? host_memory_library_bytes(config->model->hidden_size, config->model->feed_forward_size,
                                        config->precision.dtype == DTYPE_F32)
            : config->device->overhead_bytes;
    t->plan.total_bytes = state.used + t->plan.saving_bytes + t->plan.library_bytes;
    return status_ok();
}

/* The ops of trainer_step, or of stage_infer. */
static struct status count_over(struct trainer *t, const struct trainer_config *config, void *context,
                                const struct ops *ops, const struct batch *batch, bool whole_step)
{
    static const char key[] = "a count";
    struct arena state;
    TRY(declare_planned(t, &state, config, ops, NULL));
    struct exec *x = &t->x;
    x->context = context;
    stage_begin(&t->stage, batch, &(struct stage_numbers){0});
    if (whole_step) {
        x->ops->fill(x, t->results, 0);
        clear_added(t);
    }
    queue_graph_begin(x, key, sizeof key);
    if (config->training) { /* else they are rounded once for all batches */
        stage_round_weights(&t->stage);
    }
    stage_forward(&t->stage, config->training);
    if (config->training) {
        stage_loss(&t->stage, t->sums);
        stage_backward(&t->stage, true, false);
    }
    queue_graph_end(x);
    if (whole_step) {
        update(t, NULL);
    }
    t->x.context = NULL; /* the caller's */
    return x->status;
}

struct status trainer_count(const struct trainer_config *config, void *context, const struct ops *ops,
                            const struct batch *batch, bool whole_step)
{
    struct trainer t;
    CHECK(config->training || !whole_step, "a step without learning");
    struct status s = count_over(&t, config, context, ops, batch, whole_step);
    trainer_fini(&t);
    return s;
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

/* Where addresses are limited, those that the libraries are going to take must be left. */
static struct status leave_addresses(const struct trainer_plan *plan, const struct device *device)
{
    size_t available = device->free_bytes();
    if (device->is_host && own_bytes(plan) > available) {
        return status_error(
            STATUS_MEMORY,
            "the model needs %.2f GiB, but only %.2f GiB of memory are free beside what libraries "
            "and threads take (free memory, the cgroup's limit, `ulimit -v`)",
            (double)own_bytes(plan) / 0x1p30, (double)available / 0x1p30);
    }
    return status_ok();
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
        s = leave_addresses(&plan, config->device);
    }
    if (!failed(s)) {
        s = config->device->allocate(&t->memory, own_bytes(&plan), "the model");
    }
    if (!failed(s)) {
        struct arena all = arena_over(t->memory, own_bytes(&plan));
        carve_state(t, &all);
        t->x.workspace = arena_carve(&all, plan.workspace_bytes);
        t->x.workspace_bytes = plan.workspace_bytes;
        t->x.beside_workspace = arena_carve(&all, plan.beside_bytes);
        t->x.beside_bytes = plan.beside_bytes;
        stage_share_arena(&t->stage,
                          arena_over(arena_carve(&all, plan.activation_bytes), plan.activation_bytes));
        t->plan = plan;
        s = view_weights(t);
        stage_reserve(&t->stage);
    }
    if (!failed(s)) {
        s = t->x.status;
    }
    if (failed(s)) {
        trainer_fini(t);
    }
    return s;
}

struct status trainer_initialize(struct trainer *t)
{
    struct host_view master;
    TRY(host_view_open_blank(&master, &t->x, t->master));
    param_table_initialize(master.host, &t->params, t->config.seed);
    host_view_commit(&master, &t->x, t->master);
    host_view_close(&master);
    trainer_weights_changed(t);
    return t->x.status;
}

struct status trainer_init(struct trainer *t, const struct trainer_config *config)
{
    TRY(init_over(t, config, NULL));
    return config->training ? trainer_initialize(t) : status_ok(); /* elsewhere they are read from files */
}

struct status trainer_init_shared(struct trainer *t, const struct trainer_config *config,
                                  const struct trainer *owner)
{
    CHECK(!config->training && config->precision.dtype == owner->config.precision.dtype,
          "the weights of another are read only");
    return init_over(t, config, owner);
}

void trainer_fini(struct trainer *t)
{
    stage_fini(&t->stage);
    if (t->config.model != NULL) {
        t->config.model->type->destroy_weights(t->weights);
        t->config.model->type->destroy_weights(t->grads);
    }
    param_table_fini(&t->params);
    update_fini(&t->update);
    free(t->added);
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
    t->version++;
    if (!tensor_is_null(t->working)) {
        t->x.ops->cast(&t->x, t->working, t->master);
    }
}

static double reciprocal(int64_t n)
{
    return n > 0 ? 1.0 / (double)n : 0.0;
}

void trainer_scale_losses(const struct trainer *t, struct stage_numbers *n, const struct batch_step *batch,
                          const struct batch *micro, bool mean_of_micro_batches)
{
    const struct model *m = t->config.model;
    double scale = t->loss_scale.value, share = reciprocal(batch->n_all_micro);
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

static void micro_step(struct trainer *t, const struct batch *micro, const struct stage_numbers *n,
                       bool first, bool last)
{
    stage_begin(&t->stage, micro, n);
    t->stage.gradient_done = last ? t->gradient_done : NULL;
    t->stage.gradient_done_context = t->gradient_done_context;
    if (stage_graph_begin(&t->stage, first ? STAGE_TRAIN_FIRST : STAGE_TRAIN_NEXT)) {
        if (first) {
            stage_round_weights(&t->stage);
        }
        stage_forward(&t->stage, true);
        stage_loss(&t->stage, t->sums);
        profile_phase(t->profile, "backward");
        stage_backward(&t->stage, true, !first);
        queue_graph_end(&t->x);
    }
    t->stage.gradient_done = NULL;
    t->stage.rounded = failed(t->x.status) ? 0 : t->version;
}

void trainer_clear(struct trainer *t)
{
    exec_enter(&t->x, "gradients", -1);
    t->x.ops->fill(&t->x, t->results, 0);
    clear_added(t);
}

void trainer_queue_gradients(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                             bool mean_of_micro_batches)
{
    struct exec *x = &t->x;
    int64_t n = batch_step_n_filled(batch);
    trainer_clear(t);
    for (int64_t i = 0; i < n; i++) {
        const struct batch *micro = batch_step_filled(batch, i);
        if (i > 0) {
            profile_micro_step(t->profile);
            profile_phase(t->profile, "forward");
        }
        trainer_scale_losses(t, numbers, batch, micro, mean_of_micro_batches);
        micro_step(t, micro, numbers, i == 0, i == n - 1);
    }
    if (n == 0) {
        x->ops->fill(x, t->grad, 0);
        stage_batch_send(&t->stage.slot->block, x, NULL, numbers);
    }
    profile_phase(t->profile, "optimizer");
}

struct status trainer_passes(struct trainer *t, const struct batch_step *batch, int64_t step)
{
    struct stage_numbers n = numbers_of(t, step);
    trainer_scale_losses(t, &n, batch, batch->micro, false);
    micro_step(t, batch->micro, &n, true, true);
    exec_synchronize(&t->x);
    return t->x.status;
}

/* Waits for everything before. */
static struct status read_results(struct trainer *t, const struct batch_step *batch, struct trainer_result *r)
{
    const struct model *m = t->config.model;
    double results[1 + MODEL_MOST_SUMS] = {0};
    exec_copy_out(&t->x, results, t->results.data, sizeof results);
    *r = (struct trainer_result){.n_sums = m->n_sums,
                                 .grad_norm = results[0] / t->loss_scale.value,
                                 .loss_scale = t->loss_scale.value};
    for (int i = 0; i < m->n_sums; i++) {
        r->sums[i] = (struct trainer_sum){&m->sums[i], results[1 + i], batch->n_labels[m->sums[i].labels]};
    }
    return t->x.status;
}

double trainer_sum_mean(const struct trainer_sum *sum)
{
    return sum->sum * reciprocal(sum->count);
}

double trainer_result_mean(const struct trainer_result *r, const char *name)
{
    int i = 0;
    while (i < r->n_sums && strcmp(r->sums[i].of->name, name) != 0) {
        i++;
    }
    CHECK(i < r->n_sums, "no %s in what a step came to", name);
    return trainer_sum_mean(&r->sums[i]);
}

double trainer_result_loss(const struct trainer_result *r)
{
    double loss = 0;
    for (int i = 0; i < r->n_sums; i++) {
        loss += r->sums[i].of->is_loss ? trainer_sum_mean(&r->sums[i]) : 0;
    }
    return loss;
}

struct status trainer_gradients(struct trainer *t, const struct batch_step *batch, int64_t step,
                                bool mean_of_micro_batches, struct trainer_result *result)
{
    struct stage_numbers n = numbers_of(t, step);
    trainer_queue_gradients(t, batch, &n, mean_of_micro_batches);
    CHECK(t->update.n_ranks == 1, "the norm of a shard's gradients");
    update_norm(&t->update, NULL, &t->x, t->grad, t->norm);
    return read_results(t, batch, result);
}

struct stage_numbers trainer_numbers(const struct trainer *t, int64_t step, int64_t update_number, double lr)
{
    struct stage_numbers n = numbers_of(t, step);
    optimizer_scalars(&t->config.optimizer, lr, update_number, 1 / t->loss_scale.value, n.scalars);
    return n;
}

struct status trainer_step(struct trainer *t, const struct batch_step *batch, int64_t step,
                           int64_t update_number, double lr, bool mean_of_micro_batches,
                           struct trainer_result *result)
{
    struct stage_numbers n = trainer_numbers(t, step, update_number, lr);
    profile_phase(t->profile, "forward");
    trainer_queue_gradients(t, batch, &n, mean_of_micro_batches);
    return trainer_update(t, NULL, batch, step, result);
}

struct status trainer_update(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                             int64_t step, struct trainer_result *result)
{
    CHECK(c == NULL ? t->update.n_ranks == 1 : c->size == t->update.n_ranks && c->rank == t->update.rank,
          "an update by shard %d of %d", t->update.rank, t->update.n_ranks);
    if (c != NULL) { /* calls between ranks are not recorded */
        update(t, c);
    } else if (stage_graph_begin(&t->stage, STAGE_UPDATE)) {
        update(t, NULL);
        queue_graph_end(&t->x);
    }
    t->version++;
    TRY(read_results(t, batch, result));
    if (isfinite(trainer_result_loss(result) + result->grad_norm)) {
        loss_scale_raise(&t->loss_scale);
        return status_ok();
    }
    result->skipped = 1;
    return loss_scale_lower(&t->loss_scale) ? status_ok() : diagnose_nonfinite(t, step, result);
}

struct status trainer_evaluate(struct trainer *t, const struct batch_step *batch,
                               struct trainer_result *result)
{
    t->x.ops->fill(&t->x, t->results, 0);
    for (int64_t i = 0; i < batch->n_micro; i++) {
        stage_begin(&t->stage, &batch->micro[i], &(struct stage_numbers){0});
        stage_round_changed(&t->stage);
        if (stage_graph_begin(&t->stage, STAGE_EVALUATE)) {
            stage_forward(&t->stage, false);
            stage_loss(&t->stage, t->sums);
            queue_graph_end(&t->x);
        }
    }
    return read_results(t, batch, result);
}
