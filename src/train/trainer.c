#include "train/trainer.h"

#include "core/rng.h"
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

/* On the first stage of a pipeline, if the last stage reads the parameter too. */
static void carve_tied(struct trainer *t, struct arena *a)
{
    const struct model *m = t->config.model;
    if (m->tied != NULL && t->net.stage.first == 0 && t->net.stage.end < m->n_layers) {
        t->tied_part =
            arena_carve_1d(a, t->grad.dtype, param_count(param_table_find(&t->net.params, m->tied)));
    }
}

tensor trainer_tied(const struct trainer *t, tensor flat)
{
    const struct param *p = param_table_find(&t->net.params, t->config.model->tied);
    return tensor_slice(flat, p->offset, param_count(p));
}

void trainer_add_tied(struct trainer *t)
{
    t->net.x.ops->add(&t->net.x, trainer_tied(t, t->grad), t->tied_part);
}

static void carve_gradients(struct trainer *t, struct arena *a)
{
    enum dtype vector = dtype_of_vectors(t->config.precision.dtype);
    int64_t n = t->net.params.n_elements;
    if (t->config.shares_gradients) {
        n = t->update.shard.end - t->update.shard.begin;
        t->grad = arena_carve_1d(a, vector, n);
        gradient_rooms_carve(&t->rooms, a, vector);
        gradient_tree_carve(&t->tree, a, t->config.blocks, vector, n);
        return;
    }
    t->grad = arena_carve_1d(a, vector, n);
    carve_tied(t, a);
    gradient_tree_carve(&t->tree, a, t->config.blocks, vector, n);
}

/* Carves what a trainer has besides its network's weights, in the order of the plan's table. */
static void carve_state(struct trainer *t, struct arena *a)
{
    const struct trainer_config *c = &t->config;
    enum dtype vector = dtype_of_vectors(c->precision.dtype);
    size_t before = a->used;
    t->plan.weight_bytes = t->net.plan.weight_bytes;
    if (c->training) {
        int64_t n_moments = t->update.shard.end - t->update.shard.begin;
        carve_gradients(t, a);
        t->plan.gradient_bytes = a->used - before;
        t->exp_avg = arena_carve_1d(a, vector, n_moments);
        t->exp_avg_sq = arena_carve_1d(a, vector, n_moments);
        update_carve(&t->update, a);
        stage_carve_histories(&t->net.stage, a);
        t->plan.optimizer_bytes = a->used - before - t->plan.gradient_bytes;
    }
    t->results = arena_carve_1d(a, DTYPE_F64, 1 + MODEL_MOST_SUMS);
    t->norm = tensor_slice(t->results, 0, 1);
    t->sums = tensor_slice(t->results, 1, MODEL_MOST_SUMS);
}

/* The gradients that this rank updates by. */
static tensor own_gradients(const struct trainer *t)
{
    return t->config.shares_gradients ? t->grad : update_own(&t->update, t->grad);
}

static struct optim_buffers buffers_of(const struct trainer *t)
{
    return (struct optim_buffers){t->net.master, t->net.working, own_gradients(t), t->exp_avg, t->exp_avg_sq};
}

static struct loss_scale loss_scale_of_config(const struct trainer_config *c)
{
    if (c->precision.dtype != DTYPE_F16) {
        return loss_scale_of(1, 1);
    }
    return loss_scale_of(c->loss_scale, c->first_loss_scale > 0 ? c->first_loss_scale : LOSS_SCALE_FIRST);
}

static struct status find_added(struct trainer *t)
{
    t->added = calloc((size_t)t->net.params.n, sizeof *t->added);
    if (t->added == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the spans of %d parameters", t->net.params.n);
    }
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i];
        if (!p->by_product || p->rate == 0) { /* a diagnosis reads those of frozen ones, too */
            t->added[t->n_added++] = (struct optim_span){.offset = p->offset, .n = param_count(p)};
        }
    }
    return status_ok();
}

