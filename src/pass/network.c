#include "pass/network.h"

static enum fp8_factors fp8_factors_of(const struct network_config *c)
{
    if (!c->precision.fp8) {
        return FP8_NONE;
    }
    if (!c->device->computes_in_fp8) {
        return FP8_IN_BF16;
    }
    return c->learns ? FP8_ROWS_AND_COLUMNS : FP8_ROWS;
}

static struct status check_fp8(const struct network_config *c)
{
    int64_t h = c->model->hidden_size, f = c->model->feed_forward_size;
    FAIL_IF(c->precision.fp8 && c->model->n_factors == 0, STATUS_USAGE,
            "a %s model is not computed in fp8: leave out --fp8", c->model->type->name);
    FAIL_IF(c->precision.fp8 && (h % OPS_FP8_MULTIPLE != 0 || f % OPS_FP8_MULTIPLE != 0), STATUS_USAGE,
            "products in fp8 need dims that are multiples of %d, but hidden_size is %lld and "
            "intermediate_size %lld: leave out --fp8",
            OPS_FP8_MULTIPLE, (long long)h, (long long)f);
    return status_ok();
}

static struct status check_int8(const struct network_config *c)
{
    FAIL_IF(c->precision.int8 && c->model->type->int8 == MODEL_INT8_NONE, STATUS_USAGE,
            "a %s model is not computed in int8: use bf16", c->model->type->name);
    CHECK(!c->precision.int8 || (!c->learns && c->device->multiplies_int8), "int8 is for inference on a cpu");
    return status_ok();
}

struct status network_check_slices(const struct network_config *c, int n)
{
    const struct model *m = c->model;
    FAIL_IF(
        n > 1 && !m->type->in_slices, STATUS_USAGE,
        "a model of type %s cannot be tensor parallel: leave out the tensor-parallel size; pipeline stages "
        "and ZeRO divide such a model over ranks",
        m->type->name);
    FAIL_IF(m->n_heads % n != 0 || m->feed_forward_size % n != 0, STATUS_USAGE,
            "tensor parallel over %d ranks needs a multiple of %d heads and of %d columns of the "
            "feed-forward, but the model has %lld heads and %lld columns",
            n, n, n, (long long)m->n_heads, (long long)m->feed_forward_size);
    FAIL_IF(
        m->n_kv_heads % n != 0, STATUS_USAGE,
        "tensor parallel over %d ranks needs a multiple of %d heads of keys and values, but the model has "
        "%lld",
        n, n, (long long)m->n_kv_heads);
    return n == 1 || !c->precision.fp8
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "products in fp8 take scales of whole tensors, which tensor-parallel ranks do "
                              "not have: leave out one of the two");
}

/* Whether products read a copy of the master. */
static bool has_working(const struct network_config *c)
{
    return precision_matrix(c->precision) != dtype_of_vectors(c->precision.dtype);
}

struct status network_declare(struct network *n, const struct network_config *config,
                              const struct network *owner)
{
    bool in_layers = config->precision.int8 && config->model->type->int8 == MODEL_INT8_LAYERS;
    *n = (struct network){.config = *config, .owner = owner, .version = 1};
    if (config->part.n_ranges == 0) {
        n->config.part.ranges[0] = (struct param_range){MODEL_INPUT_LAYER, config->model->n_layers + 1};
        n->config.part.n_ranges = 1;
    }
    n->config.n_slots = config->n_slots > 0 ? config->n_slots : 1;
    n->x = (struct exec){.device = config->device,
                         .ops = config->ops,
                         .layer_index = -1,
                         .peers = config->peers,
                         .rows_alone = config->cache_pages > 0, /* cached rows must equal computed ones */
                         .int8_rows = in_layers,
                         .allow_tf32 = config->precision.allow_tf32};
    CHECK(peers_size(&n->x) == param_part_slices(&config->part), "%d peers with %d slices", peers_size(&n->x),
          param_part_slices(&config->part));
    TRY(check_fp8(config));
    TRY(check_int8(config));
    TRY(network_check_slices(config, param_part_slices(&config->part)));
    n->params.part = config->part;
    n->params.part.tied = model_part_has_heads(config->model, &config->part) ? config->model->tied : NULL;
    TRY(config->model->type->declare(config->model, &n->params));
    TRY(vector_places_init(&n->places, &n->params, config->device, in_layers ? config->model->n_layers : 0));
    n->plan.n_params = param_table_count(&n->params);
    bool whole = config->learns || !has_working(config);
    n->owned = (struct param_shard){0, whole ? n->params.n_elements : 0};
    n->stage = (struct stage){
        .x = &n->x,
        .config = &n->config,
        .fp8 = fp8_factors_of(config),
        .version = owner == NULL ? &n->version : &owner->version,
    };
    return stage_init(&n->stage);
}

