#include "train/param_engine.h"

#include "core/hash.h"
#include "train/trainer_parts.h"

#include <math.h>
#include <string.h>

/* ---- a model without layers ---- */

static struct status declare(const struct model *m, struct param_table *table)
{
    const struct param_table *of = &((const struct param_model *)m)->params;
    for (int i = 0; i < of->n; i++) {
        struct param p = of->params[i];
        p.offset = param_table_slab(table, param_count(&p));
        param_table_add(table, p);
    }
    return param_table_status(table);
}

static struct status create_weights(const struct model *m, void **weights, const struct param_table *table,
                                    tensor matrices, tensor vectors, tensor biases)
{
    (void)m, (void)weights, (void)table, (void)matrices, (void)vectors, (void)biases;
    return status_ok();
}

static void destroy_weights(void *weights)
{
    (void)weights;
}

static struct status create_acts(const struct model *m, const struct param_part *part, void **acts)
{
    (void)m, (void)part, (void)acts;
    return status_ok();
}

static void carve_input(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        struct model_memory memory, const struct batch *sizes)
{
    (void)m, (void)acts, (void)layer, (void)arena, (void)memory, (void)sizes;
}

static void carve_rest(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                       const struct batch *sizes)
{
    (void)m, (void)acts, (void)arena, (void)memory, (void)sizes;
}

static void input_forward(const struct model_pass *p)
{
    (void)p;
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    (void)p, (void)dx, (void)sums;
}

static const struct model_type without_layers = {
    .name = "caller's",
    .reads_master = true,
    .declare = declare,
    .create_weights = create_weights,
    .destroy_weights = destroy_weights,
    .create_acts = create_acts,
    .carve_layer = carve_input,
    .carve_heads = carve_rest,
    .carve_scratch = carve_rest,
    .input_forward = input_forward,
    .heads_learn = heads_learn,
};

/* ---- the beginning ---- */

static struct status check_blocks(const struct param_engine_config *c, int n_ranks)
{
    int n = c->reproducible_ranks;
    if (n == 0) {
        return status_ok();
    }
    FAIL_IF(n < 0 || n > GRADIENT_TREE_MOST_BLOCKS || (n & (n - 1)) != 0 || n % n_ranks != 0, STATUS_USAGE,
            "reproducible_ranks is %d; it must be a power of two, at most %d, and a multiple of the %d ranks",
            n, GRADIENT_TREE_MOST_BLOCKS, n_ranks);
    return c->n_micro * n_ranks % n == 0
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "reproducible_ranks is %d, but a step has %lld micro-batches on all ranks "
                              "together, which is not a multiple of it",
                              n, (long long)(c->n_micro * n_ranks));
}

static struct status open_trainer(struct param_engine *e)
{
    const struct param_engine_config *c = &e->config;
    struct trainer_config config = {
        .net = {.model = &e->of.model,
                .device = &device_cpu,
                .ops = ops_cpu(),
                .precision.dtype = c->rounds ? DTYPE_BF16 : DTYPE_F32,
                .learns = true},
        .ranks = {.shape.dp = e->world->size,
                  .place.dp = e->world->rank,
                  .zero_stage = c->shares,
                  .reproducible = c->reproducible_ranks},
        .optimizer = c->optimizer,
    };
    TRY(check_blocks(c, e->world->size));
    TRY(trainer_init(&e->trainer, &config));
    return trainer_join(&e->trainer, e->world, NULL);
}

struct status param_engine_init(struct param_engine *e, struct param_table *params,
                                const struct param_engine_config *config, const struct comm *world)
{
    *e = (struct param_engine){
        .config = *config, .world = world, .of = {.model.type = &without_layers, .params = *params}};
    *params = (struct param_table){0};
    for (int i = 0; i < e->of.params.n; i++) {
        e->of.params.params[i].init = PARAM_INIT_ZERO;
    }
    struct status s = open_trainer(e);
    if (failed(s)) {
        param_engine_fini(e);
    }
    return s;
}

void param_engine_fini(struct param_engine *e)
{
    trainer_fini(&e->trainer);
    param_table_fini(&e->of.params);
    *e = (struct param_engine){0};
}

/* Hash of what must be the same on all ranks: else they would wait for each other, or add up different
 * parameters. */
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
    for (int i = 0; i < e->of.params.n; i++) {
        const struct param *p = &e->of.params.params[i];
        const int64_t shape[] = {(int64_t)hash, p->n_dims, p->dims[0], p->dims[1], p->decay};
        hash = hash_fnv1a(shape, sizeof shape) ^ hash_fnv1a(p->name, strlen(p->name));
    }
    return hash;
}