/* The input layer is on the first stage, the heads on the last. */
static struct param_shard layers_of_stage(const struct trainer *t, int stage, int n_stages)
{
    int64_t n = t->config.model->n_layers;
    int64_t first = stage == 0 ? MODEL_INPUT_LAYER : pipeline_first_layer(n, stage, n_stages);
    int64_t end = stage == n_stages - 1 ? n + 1 : pipeline_first_layer(n, stage + 1, n_stages);
    struct param_shard s;
    param_table_range(&t->net.params, first, end, &s.begin, &s.end);
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
            c->shards_are_stages ? layers_of_stage(t, r, n) : param_shard_of(&t->net.params, r, n);
        bounds[r] = s.begin;
        bounds[r + 1] = s.end;
    }
    struct status s = update_init(&t->update, &c->optimizer, &t->net.params, bounds, c->shard, n);
    free(bounds);
    return s;
}

/* Ranks that share the update in equal parts have the moments of just these. */
struct param_shard trainer_saved(const struct trainer *t)
{
    const struct trainer_config *c = &t->config;
    return param_shard_of(&t->net.params, c->saver, c->n_savers > 0 ? c->n_savers : 1);
}

struct network_config trainer_network(const struct trainer_config *c)
{
    return (struct network_config){
        .model = c->model,
        .device = c->device,
        .ops = c->ops,
        .precision = c->precision,
        .limits = c->limits,
        .learns = c->training,
        .recompute = c->recompute,
        .first_layer = c->first_layer,
        .end_layer = c->end_layer,
        .n_slots = c->n_slots,
    };
}

/* The input layer is run with the first layer, the heads with the last.  Layers without a backward are in no bucket. */
static struct param_buckets buckets_of(const struct trainer *t)
{
    const struct stage *s = &t->net.stage;
    int64_t n = t->config.model->n_layers, lowest = s->n_frozen + MODEL_INPUT_LAYER;
    int64_t first = s->first == 0 ? MODEL_INPUT_LAYER : s->first, end = s->end == n ? n + 1 : s->end;
    first = lowest > first && lowest < end ? lowest : first;
    return t->config.shares_gradients
               ? param_buckets_of_layers(first, end) /* the room of the largest is memory */
               : param_buckets_of(&t->net.params, first, end, t->config.bucket_elements);
}

static struct status find_rooms(struct trainer *t)
{
    const struct trainer_config *c = &t->config;
    if (!c->shares_gradients) {
        return status_ok();
    }
    CHECK(c->n_shards > 1 && !c->shards_are_stages, "gradients in %d shards", c->n_shards);
    return gradient_rooms_init(&t->rooms, &t->net.params, &t->net.stage.buckets, c->model->tied);
}

/* The set-up that planning and running share, once the network has its parameters. */
static struct status declare(struct trainer *t)
{
    TRY(param_rates_apply(&t->net.params, t->config.model->n_layers, &t->config.rates));
    t->net.stage.n_frozen = param_rates_lowest(&t->net.params) - MODEL_INPUT_LAYER;
    t->net.stage.buckets = buckets_of(t);
    TRY(share_update(t));
    TRY(find_added(t));
    TRY(find_rooms(t));
    t->plan.n_params = t->net.plan.n_params;
    t->plan.n_frozen = param_rates_count_frozen(&t->net.params);
    t->loss_scale = loss_scale_of_config(&t->config);
    return status_ok();
}

static struct status view_gradients(struct trainer *t)
{
    const struct model *m = t->config.model;
    bool shares = t->config.shares_gradients;
    const struct param_table *layout = shares ? &t->rooms.places : &t->net.params;
    tensor flat = shares ? t->rooms.flat : t->grad;
    if (t->config.training) {
        TRY(m->type->create_weights(m, &t->grads, layout, flat, flat, flat));
    }
    t->net.stage.grads = t->grads;
    return status_ok();
}

/* Zeroes the gradients that the first micro-batch adds to; products assign the others. */
static void clear_added(struct trainer *t)
{
    if (!t->config.shares_gradients) {
        t->net.x.ops->clear(&t->net.x, t->grad, t->added, t->n_added);
    }
}