/* The network whose weights these are. */
static const struct network *holder_of(const struct network *n)
{
    return n->owner == NULL ? n : n->owner;
}

bool network_has_master(const struct network *n)
{
    const struct network *of = holder_of(n);
    return of->owned.end - of->owned.begin == of->params.n_elements;
}

tensor network_view_param(const struct network *n, const struct param *p)
{
    if (network_has_master(n)) {
        return param_view(p, n->master);
    }
    return vector_places_has(&n->places, p)
               ? param_view(&n->places.table.params[p - n->params.params], n->vectors)
               : param_view(p, n->working);
}

void network_share_master(struct network *n, struct param_shard shard)
{
    if (n->config.learns && has_working(&n->config)) {
        n->owned = shard;
    }
}

static void carve_weights(struct network *n, struct arena *arena)
{
    enum dtype dtype = n->config.precision.dtype, vector = dtype_of_vectors(dtype);
    bool whole = network_has_master(n);
    n->master = whole || n->config.learns ? arena_carve_1d(arena, vector, n->owned.end - n->owned.begin)
                                          : NULL_TENSOR;
    n->vectors = whole ? NULL_TENSOR : arena_carve_1d(arena, vector, n->places.n);
    n->plan.master_bytes = arena->used;
    n->working = has_working(&n->config)
                     ? arena_carve_1d(arena, precision_matrix(n->config.precision), n->params.n_elements)
                     : NULL_TENSOR;
    if (n->config.precision.int8) {
        n->scales = arena_carve_1d(arena, DTYPE_F32, n->params.n_rows);
        n->working.scale = n->scales.data;
    }
}

void network_carve(struct network *n, struct arena *arena)
{
    if (n->owner == NULL) {
        carve_weights(n, arena);
    } else {
        n->owned = n->owner->owned;
        n->master = n->owner->master;
        n->working = n->owner->working;
        n->scales = n->owner->scales;
        n->vectors = n->owner->vectors;
    }
    stage_carve_weights(&n->stage, arena);
    n->plan.weight_bytes = arena->used;
    stage_carve_cache(&n->stage, arena);
    n->plan.cache_bytes = arena->used - n->plan.weight_bytes;
    n->index = arena_carve_1d(arena, DTYPE_I64, 1);
    if (n->config.cache_pages > 0) {
        choice_room_carve(&n->choices, arena, n->config.limits.n_labels, n->config.model->n_words);
    }
}

/* The model's views of the weights, once they are carved. */
static struct status network_view(struct network *n)
{
    const struct network *of = holder_of(n);
    bool whole = network_has_master(n);
    const struct param_table *layout = whole ? &of->params : &of->places.table;
    tensor matrices = tensor_is_null(n->working) ? n->master : n->working;
    tensor vectors = whole ? n->master : n->vectors;
    tensor biases = n->config.device->takes_rounded_biases ? matrices : vectors;
    const struct model *m = n->config.model;
    TRY(m->type->create_weights(m, &n->weights, layout, matrices, vectors, biases));
    n->stage.weights = n->weights;
    return status_ok();
}

struct status network_carve_planned(struct network *n, struct arena *block)
{
    *block = arena_measuring();
    network_carve(n, block);
    stage_share_arena(&n->stage, arena_measuring());
    return network_view(n);
}

static void carve_end(const struct network *n, struct arena *block, void *parts[3])
{
    parts[0] = arena_carve(block, n->plan.workspace_bytes);
    parts[1] = arena_carve(block, n->plan.beside_bytes);
    parts[2] = arena_carve(block, n->plan.activation_bytes);
}

void network_plan_end(struct network *n, struct arena *block)
{
    const struct network_config *c = &n->config;
    void *parts[3];
    n->plan.workspace_bytes = n->x.totals.workspace_bytes;
    n->plan.beside_bytes = n->x.totals.beside_bytes;
    n->plan.activation_bytes = stage_bytes(&n->stage);
    carve_end(n, block, parts);
    n->plan.library_bytes = c->device->is_host
                                ? ops_cpu_library_bytes(c->model->hidden_size, c->model->feed_forward_size,
                                                        c->precision.dtype == DTYPE_F32)
                                : c->device->overhead_bytes;
    n->plan.total_bytes = block->used + n->plan.library_bytes;
}

static struct status check_cache(const struct network_config *c)
{
    return c->cache_pages == 0 || c->model->type->carve_cache != NULL
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "the model %s has no cache of keys and values, so it cannot generate",
                              c->model->type->name);
}

