/* api_engine: include/kiln/engine.h on train/param_engine.  Nothing of a session is used here, and sessions
 * use nothing of this. */
#include "api/api.h"
#include "core/parallel.h"
#include "dist/world.h"
#include "task/deepspeed_config.h"
#include "train/param_engine.h"

#include <kiln/engine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETERS = 10000 };
static const int64_t MOST_ELEMENTS = (int64_t)1 << 40;

struct kiln_engine {
    struct comm world;
    struct param_engine inner;
    int64_t train_batch_size; /* batch of one rank */
};

void kiln_engine_options_init(struct kiln_engine_options *options, size_t size)
{
    api_init_options(options, size, &(struct kiln_engine_options){0}, sizeof *options);
}

/* ---- parameters ---- */

static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";
    size_t n = strlen(name);
    return n > 0 && n < PARAM_NAME_BYTES && strspn(name, allowed) == n;
}

static struct status check_shape(const struct kiln_parameter *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->n_dims && p->n_dims <= 2 && n > 0; i++) {
        n = p->dims[i] < 1 || p->dims[i] > MOST_ELEMENTS / n ? 0 : n * p->dims[i];
    }
    return p->n_dims >= 1 && p->n_dims <= 2 && n > 0
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "parameter %s must have 1 or 2 dims from 1 on, and at most 2^40 elements",
                              p->name);
}

static struct status declare(struct param_table *t, const struct kiln_parameter *parameters, int n)
{
    for (int i = 0; i < n; i++) {
        const struct kiln_parameter *p = &parameters[i];
        FAIL_IF(p->name == NULL || !is_name(p->name) || param_table_find(t, p->name) != NULL, STATUS_USAGE,
                "the name of parameter %d, '%.100s', must be one of its own of 1 to %d "
                "letters, digits, '.', '_', '-' and '/'",
                i, p->name == NULL ? "NULL" : p->name, PARAM_NAME_BYTES - 1);
        TRY(check_shape(p));
        struct param own = {
            .n_dims = p->n_dims, .dims = {p->dims[0], p->n_dims == 2 ? p->dims[1] : 0}, .decay = p->decay};
        snprintf(own.name, sizeof own.name, "%s", p->name);
        own.offset = param_table_slab(t, param_count(&own));
        param_table_add(t, own);
        TRY(param_table_status(t));
    }
    return status_ok();
}

static void copy_values(struct param_engine *e, const struct kiln_parameter *parameters)
{
    for (int i = 0; i < e->trainer.net.params.n; i++) {
        tensor t = param_view(&e->trainer.net.params.params[i], e->trainer.net.master);
        if (parameters[i].values != NULL) {
            memcpy(t.data, parameters[i].values, tensor_bytes(t));
        }
    }
}

/* ---- the file ---- */

static struct status check_file(const struct deepspeed_config *c, const char *path)
{
    FAIL_IF(c->optimizer == NULL, STATUS_DATA, "%s has no \"optimizer\"; the engine needs its type and lr",
            path);
    FAIL_IF(c->fp16, STATUS_UNAVAILABLE,
            "%s: \"fp16\" needs scaled losses, which the engine does not have; use \"bf16\", or neither",
            path);
    FAIL_IF(optimizer_find(c->optimizer)->takes_matrices, STATUS_UNAVAILABLE,
            "%s: \"optimizer\" %s needs to know which parameters are matrices of layers, "
            "which kiln knows of its own models only",
            path, c->optimizer);
    FAIL_IF(c->log.zero_stage > 1, STATUS_UNAVAILABLE,
            "%s: \"zero_optimization.stage\" %lld is not there for a program's own network, "
            "whose gradients are in one buffer: use 0 or 1",
            path, (long long)c->log.zero_stage);
    return status_ok();
}

static struct param_engine_config configure(const struct deepspeed_config *c, int reproducible_ranks)
{
    struct param_engine_config out = {.optimizer = optimizer_with(optimizer_find(c->optimizer), c->update),
                                      .schedule = {.kind = SCHEDULE_CONSTANT, .n_steps = 1},
                                      .n_micro = c->batch.gradient_accumulation_steps,
                                      .reproducible_ranks = reproducible_ranks,
                                      .shares = c->log.zero_stage > 0,
                                      .rounds = c->bf16};
    if (c->has_scheduler) {
        out.schedule = c->scheduler;
    }
    out.schedule.base = c->learning_rate;
    return out;
}

/* ---- opening ---- */

/* This rank's part, before any other is asked. */
static struct status prepare(struct kiln_engine *e, const char *path, const struct kiln_parameter *parameters,
                             int n, const struct kiln_engine_options *options)
{
    struct deepspeed_config file;
    struct param_table table = {0};
    TRY(deepspeed_config_read(&file, path, false, e->world.size));
    TRY(check_file(&file, path));
    struct param_engine_config config = configure(&file, options->reproducible_ranks);
    struct status s = declare(&table, parameters, n);
    if (!failed(s)) {
        s = param_engine_init(&e->inner, &table, &config, &e->world);
    }
    param_table_fini(&table);
    if (!failed(s)) {
        copy_values(&e->inner, parameters);
        e->train_batch_size = file.batch.train_batch_size;
    }
    return s;
}