bool trainer_cut_bucket(const struct trainer *t, int bucket, tensor *kept, tensor *passing)
{
    const struct update *u = &t->update;
    int64_t from, to;
    param_buckets_range(&t->net.stage.buckets, bucket, &t->net.params, &from, &to);
    comm_cut_bounds(u->cut, u->bounds, u->n_ranks, from, to);
    int64_t begin = u->cut[u->rank], n = u->cut[u->rank + 1] - begin;
    if (!t->config.shares_gradients || n == 0) {
        return false;
    }
    *kept = tensor_slice(t->grad, from + begin - u->shard.begin, n);
    *passing = tensor_slice(gradient_rooms_view(&t->rooms, bucket), begin, n);
    return true;
}

void trainer_gather_weights(struct trainer *t, const struct comm *c)
{
    update_gather(&t->update, c, &t->net.x, t->net.master, t->net.working);
}

/* c: NULL, or of the ranks that share it. */
static void update(struct trainer *t, const struct comm *c)
{
    exec_enter(&t->net.x, "optimizer", -1);
    update_norm(&t->update, c, &t->net.x, own_gradients(t), t->norm);
    update_shard(&t->update, c, &t->net.x, buffers_of(t), t->results, t->net.stage.slot->block.scalars);
    if (!t->config.shards_are_stages) {
        trainer_gather_weights(t, c);
    }
    stage_advance_histories(&t->net.stage);
}

/* Runs a whole step of one micro-batch of the largest size on the plan table, which checks and counts it. */
static void plan_micro_step(struct trainer *t)
{
    stage_carve_largest(&t->net.stage);
    stage_round_weights(&t->net.stage);
    stage_forward(&t->net.stage, t->config.training);
    stage_loss(&t->net.stage, t->sums);
    if (t->config.training) {
        stage_backward(&t->net.stage, true, false);
    }
    if (!tensor_is_null(t->tied_part)) {
        trainer_add_tied(t);
    }
    t->plan.micro_flops = t->net.x.totals.flops;
    t->plan.micro_bytes = t->net.x.totals.bytes;
    if (t->config.training) {
        update(t, NULL);
    }
}

/* A trainer whose tensors have shapes but no memory; `ops` computes nothing. */
static struct status declare_planned(struct trainer *t, struct arena *block,
                                     const struct trainer_config *config, const struct ops *ops)
{
    struct network_config net = trainer_network(config);
    *t = (struct trainer){.config = *config};
    TRY(network_declare_planned(&t->net, block, &net, ops, NULL));
    TRY(declare(t));
    carve_state(t, block);
    return view_gradients(t);
}

static struct status measure(struct trainer *t, const struct trainer_config *config)
{
    struct arena block;
    TRY(declare_planned(t, &block, config, &ops_plan));
    plan_micro_step(t);
    TRY(t->net.x.status);
    network_plan_end(&t->net, &block);
    t->plan.activation_bytes = t->net.plan.activation_bytes;
    t->plan.workspace_bytes = t->net.plan.workspace_bytes;
    t->plan.beside_bytes = t->net.plan.beside_bytes;
    t->plan.library_bytes = t->net.plan.library_bytes;
    struct param_shard saved = trainer_saved(t);
    t->plan.saving_bytes = config->saving
                               ? background_save_bytes(saved.end - saved.begin, t->net.master.dtype) +
                                     tensor_bytes(t->net.stage.histories)
                               : 0;
    t->plan.total_bytes = t->net.plan.total_bytes + t->plan.saving_bytes;
    return status_ok();
}

/* The ops of trainer_step, or of stage_infer. */
static struct status count_over(struct trainer *t, const struct trainer_config *config, void *context,
                                const struct ops *ops, const struct batch *batch, bool whole_step)
{
    static const char key[] = "a count";
    struct arena block;
    TRY(declare_planned(t, &block, config, ops));
    struct exec *x = &t->net.x;
    x->context = context;
    stage_begin(&t->net.stage, batch, &(struct stage_numbers){0});
    if (whole_step) {
        x->ops->fill(x, t->results, 0);
        clear_added(t);
    }
    queue_graph_begin(x, key, sizeof key);
    if (config->training) { /* else they are rounded once for all batches */
        stage_round_weights(&t->net.stage);
    }
    stage_forward(&t->net.stage, config->training);
    if (config->training) {
        stage_loss(&t->net.stage, t->sums);
        stage_backward(&t->net.stage, true, false);
    }
    queue_graph_end(x);
    if (whole_step) {
        update(t, NULL);
    }
    t->net.x.context = NULL; /* the caller's */
    return x->status;
}