static struct status measure(struct network *n, const struct network_config *config,
                             const struct network *owner)
{
    struct arena block;
    struct network_config planned = *config;
    planned.ops = &ops_plan;
    TRY(check_cache(config));
    TRY(network_declare(n, &planned, owner));
    TRY(network_carve_planned(n, &block));
    stage_carve_largest(&n->stage);
    stage_round_weights(&n->stage);
    stage_forward(&n->stage, false);
    stage_answer(&n->stage);
    TRY(n->x.status);
    n->plan.flops = n->x.totals.flops;
    n->plan.bytes = n->x.totals.bytes;
    network_plan_end(n, &block);
    return status_ok();
}

static struct status plan_over(struct network_plan *plan, const struct network_config *config,
                               const struct network *owner)
{
    struct network n;
    struct status s = measure(&n, config, owner);
    *plan = n.plan;
    network_fini(&n);
    return s;
}

struct status network_plan(struct network_plan *plan, const struct network_config *config)
{
    return plan_over(plan, config, NULL);
}

static size_t block_bytes(const struct network *n)
{
    return n->plan.total_bytes - n->plan.library_bytes;
}

/* STATUS_MEMORY if the block would take the memory that libraries and threads need, where addresses are
 * limited. */
static struct status leave_addresses(const struct network *n)
{
    const struct device *device = n->config.device;
    size_t available = device->free_bytes();
    FAIL_IF(device->is_host && block_bytes(n) > available, STATUS_MEMORY,
            "the model needs %.2f GiB, but only %.2f GiB of memory are free after the share "
            "of libraries and threads (free memory, the cgroup's limit, `ulimit -v`)",
            (double)block_bytes(n) / 0x1p30, (double)available / 0x1p30);
    return status_ok();
}

struct status network_allocate(struct network *n, struct arena *block)
{
    TRY(n->config.device->open(&n->x.context));
    TRY(leave_addresses(n));
    TRY(n->config.device->allocate(&n->memory, block_bytes(n), "the model"));
    *block = arena_over(n->memory, block_bytes(n));
    return status_ok();
}

struct status network_carve_end(struct network *n, struct arena *block)
{
    void *parts[3];
    carve_end(n, block, parts);
    n->x.workspace = parts[0];
    n->x.workspace_bytes = n->plan.workspace_bytes;
    n->x.beside_workspace = parts[1];
    n->x.beside_bytes = n->plan.beside_bytes;
    stage_share_arena(&n->stage, arena_over(parts[2], n->plan.activation_bytes));
    TRY(network_view(n));
    stage_reserve(&n->stage);
    stage_fill_constants(&n->stage);
    return n->x.status;
}

static struct status init_over(struct network *n, const struct network_config *config,
                               const struct network *owner)
{
    struct network_plan plan;
    struct arena block;
    *n = (struct network){0};
    TRY(plan_over(&plan, config, owner));
    struct status s = network_declare(n, config, owner);
    n->plan = plan;
    if (!failed(s)) {
        s = network_allocate(n, &block);
    }
    if (!failed(s)) {
        network_carve(n, &block);
        s = network_carve_end(n, &block);
    }
    if (failed(s)) {
        network_fini(n);
    }
    return s;
}

struct status network_init(struct network *n, const struct network_config *config)
{
    return init_over(n, config, NULL);
}

struct status network_init_shared(struct network *n, const struct network_config *config,
                                  const struct network *owner)
{
    CHECK(!config->learns && config->precision.dtype == owner->config.precision.dtype &&
              config->precision.int8 == owner->config.precision.int8,
          "a network's borrowed weights are read only");
    return init_over(n, config, owner);
}

void network_fini(struct network *n)
{
    stage_fini(&n->stage);
    if (n->config.model != NULL) {
        n->config.model->type->destroy_weights(n->weights);
    }
    vector_places_fini(&n->places);
    param_table_fini(&n->params);
    if (n->memory != NULL) {
        n->config.device->release(n->memory, block_bytes(n));
    }
    if (n->x.context != NULL) {
        n->config.device->close(n->x.context);
    }
    *n = (struct network){0};
}

void network_weights_changed(struct network *n)
{
    n->version++;
    if (!tensor_is_null(n->working) && network_has_master(n)) {
        n->x.ops->cast(&n->x, n->working, n->master);
    }
}

void network_copy_vectors(struct network *n)
{
    struct param_shard left = n->owned;
    int64_t from, at, count;
    while (vector_places_next(&n->places, &n->params, &left, &from, &at, &count)) {
        n->x.ops->cast(&n->x, tensor_slice(n->vectors, at, count),
                       tensor_slice(n->master, from - n->owned.begin, count));
    }
}
