#include "train/param_engine.h"

#include "core/hash.h"
#include "dist/comm_emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NORM, LOSS, N_RESULTS };

static void carve(struct param_engine *e, struct arena *a)
{
    int64_t n = e->params.n_elements, n_moments = e->update.shard.end - e->update.shard.begin;
    e->master = arena_carve_1d(a, DTYPE_F32, n);
    e->working = e->config.rounds ? arena_carve_1d(a, DTYPE_BF16, n) : NULL_TENSOR;
    e->grad = arena_carve_1d(a, DTYPE_F32, n);
    gradient_tree_carve(&e->tree, a, e->blocks, DTYPE_F32, n);
    e->exp_avg = arena_carve_1d(a, DTYPE_F32, n_moments);
    e->exp_avg_sq = arena_carve_1d(a, DTYPE_F32, n_moments);
    update_carve(&e->update, a, e->config.rounds ? DTYPE_BF16 : DTYPE_F32);
    e->results = arena_carve_1d(a, DTYPE_F64, N_RESULTS);
    e->scalars = arena_carve_1d(a, DTYPE_F64, OPTIM_N_SCALARS);
    e->x.workspace = arena_carve(a, e->x.workspace_bytes);
}

static void update(struct param_engine *e, const struct mesh *m)
{
    tensor own = update_own(&e->update, e->grad);
    struct optim_buffers buffers = {update_own(&e->update, e->master), update_own(&e->update, e->working),
                                    own, e->exp_avg, e->exp_avg_sq};
    exec_enter(&e->x, "optimizer", -1);
    update_norm(&e->update, m, &e->x, own, tensor_slice(e->results, NORM, 1));
    update_shard(&e->update, m, &e->x, buffers, e->results, e->scalars);
    update_gather(&e->update, m, &e->x, e->master, e->working);
}

/* Which elements this rank updates. */
static struct status share(struct param_engine *e)
{
    int n = e->config.shares ? e->world->size : 1, rank = e->config.shares ? e->world->rank : 0;
    int64_t *bounds = malloc(((size_t)n + 1) * sizeof *bounds);
    if (bounds == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the shards of %d ranks", n);
    }
    for (int r = 0; r < n; r++) {
        struct param_shard s = param_shard_of(&e->params, r, n);
        bounds[r] = s.begin;
        bounds[r + 1] = s.end;
    }
    struct status s = update_init(&e->update, &e->config.optimizer, &e->params, bounds, rank, n);
    free(bounds);
    return s;
}

static struct status cut_blocks(struct param_engine *e)
{
    int n = e->config.reproducible_ranks, size = e->world->size;
    if (n == 0) {
        return status_ok();
    }
    if (n < 0 || n > GRADIENT_TREE_MOST_BLOCKS || (n & (n - 1)) != 0 || n % size != 0) {
        return status_error(
            STATUS_USAGE,
            "reproducible_ranks is %d; it must be a power of two, at most %d, and a multiple of the %d ranks",
            n, GRADIENT_TREE_MOST_BLOCKS, size);
    }
    if (e->config.n_micro * size % n != 0) {
        return status_error(STATUS_USAGE,
                            "reproducible_ranks is %d, but a step has %lld micro-batches on all ranks "
                            "together, which is not a multiple of it",
                            n, (long long)(e->config.n_micro * size));
    }
    e->blocks = gradient_blocks_of(n, e->world->rank, size);
    return status_ok();
}

/* The bytes of everything, and of the ops' scratch: by running an update on the plan table. */
static struct status plan(struct param_engine *e)
{
    struct arena a = arena_measuring();
    struct comm_emulated absent = {.rank = e->world->rank, .size = e->world->size};
    struct comm others = comm_emulated_rank(&absent);
    struct mesh mesh = mesh_of_replicas(&others);
    e->x.ops = &ops_plan;
    carve(e, &a);
    update(e, &mesh);
    TRY(e->x.status);
    e->x.workspace_bytes = e->x.totals.workspace_bytes;
    a = arena_measuring();
    carve(e, &a);
    e->bytes = a.used;
    return status_ok();
}

static struct status allocate(struct param_engine *e)
{
    TRY(cut_blocks(e));
    TRY(share(e));
    TRY(plan(e));
    TRY(device_cpu.allocate(&e->memory, e->bytes, "the engine"));
    struct arena a = arena_over(e->memory, e->bytes);
    e->x.ops = ops_cpu();
    carve(e, &a);
    return status_ok();
}

struct status param_engine_init(struct param_engine *e, struct param_table *params,
                                const struct param_engine_config *config, const struct comm *world)
{
    *e = (struct param_engine){.config = *config, .world = world, .params = *params};
    *params = (struct param_table){0};
    e->x = (struct exec){.device = &device_cpu, .layer_index = -1};
    struct status s = allocate(e);
    if (failed(s)) {
        param_engine_fini(e);
    }
    return s;
}

void param_engine_fini(struct param_engine *e)
{
    update_fini(&e->update);
    param_table_fini(&e->params);
    if (e->memory != NULL) {
        device_cpu.release(e->memory, e->bytes);
    }
    *e = (struct param_engine){0};
}

/* ---- the beginning ---- */