struct status trainer_count(const struct trainer_config *config, void *context, const struct ops *ops,
                            const struct batch *batch, bool whole_step)
{
    struct trainer t;
    CHECK(config->training || !whole_step, "a training step with a trainer that does not learn");
    struct status s = count_over(&t, config, context, ops, batch, whole_step);
    trainer_fini(&t);
    return s;
}

static struct status plan_both(struct trainer_plan *plan, struct network_plan *net,
                               const struct trainer_config *config)
{
    struct trainer t;
    struct status s = measure(&t, config);
    *plan = t.plan;
    *net = t.net.plan;
    trainer_fini(&t);
    return s;
}

struct status trainer_plan(struct trainer_plan *plan, const struct trainer_config *config)
{
    struct network_plan net;
    return plan_both(plan, &net, config);
}

static struct status init_planned(struct trainer *t, const struct trainer_plan *plan,
                                  const struct network_plan *net_plan)
{
    struct network_config net = trainer_network(&t->config);
    struct arena block;
    TRY(network_declare(&t->net, &net, NULL));
    t->net.plan = *net_plan;
    TRY(declare(t));
    TRY(network_allocate(&t->net, &block));
    network_carve(&t->net, &block);
    carve_state(t, &block);
    t->plan = *plan;
    TRY(network_carve_end(&t->net, &block));
    return view_gradients(t);
}

struct status trainer_init(struct trainer *t, const struct trainer_config *config)
{
    struct trainer_plan plan;
    struct network_plan net;
    *t = (struct trainer){0};
    TRY(plan_both(&plan, &net, config));
    t->config = *config;
    struct status s = init_planned(t, &plan, &net);
    if (!failed(s) && config->training) {
        s = trainer_initialize(t); /* elsewhere they are read from files */
    }
    if (failed(s)) {
        trainer_fini(t);
    }
    return s;
}

struct status trainer_initialize(struct trainer *t)
{
    struct host_view master;
    TRY(host_view_open_blank(&master, &t->net.x, t->net.master));
    param_table_initialize(master.host, &t->net.params, t->config.seed);
    host_view_commit(&master, &t->net.x, t->net.master);
    host_view_close(&master);
    network_weights_changed(&t->net);
    return t->net.x.status;
}

void trainer_fini(struct trainer *t)
{
    if (t->config.model != NULL) {
        t->config.model->type->destroy_weights(t->grads);
    }
    update_fini(&t->update);
    gradient_rooms_fini(&t->rooms);
    free(t->added);
    network_fini(&t->net);
    *t = (struct trainer){0};
}

static double reciprocal(int64_t n)
{
    return n > 0 ? 1.0 / (double)n : 0.0;
}

void trainer_scale_losses(const struct trainer *t, struct stage_numbers *n, const struct batch_step *batch,
                          const struct batch *micro, bool mean_of_micro_batches)
{
    const struct model *m = t->config.model;
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
        stage_loss(&t->net.stage, t->sums);
        profile_phase(t->net.profile, "backward");
        stage_backward(&t->net.stage, true, !first && !in_rooms);
        stage_graph_end(&t->net.stage, work);
    }
    t->net.stage.gradient_done = NULL;
    tensor_log_end(t->tensor_log);
    t->net.stage.rounded = failed(t->net.x.status) ? 0 : t->net.version;
}

void trainer_clear(struct trainer *t)
{
    exec_enter(&t->net.x, "gradients", -1);
    t->net.x.ops->fill(&t->net.x, t->results, 0);
    clear_added(t);
}

/* The gradients of some micro-batches that are added to one another; `last`: none follow in this step. */
static void queue_block(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                        bool mean_of_micro_batches, bool last)
{
    struct exec *x = &t->net.x;
    int64_t n = batch_step_n_filled(batch);
    for (int64_t i = 0; i < n; i++) {
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
        stage_batch_send(&t->net.stage.slot->block, x, NULL, numbers);
    }
}

