#include "dev/queue.h"
#include "core/integers.h"
#include "model/background_save.h"
#include "pass/weight_window.h"
#include "train/trainer_parts.h"

#include <stdlib.h>

/* Carves memory for the heads' gradient of the tied parameter, where the input layer is here and the heads
 * are on another rank. */
static void carve_tied(struct trainer *t, struct arena *a)
{
    const struct model *m = t->config.net.model;
    const struct param_part *part = &t->net.config.part;
    if (m->tied != NULL && model_part_has_input(part) && !model_part_has_heads(m, part)) {
        t->tied_part =
            arena_carve_1d(a, t->grad.dtype, param_count(param_table_find(&t->net.params, m->tied)));
    }
}

static void carve_gradients(struct trainer *t, struct arena *a)
{
    enum dtype vector = dtype_of_vectors(t->config.net.precision.dtype);
    bool shares = trainer_shares_gradients(t);
    int64_t n = shares ? t->update.shard.end - t->update.shard.begin : t->net.params.n_elements;
    t->grad = arena_carve_1d(a, vector, n);
    if (shares) {
        gradient_rooms_carve(&t->rooms, a, vector);
    } else {
        carve_tied(t, a);
    }
    gradient_tree_carve(&t->tree, a, trainer_ranks_blocks(&t->config.ranks), vector, n);
}

/* Carves all of a trainer but its network's weights, in the order of the plan's table. */
static void carve_state(struct trainer *t, struct arena *a)
{
    const struct trainer_config *c = &t->config;
    enum dtype vector = dtype_of_vectors(c->net.precision.dtype);
    size_t before = a->used;
    if (c->net.learns) {
        int64_t n_moments = t->update.shard.end - t->update.shard.begin;
        carve_gradients(t, a);
        t->plan.gradient_bytes = a->used - before;
        t->exp_avg = arena_carve_1d(a, vector, n_moments);
        t->exp_avg_sq = arena_carve_1d(a, vector, n_moments);
        update_carve(&t->update, a, c->net.precision.dtype);
        stage_carve_histories(&t->net.stage, a);
        t->plan.optimizer_bytes = a->used - before - t->plan.gradient_bytes;
    }
    t->results = arena_carve_1d(a, DTYPE_F64, TRAINER_N_RESULTS);
    t->norm = tensor_slice(t->results, TRAINER_NORM, 1);
    t->sums = tensor_slice(t->results, TRAINER_SUMS, MODEL_MOST_SUMS);
}

static struct loss_scale loss_scale_of_config(const struct trainer_config *c)
{
    return loss_scale_of(c->net.precision.dtype == DTYPE_F16 ? c->scale_rule
                                                             : (struct loss_scale_rule){.fixed = 1});
}

static struct status find_added(struct trainer *t)
{
    t->added = calloc((size_t)t->net.params.n, sizeof *t->added);
    FAIL_IF(t->added == NULL, STATUS_MEMORY, "out of memory for the spans of %d parameters", t->net.params.n);
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i];
        if (!p->by_product || p->rate == 0) { /* a diagnosis reads the gradients of frozen ones, too */
            t->added[t->n_added++] = (struct optim_span){.offset = p->offset, .n = param_count(p)};
        }
    }
    return status_ok();
}

/* Ranks that share the update in equal parts have the moments of just these elements. */
struct param_shard trainer_saved(const struct trainer *t)
{
    const struct trainer_ranks *r = &t->config.ranks;
    struct param_shard s = param_shard_of(&t->net.params, r->place.dp, r->shape.dp);
    int64_t copies = param_table_end_of_copies(&t->net.params);
    return (struct param_shard){int_larger(s.begin, copies), int_larger(s.end, copies)};
}

/* The buckets span the layers from the lowest that has a backward to the highest that is here. */
static struct param_buckets buckets_of(const struct trainer *t)
{
    const struct param_part *part = &t->net.config.part;
    int64_t lowest = t->net.stage.n_frozen + MODEL_INPUT_LAYER;
    int64_t first = part->ranges[0].first, end = part->ranges[part->n_ranges - 1].end;
    first = lowest > first && lowest < end ? lowest : first;
    return trainer_shares_gradients(t)
               ? param_buckets_of_layers(first, end) /* larger buckets would need more memory */
               : param_buckets_of(&t->net.params, first, end, t->config.bucket_elements);
}