static struct status compare(struct param_engine *e)
{
    uint64_t mine = hash_of(e), first = mine;
    struct exec *x = &e->trainer.net.x;
    comm_broadcast(e->world, x, tensor_1d(&first, DTYPE_U8, sizeof first), 0);
    TRY(x->status);
    return comm_agree(
        e->world,
        first == mine
            ? status_ok()
            : status_error(STATUS_USAGE, "its parameters or its DeepSpeed file differ from those of rank 0"));
}

static void begin_step(struct param_engine *e)
{
    e->n_given = 0;
    trainer_clear(&e->trainer, e->config.n_micro);
}

void param_engine_restart(struct param_engine *e)
{
    network_weights_changed(&e->trainer.net);
    begin_step(e);
}

struct status param_engine_start(struct param_engine *e)
{
    struct network *n = &e->trainer.net;
    TRY(compare(e));
    comm_broadcast(e->world, &n->x, n->master, 0);
    param_engine_restart(e);
    return n->x.status;
}

/* ---- a step ---- */

/* Ends a block of micro-batches if it is complete.  Blocks are summed separately, so that the sum does not
 * depend on how they are divided among ranks. */
static void end_block(struct param_engine *e)
{
    struct trainer *t = &e->trainer;
    int n_blocks = t->tree.blocks.n;
    int64_t per_block = e->config.n_micro / n_blocks;
    if (e->n_given % per_block == 0) {
        int block = (int)(e->n_given / per_block) - 1;
        gradient_tree_add(&t->tree, &t->net.x, block, t->grad);
        if (block < n_blocks - 1) {
            trainer_clear_added(t);
        }
    }
}

struct status param_engine_take(struct param_engine *e, double loss)
{
    struct trainer *t = &e->trainer;
    TRY(t->net.x.status);
    FAIL_IF(e->n_given == e->config.n_micro, STATUS_USAGE,
            "the step has all of its %lld micro-batches; end it before the next one",
            (long long)e->config.n_micro);
    e->n_given++;
    tensor_set(t->sums, 0, tensor_get(t->sums, 0) + loss);
    if (t->tree.n_levels > 0) {
        end_block(e);
    }
    return t->net.x.status;
}

/* All ranks look at the same gradients, so all name the same parameter. */
static struct status name_nonfinite(struct param_engine *e)
{
    struct trainer *t = &e->trainer;
    if (t->update.n_ranks > 1) {
        update_gather_flat(&t->update, &t->mesh, &t->net.x, t->grad);
    }
    TRY(t->net.x.status);
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i];
        int64_t at = tensor_find_nonfinite(param_view(p, t->grad));
        FAIL_IF(at >= 0, STATUS_NUMERIC,
                "step %lld: the gradient of %s is not finite at element %lld (loss %g); nothing was updated",
                (long long)e->step + 1, p->name, (long long)at, e->loss);
    }
    return status_error(STATUS_NUMERIC,
                        "step %lld: the loss is %g and the norm of the gradients %g; nothing was updated",
                        (long long)e->step + 1, e->loss, e->norm);
}

double param_engine_rate(const struct param_engine *e, int64_t k)
{
    return schedule_rate(&e->config.schedule, k);
}

/* The rest of trainer_step, once gradients are sums over all micro-batches. */
static struct status end_step(struct param_engine *e)
{
    struct trainer *t = &e->trainer;
    double share = 1.0 / (double)(e->config.n_micro * e->world->size),
           rate = param_engine_rate(e, e->step + 1);
    optimizer_scalars(&t->config.optimizer, rate, e->step + 1, share, t->numbers.scalars);
    stage_send_numbers(&t->net.stage, &t->numbers);
    gradient_sums_end(t);
    trainer_run_update(t);
    exec_synchronize(&t->net.x);
    TRY(t->net.x.status);
    e->norm = share * tensor_get(t->norm, 0);
    e->loss = share * tensor_get(t->sums, 0);
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
    TRY(e->trainer.net.x.status);
    FAIL_IF(e->n_given == 0, STATUS_USAGE, "a step without a micro-batch: give its gradients first");
    if (e->n_given < e->config.n_micro) {
        return status_ok();
    }
    struct status s = end_step(e);
    begin_step(e);
    *updated = !failed(s);
    return s;
}