static void queue_tree(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                       bool mean_of_micro_batches)
{
    struct gradient_blocks blocks = t->config.blocks;
    for (int i = 0; i < blocks.n; i++) {
        struct batch_step block = batch_step_part(batch, blocks.first + i, blocks.n_all);
        if (i > 0) {
            clear_added(t);
        }
        queue_block(t, &block, numbers, mean_of_micro_batches, i == blocks.n - 1);
        gradient_tree_add(&t->tree, &t->net.x, blocks, i, t->grad);
    }
}

void trainer_queue_gradients(struct trainer *t, const struct batch_step *batch, struct stage_numbers *numbers,
                             bool mean_of_micro_batches)
{
    CHECK(!t->config.shares_gradients, "nobody sums the gradients of micro-batches");
    trainer_clear(t);
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
        stage_batch_send(&t->net.stage.slot->block, &t->net.x, NULL, numbers);
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
    const struct model *m = t->config.model;
    double results[1 + MODEL_MOST_SUMS] = {0};
    exec_copy_out(&t->net.x, results, t->results.data, sizeof results);
    *r = (struct trainer_result){.n_sums = m->n_sums,
                                 .grad_norm = results[0] / t->loss_scale.value,
                                 .loss_scale = t->loss_scale.value};
    for (int i = 0; i < m->n_sums; i++) {
        r->sums[i] = (struct trainer_sum){&m->sums[i], results[1 + i], batch->n_labels[m->sums[i].labels]};
    }
    return t->net.x.status;
}

double trainer_sum_mean(const struct trainer_sum *sum)
{
    return sum->sum * reciprocal(sum->count);
}

static int sum_named(const struct trainer_result *r, const char *name)
{
    int i = 0;
    while (i < r->n_sums && strcmp(r->sums[i].of->name, name) != 0) {
        i++;
    }
    return i;
}

bool trainer_result_has(const struct trainer_result *r, const char *name)
{
    return sum_named(r, name) < r->n_sums;
}

double trainer_result_mean(const struct trainer_result *r, const char *name)
{
    int i = sum_named(r, name);
    CHECK(i < r->n_sums, "a step has no sum named %s", name);
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
    update_norm(&t->update, NULL, &t->net.x, own_gradients(t), t->norm);
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
    return trainer_update(t, NULL, batch, step, result);
}

struct status trainer_update(struct trainer *t, const struct comm *c, const struct batch_step *batch,
                             int64_t step, struct trainer_result *result)
{
    CHECK(c == NULL ? t->update.n_ranks == 1 : c->size == t->update.n_ranks && c->rank == t->update.rank,
          "an update by shard %d of %d", t->update.rank, t->update.n_ranks);
    if (c != NULL) { /* calls between ranks are not recorded */
        update(t, c);
    } else if (stage_graph_begin(&t->net.stage, STAGE_UPDATE)) {
        update(t, NULL);
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
    if (c != NULL && !t->config.shards_are_stages &&
        !t->config.shares_gradients) { /* all ranks look at the same gradients */
        comm_all_gather(c, &t->net.x, t->grad, t->update.bounds);
        TRY(t->net.x.status);
    }
    return diagnose_nonfinite(t, c, step, result);
}

struct status trainer_evaluate(struct trainer *t, const struct batch_step *batch,
                               struct trainer_result *result)
{
    t->net.x.ops->fill(&t->net.x, t->results, 0);
    for (int64_t i = 0; i < batch->n_micro; i++) {
        stage_begin(&t->net.stage, &batch->micro[i], &(struct stage_numbers){0});
        stage_round_changed(&t->net.stage);
        if (stage_graph_begin(&t->net.stage, STAGE_EVALUATE)) {
            stage_forward(&t->net.stage, false);
            stage_loss(&t->net.stage, t->sums);
            stage_graph_end(&t->net.stage, STAGE_EVALUATE);
        }
    }
    return read_results(t, batch, result);
}