/* Ranks that share the update keep the fp32 master of their shards alone, where products read another
 * copy. */
static struct status share_master(struct trainer *t)
{
    const struct update *u = &t->update;
    if (u->n_ranks == 1 || t->config.net.model->type->reads_master) {
        return status_ok();
    }
    network_share_master(&t->net, u->shard);
    if (network_has_master(&t->net)) {
        return status_ok();
    }
    t->vector_bounds = malloc(((size_t)u->n_ranks + 1) * sizeof *t->vector_bounds);
    FAIL_IF(t->vector_bounds == NULL, STATUS_MEMORY, "out of memory for the shards of %d ranks", u->n_ranks);
    for (int r = 0; r <= u->n_ranks; r++) {
        t->vector_bounds[r] = vector_places_before(&t->net.places, &t->net.params, u->bounds[r]);
    }
    return status_ok();
}

static struct status find_rooms(struct trainer *t)
{
    return trainer_shares_gradients(t) ? gradient_rooms_init(&t->rooms, &t->net.params, &t->net.stage.buckets,
                                                             t->config.net.model->tied)
                                       : status_ok();
}

/* The rate of each parameter, and whether its update needs all of it. */
static struct status find_rates_in(const struct trainer *t, struct param_table *params)
{
    TRY(param_rates_apply(params, t->config.net.model->n_layers, &t->config.rates));
    optimizer_keep_whole(&t->config.optimizer, params);
    return status_ok();
}

/* Copies the rates from the table of the complete model, which has all names and layers, to that of a part.
 * Copies of parameters get rate 0: they are updated elsewhere. */
static void take_rates(struct param_table *params, const struct param_table *model)
{
    for (int i = 0; i < params->n; i++) {
        struct param *p = &params->params[i];
        const struct param *of_model = param_table_find(model, p->name);
        p->rate = p->is_copy ? 0 : of_model->rate;
        p->whole = of_model->whole;
    }
}

/* Finds the rates of this rank's parameters.  Where the rank has a part of the layers, `all` becomes the
 * table of all layers: that of the first slice, which is the largest. */
static struct status find_rates(struct trainer *t, struct param_table *all)
{
    const struct model *m = t->config.net.model;
    struct param_table *params = &t->net.params;
    if (param_part_is_all(&params->part)) {
        return find_rates_in(t, params);
    }
    all->part = (struct param_part){.n_slices = params->part.n_slices};
    TRY(m->type->declare(m, all));
    TRY(find_rates_in(t, all));
    take_rates(params, all);
    return status_ok();
}

static int64_t count_whole(const struct param_table *params)
{
    int64_t n = 0;
    for (int i = 0; i < params->n; i++) {
        n += param_full_count(&params->params[i]);
    }
    return n;
}

/* Opens a mesh whose other ranks are emulated, until trainer_join joins them. */
static struct status emulate_ranks(struct trainer *t)
{
    const struct trainer_ranks *r = &t->config.ranks;
    struct comm world = comm_self();
    t->absent = (struct comm_emulated){.rank = mesh_rank(r->shape, r->place),
                                       .size = r->shape.tp * r->shape.pp * r->shape.dp};
    if (t->absent.size > 1) {
        world = comm_emulated_rank(&t->absent);
    }
    t->peers.peers = (struct peers){.rank = r->place.tp, .size = r->shape.tp};
    return mesh_open(&t->mesh, &world, r->shape);
}

/* The set-up that planning and running share, once the network has its parameters. */
static struct status declare_over(struct trainer *t, struct param_table *all)
{
    TRY(find_rates(t, all));
    /* count in the complete model: a gradient passes through a part that learns nothing to one below that
     * does */
    t->net.stage.n_frozen = param_rates_lowest(all->n > 0 ? all : &t->net.params) - MODEL_INPUT_LAYER;
    t->net.stage.buckets = buckets_of(t);
    const struct trainer_ranks *r = &t->config.ranks;
    TRY(update_init(&t->update, &t->config.optimizer, &t->net.params, all, trainer_ranks_shard(r),
                    trainer_ranks_shards(r)));
    TRY(share_master(t));
    TRY(find_added(t));
    TRY(find_rooms(t));
    t->plan.n_model_params = count_whole(all->n > 0 ? all : &t->net.params);
    t->plan.n_frozen = param_rates_count_frozen(&t->net.params);
    t->loss_scale = loss_scale_of_config(&t->config);
    return status_ok();
}