static struct status open_engine(struct kiln_engine *e, const char *path,
                                 const struct kiln_parameter *parameters, int n,
                                 const struct kiln_engine_options *options)
{
    TRY(world_open(&e->world));
    if (e->world.n_local > 1) {
        parallel_share(e->world.n_local);
    }
    struct status s = comm_agree(&e->world, prepare(e, path, parameters, n, options));
    if (!failed(s)) {
        s = param_engine_start(&e->inner);
    }
    if (failed(s)) {
        param_engine_fini(&e->inner);
        world_close(&e->world, s);
    }
    return s;
}

static struct status check_open(const char *path, const struct kiln_parameter *parameters, int n)
{
    FAIL_IF(path == NULL || parameters == NULL, STATUS_USAGE, "%s is NULL",
            path == NULL ? "deepspeed_config" : "parameters");
    return api_check_range("n_parameters", n, 1, MOST_PARAMETERS);
}

static struct status open_new(struct kiln_engine **engine, const char *path,
                              const struct kiln_parameter *parameters, int n,
                              const struct kiln_engine_options *given)
{
    struct kiln_engine_options options = kiln_engine_defaults();
    TRY(api_take_options(&options, sizeof options, given));
    TRY(check_open(path, parameters, n));
    struct kiln_engine *e = calloc(1, sizeof *e);
    FAIL_IF(e == NULL, STATUS_MEMORY, "out of memory for an engine");
    struct status s = open_engine(e, path, parameters, n, &options);
    if (failed(s)) {
        free(e);
        return s;
    }
    *engine = e;
    return s;
}

struct kiln_status kiln_engine_open(struct kiln_engine **engine, const char *deepspeed_config,
                                    const struct kiln_parameter *parameters, int n_parameters,
                                    const struct kiln_engine_options *options)
{
    if (engine == NULL) {
        return api_status(status_error(STATUS_USAGE, "engine is NULL"));
    }
    *engine = NULL;
    return api_status(open_new(engine, deepspeed_config, parameters, n_parameters, options));
}

void kiln_engine_close(struct kiln_engine *engine)
{
    if (engine != NULL) {
        struct status why = engine->inner.trainer.net.x.status;
        param_engine_fini(&engine->inner);
        world_close(&engine->world, why);
        free(engine);
    }
}

/* ---- an open one ---- */

struct kiln_engine_info kiln_engine_info(const struct kiln_engine *engine)
{
    if (engine == NULL) {
        return (struct kiln_engine_info){0};
    }
    const struct param_engine *e = &engine->inner;
    const struct comm *w = &engine->world;
    return (struct kiln_engine_info){
        .rank = w->rank,
        .n_ranks = w->size,
        .local_rank = w->local_rank,
        .n_local = w->n_local,
        .micro_batch_size = engine->train_batch_size / e->config.n_micro,
        .gradient_accumulation_steps = e->config.n_micro,
        .train_batch_size = engine->train_batch_size * w->size,
        .zero_stage = e->config.shares ? 1 : 0,
        .step = e->step,
        .learning_rate = param_engine_rate(e, e->step + 1),
        .loss = e->loss,
        .gradient_norm = e->norm,
        .memory_bytes = e->trainer.plan.net.total_bytes - e->trainer.plan.net.library_bytes,
    };
}

/* NULL if there is no such parameter, or no such buffer. */
static void *view(const struct kiln_engine *engine, int i, tensor flat)
{
    const struct param_table *t = &engine->inner.trainer.net.params;
    return i < 0 || i >= t->n || tensor_is_null(flat) ? NULL : param_view(&t->params[i], flat).data;
}

const float *kiln_engine_weights(const struct kiln_engine *engine, int i)
{
    return engine == NULL ? NULL : view(engine, i, engine->inner.trainer.net.master);
}

const uint16_t *kiln_engine_weights_bf16(const struct kiln_engine *engine, int i)
{
    return engine == NULL ? NULL : view(engine, i, engine->inner.trainer.net.working);
}

float *kiln_engine_gradient(struct kiln_engine *engine, int i)
{
    return engine == NULL ? NULL : view(engine, i, engine->inner.trainer.grad);
}

static const char no_engine[] = "engine is NULL";

struct kiln_status kiln_engine_backward(struct kiln_engine *engine, double loss)
{
    return api_status(engine == NULL ? status_error(STATUS_USAGE, no_engine)
                                     : param_engine_take(&engine->inner, loss));
}

struct kiln_status kiln_engine_step(struct kiln_engine *engine, bool *updated)
{
    bool unused, *out = updated == NULL ? &unused : updated;
    *out = false;
    return api_status(engine == NULL ? status_error(STATUS_USAGE, no_engine)
                                     : param_engine_step(&engine->inner, out));
}

static struct status check_place(const struct kiln_engine *engine, const char *directory)
{
    return engine == NULL      ? status_error(STATUS_USAGE, no_engine)
           : directory == NULL ? status_error(STATUS_USAGE, "directory is NULL")
                               : status_ok();
}

struct kiln_status kiln_engine_save(struct kiln_engine *engine, const char *directory)
{
    struct status s = check_place(engine, directory);
    return api_status(failed(s) ? s : param_engine_save(&engine->inner, directory));
}

struct kiln_status kiln_engine_load(struct kiln_engine *engine, const char *directory, bool *found)
{
    if (found == NULL) {
        return api_status(status_error(STATUS_USAGE, "found is NULL"));
    }
    *found = false;
    struct status s = check_place(engine, directory);
    return api_status(failed(s) ? s : param_engine_load(&engine->inner, directory, -1, found));
}