/* What all ranks must have alike: they would wait for each other, or add up other parameters. */
static uint64_t hash_of(const struct param_engine *e)
{
    const struct optimizer *o = &e->config.optimizer;
    const struct schedule *s = &e->config.schedule;
    const double numbers[] = {o->beta1,
                              o->beta2,
                              o->eps,
                              o->weight_decay,
                              o->max_grad_norm,
                              o->min_ratio,
                              o->max_ratio,
                              (double)s->kind,
                              s->base,
                              s->min,
                              s->max,
                              (double)s->warmup_steps,
                              (double)s->decay_steps,
                              s->is_log,
                              (double)e->config.n_micro,
                              e->config.reproducible_ranks,
                              e->config.shares,
                              e->config.rounds};
    uint64_t hash = hash_fnv1a(o->kind->name, strlen(o->kind->name)) ^ hash_fnv1a(numbers, sizeof numbers);
    for (int i = 0; i < e->params.n; i++) {
        const struct param *p = &e->params.params[i];
        const int64_t shape[] = {(int64_t)hash, p->n_dims, p->dims[0], p->dims[1], p->decay};
        hash = hash_fnv1a(shape, sizeof shape) ^ hash_fnv1a(p->name, strlen(p->name));
    }
    return hash;
}

static struct status compare(struct param_engine *e)
{
    uint64_t mine = hash_of(e), first = mine;
    comm_broadcast(e->world, &e->x, tensor_1d(&first, DTYPE_U8, sizeof first), 0);
    TRY(e->x.status);
    return comm_agree(
        e->world,
        first == mine
            ? status_ok()
            : status_error(STATUS_USAGE, "its parameters or its DeepSpeed file differ from those of rank 0"));
}

static void begin_step(struct param_engine *e)
{
    e->n_given = 0;
    e->x.ops->fill(&e->x, e->grad, 0);
    e->x.ops->fill(&e->x, e->results, 0);
}

void param_engine_restart(struct param_engine *e)
{
    if (!tensor_is_null(e->working)) {
        e->x.ops->cast(&e->x, e->working, e->master);
    }
    begin_step(e);
}

struct status param_engine_start(struct param_engine *e)
{
    TRY(compare(e));
    comm_broadcast(e->world, &e->x, e->master, 0);
    param_engine_restart(e);
    return e->x.status;
}

/* ---- a step ---- */

static double *result(struct param_engine *e, int i)
{
    return (double *)e->results.data + i;
}

/* Of ranks that can share them out in more than one way, a block of micro-batches is added up by itself. */
static void end_block(struct param_engine *e)
{
    int64_t per_block = e->config.n_micro / e->blocks.n;
    if (e->n_given % per_block == 0) {
        int block = (int)(e->n_given / per_block) - 1;
        gradient_tree_add(&e->tree, &e->x, block, e->grad);
        if (block < e->blocks.n - 1) {
            e->x.ops->fill(&e->x, e->grad, 0);
        }
    }
}

struct status param_engine_take(struct param_engine *e, double loss)
{
    TRY(e->x.status);
    if (e->n_given == e->config.n_micro) {
        return status_error(STATUS_USAGE,
                            "the step has all of its %lld micro-batches; end it before the next one",
                            (long long)e->config.n_micro);
    }
    e->n_given++;
    *result(e, LOSS) += loss;
    if (e->tree.n_levels > 0) {
        end_block(e);
    }
    return e->x.status;
}

/* Ranks that share the update need the sums of their shards only. */
static void sum_over_ranks(struct param_engine *e)
{
    exec_enter(&e->x, "gradients", -1);
    if (e->update.n_ranks > 1) {
        comm_queue_reduce_scatter_sum(e->world, &e->x, e->grad, e->update.bounds);
    } else {
        comm_queue_all_reduce_sum(e->world, &e->x, e->grad);
    }
    comm_all_reduce_sum(e->world, &e->x, tensor_slice(e->results, LOSS, 1));
}

/* All ranks look at the same gradients, so all name the same parameter. */
static struct status name_nonfinite(struct param_engine *e)
{
    if (e->update.n_ranks > 1) {
        comm_all_gather(e->world, &e->x, e->grad, e->update.bounds);
    }
    TRY(e->x.status);
    for (int i = 0; i < e->params.n; i++) {
        const struct param *p = &e->params.params[i];
        int64_t at = tensor_find_nonfinite(param_view(p, e->grad));
        if (at >= 0) {
            return status_error(
                STATUS_NUMERIC,
                "step %lld: the gradient of %s is not finite at element %lld (loss %g); nothing was updated",
                (long long)e->step + 1, p->name, (long long)at, e->loss);
        }
    }
    return status_error(STATUS_NUMERIC,
                        "step %lld: the loss is %g and the norm of the gradients %g; nothing was updated",
                        (long long)e->step + 1, e->loss, e->norm);
}

double param_engine_rate(const struct param_engine *e, int64_t k)
{
    return schedule_rate(&e->config.schedule, k);
}

static struct status end_step(struct param_engine *e)
{
    double share = 1.0 / (double)(e->config.n_micro * e->world->size),
           rate = param_engine_rate(e, e->step + 1);
    sum_over_ranks(e);
    optimizer_scalars(&e->config.optimizer, rate, e->step + 1, share, e->scalars.data);
    struct mesh mesh = mesh_of_replicas(e->world);
    update(e, &mesh);
    exec_synchronize(&e->x);
    TRY(e->x.status);
    e->norm = share * *result(e, NORM);
    e->loss = share * *result(e, LOSS);
    if (!isfinite(e->norm + e->loss)) {
        return name_nonfinite(e);
    }
    e->step++;
    e->rate = rate;
    return status_ok();
}

struct status param_engine_step(struct param_engine *e, bool *updated)
{
    *updated = false;
    TRY(e->x.status);
    if (e->n_given == 0) {
        return status_error(STATUS_USAGE, "a step without a micro-batch: give its gradients first");
    }
    if (e->n_given < e->config.n_micro) {
        return status_ok();
    }
    struct status s = end_step(e);
    begin_step(e);
    *updated = !failed(s);
    return s;
}