static struct status declare(struct trainer *t)
{
    struct param_table all = {0};
    struct network_config *net = &t->config.net;
    TRY(trainer_ranks_place(&t->config.ranks, net));
    TRY(emulate_ranks(t));
    net->peers = &t->peers.peers;
    TRY(network_declare(&t->net, net, NULL));
    struct status s = declare_over(t, &all);
    param_table_fini(&all);
    return s;
}

static struct status view_gradients(struct trainer *t)
{
    const struct model *m = t->config.net.model;
    bool shares = trainer_shares_gradients(t);
    const struct param_table *layout = shares ? &t->rooms.places : &t->net.params;
    tensor flat = shares ? t->rooms.flat : t->grad;
    if (t->config.net.learns) {
        TRY(m->type->create_weights(m, &t->grads, layout, flat, flat, flat));
    }
    t->net.stage.grads = t->grads;
    return status_ok();
}

/* Runs the passes of the selected chunk; without learning, the forward, and `heads` for the heads. */
static void plan_chunk(struct trainer *t, void (*heads)(struct trainer *t))
{
    stage_forward(&t->net.stage, t->config.net.learns);
    if (t->config.net.learns) {
        stage_learn(&t->net.stage, t->sums, false);
        stage_backward(&t->net.stage, true, false);
    } else {
        heads(t);
    }
}

static void measure_losses(struct trainer *t)
{
    stage_measure(&t->net.stage, t->sums, false);
}

static void answer(struct trainer *t)
{
    stage_heads(&t->net.stage, false);
}

/* Runs a complete step of one micro-batch of the largest size on the plan table, which checks and counts
 * it. */
static void plan_micro_step(struct trainer *t)
{
    stage_carve_largest(&t->net.stage);
    stage_round_weights(&t->net.stage);
    for (int k = 0; k < t->net.config.part.n_ranges; k++) {
        stage_select(&t->net.stage, k, 0);
        plan_chunk(t, measure_losses);
    }
    if (!tensor_is_null(t->tied_part)) {
        trainer_add_tied(t);
    }
    t->plan.micro_flops = t->net.x.totals.flops;
    t->plan.micro_bytes = t->net.x.totals.bytes;
    t->plan.peer_bytes = t->net.x.totals.peer_bytes;
    if (t->config.net.learns) {
        trainer_run_update(t);
    }
    t->plan.update_peer_bytes = t->net.x.totals.peer_bytes - t->plan.peer_bytes;
}

/* A trainer whose tensors have shapes but no memory; `ops` computes nothing. */
static struct status declare_planned(struct trainer *t, struct arena *block,
                                     const struct trainer_config *config, const struct ops *ops)
{
    *t = (struct trainer){.config = *config};
    t->config.net.ops = ops;
    TRY(declare(t));
    TRY(network_carve_planned(&t->net, block));
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
    t->plan.net = t->net.plan;
    double n_lists = 1 + t->config.counts_zeros + t->config.measures_weights;
    t->plan.part_sum_bytes = n_lists * (double)tensor_bytes(t->update.model_squares);
    t->plan.slice_sum_bytes = (double)tensor_bytes(t->update.model_sums);
    struct param_shard saved = trainer_saved(t);
    t->plan.saving_bytes =
        config->saving
            ? background_save_bytes(saved.end - saved.begin, dtype_of_vectors(config->net.precision.dtype)) +
                  tensor_bytes(t->net.stage.histories)
            : 0;
    t->plan.total_bytes = t->plan.net.total_bytes + t->plan.saving_bytes;
    return status_ok();
}

/* Passes the ops of trainer_step, or of stage_infer, to `ops`. */
static struct status count_over(struct trainer *t, const struct trainer_config *config, const struct ops *ops,
                                const struct batch *batch, bool whole_step)
{
    static const char key[] = "a count";
    struct arena block;
    TRY(declare_planned(t, &block, config, ops));
    struct exec *x = &t->net.x;
    if (whole_step) {
        x->ops->fill(x, t->results, 0);
        trainer_clear_added(t);
    }
    for (int k = 0; k < t->net.config.part.n_ranges; k++) {
        stage_select(&t->net.stage, k, 0);
        stage_begin(&t->net.stage, batch, &(struct stage_numbers){0});
        queue_graph_begin(x, key, sizeof key);
        if (config->net.learns && k == 0) { /* without learning, weights are rounded once for all batches */
            stage_round_weights(&t->net.stage);
        }
        plan_chunk(t, answer);
        queue_graph_end(x);
    }
    if (whole_step) {
        trainer_run_update(t);
    }
    return x->status;
}

struct status trainer_count(const struct trainer_config *config, const struct ops *ops,
                            const struct batch *batch, bool whole_step)
{
    struct trainer t;
    CHECK(config->net.learns || !whole_step, "a training step with a trainer that does not learn");
    struct status s = count_over(&t, config, ops, batch, whole_step);
    trainer_fini(&t);
    return s;
}

struct status trainer_plan(struct trainer_plan *plan, const struct trainer_config *config)
{
    struct trainer t;
    struct status s = measure(&t, config);
    *plan = t.plan;
    trainer_fini(&t);
    return s;
}

static struct status init_planned(struct trainer *t, const struct trainer_plan *plan)
{
    struct arena block;
    TRY(declare(t));
    t->plan = *plan;
    t->net.plan = plan->net;
    TRY(network_allocate(&t->net, &block));
    network_carve(&t->net, &block);
    carve_state(t, &block);
    TRY(network_carve_end(&t->net, &block));
    return view_gradients(t);
}

struct status trainer_init(struct trainer *t, const struct trainer_config *config)
{
    struct trainer_plan plan;
    *t = (struct trainer){0};
    TRY(trainer_plan(&plan, config));
    t->config = *config;
    struct status s = init_planned(t, &plan);
    if (!failed(s) && config->net.learns) {
        s = trainer_initialize(t); /* without learning, weights are read from files */
    }
    if (failed(s)) {
        trainer_fini(t);
    }
    return s;
}

struct status trainer_join(struct trainer *t, const struct comm *world, const struct comm_nccl_config *nccl)
{
    struct comm_nccl_config config = nccl != NULL ? *nccl : (struct comm_nccl_config){0};
    config.keeps_rule = t->config.ranks.reproducible > 0;
    TRY(comm_device_open(&t->device_ranks, world, &t->net.x, &config));
    TRY(mesh_open(&t->mesh, &t->device_ranks.comm, t->config.ranks.shape));
    if (world->emulated != NULL) {
        comm_emulated_count_apart(&t->mesh.tensor, &world->emulated->slices);
        comm_emulated_count_apart(&t->mesh.pipe, &world->emulated->stages);
        comm_emulated_count_apart(&t->mesh.ends, &world->emulated->stages);
    }
    return comm_peers_init(&t->peers, &t->mesh.tensor);
}

void trainer_leave(struct trainer *t)
{
    if (t->config.net.model == NULL) { /* it was never set up */
        return;
    }
    comm_peers_fini(&t->peers);
    mesh_close(&t->mesh);
    comm_device_close(&t->device_ranks);
    emulate_ranks(t);
}

struct status trainer_initialize(struct trainer *t)
{
    struct weight_window window;
    TRY(weight_window_open(&window, &t->net));
    struct weight_sink sink = weight_window_sink(&window);
    struct status s = status_ok();
    for (int i = 0; i < t->net.params.n && !failed(s); i++) {
        const struct param *p = &t->net.params.params[i];
        tensor values;
        s = weight_window_draw(&window, p, t->config.seed, &values);
        s = failed(s) ? s : sink.put(sink.self, p, values);
    }
    struct status written = weight_window_close(&window);
    return failed(s) ? s : written;
}

void trainer_fini(struct trainer *t)
{
    trainer_leave(t);
    if (t->config.net.model != NULL) {
        t->config.net.model->type->destroy_weights(t->grads);
    }
    update_fini(&t->update);
    gradient_rooms_fini(&t->rooms);
    free(t->added);
    free(t->vector_bounds);
    network_fini(&t->net);
    *t = (struct trainer){0};
}
