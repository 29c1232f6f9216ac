/* Checkpoints of an engine: those of model/checkpoint.h, whose config.json lists the parameters instead of a
 * model. */
#include "io/dir_lock.h"
#include "io/file.h"
#include "train/param_engine.h"
#include "train/save_ranks.h"
#include "train/trainer_state.h"

#include <string.h>

static const char MODEL_TYPE[] = "kiln_engine";

static json_t *describe(const struct param_table *params)
{
    json_t *list = json_array();
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        json_t *shape = p->n_dims == 1 ? json_pack("[I]", (json_int_t)p->dims[0])
                                       : json_pack("[I, I]", (json_int_t)p->dims[0], (json_int_t)p->dims[1]);
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:b}", "name", p->name, "shape", shape, "decay", (int)p->decay));
    }
    return json_pack("{s:s, s:o}", "model_type", MODEL_TYPE, "parameters", list);
}

/* The first rank's part of a save; the others only write into the directory that it makes. */
static struct status prepare(struct dir_lock *lock, const struct comm *world, const char *directory)
{
    if (world->rank > 0) {
        return status_ok();
    }
    TRY(file_make_directories(directory));
    TRY(dir_lock_acquire(lock, directory));
    return checkpoint_dir_clean(directory);
}

static struct status save(struct param_engine *e, const char *directory, struct checkpoint_contents *c)
{
    struct dir_lock lock = {.fd = -1};
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    x.status = c->config != NULL && c->state != NULL && c->tokenizer != NULL
                   ? prepare(&lock, e->world, directory)
                   : status_error(STATUS_MEMORY, "out of memory for a checkpoint's state");
    struct status s = save_ranks(e->world, &x, directory, c);
    dir_lock_release(&lock);
    return s;
}

struct status param_engine_save(struct param_engine *e, const char *directory)
{
    TRY(e->trainer.net.x.status);
    json_t *config = describe(&e->of.params), *tokenizer = json_object();
    json_t *state = json_pack("{s:I, s:s, s:f}", "global_step", (json_int_t)e->step, "optimizer",
                              e->config.optimizer.kind->name, "learning_rate", e->rate);
    struct checkpoint_contents c = {
        .config = config, .tokenizer = tokenizer, .state = state, .step = e->step};
    trainer_state_slices(&e->trainer, &c);
    struct status s = save(e, directory, &c);
    json_decref(config);
    json_decref(tokenizer);
    json_decref(state);
    return s;
}

/* ---- reading ---- */

/* Sets *chosen, on rank 0, to the step of the checkpoint to resume from, -1 if there is none. */
static struct status choose(int64_t *chosen, const char *directory, int64_t step)
{
    struct checkpoint c;
    bool found = false;
    *chosen = step;
    if (step >= 0) {
        return status_ok();
    }
    TRY(checkpoint_dir_open_newest(&c, directory, &found));
    if (found) {
        *chosen = c.manifest.step;
        checkpoint_close(&c);
    }
    return status_ok();
}

static struct status check_type(const struct checkpoint *c)
{
    const json_t *type = json_object_get(c->config, "model_type");
    return json_is_string(type) && strcmp(json_string_value(type), MODEL_TYPE) == 0
               ? status_ok()
               : status_error(STATUS_DATA, "%s is a checkpoint of `kiln`'s commands, not of an engine",
                              c->path);
}

static struct status read(struct param_engine *e, const struct checkpoint *c)
{
    int64_t step = -1;
    TRY(check_type(c));
    TRY(json_get_int(c->state, c->path, "global_step", true, &step));
    FAIL_IF(step < 0, STATUS_DATA, "%s: \"global_step\" is %lld", c->path, (long long)step);
    struct training_state state = training_state_of(c);
    TRY(trainer_state_resume(&e->trainer, &state));
    e->step = step;
    return status_ok();
}

static struct status open_and_read(struct param_engine *e, const char *directory, int64_t step)
{
    struct checkpoint c;
    TRY(checkpoint_dir_open_step(&c, directory, step));
    struct status s = read(e, &c);
    checkpoint_close(&c);
    return s;
}

struct status param_engine_load(struct param_engine *e, const char *directory, int64_t step, bool *found)
{
    struct exec *x = &e->trainer.net.x;
    int64_t chosen = -1;
    *found = false;
    TRY(x->status);
    TRY(comm_agree(e->world, e->world->rank == 0 ? choose(&chosen, directory, step) : status_ok()));
    comm_broadcast(e->world, x, tensor_1d(&chosen, DTYPE_U8, sizeof chosen), 0);
    if (failed(x->status) || chosen < 0) {
        return x->status;
    }
    struct status s = comm_agree(e->world, open_and_read(e, directory, chosen));
    if (failed(s)) { /* some weights may be those of the file */
        x->status = s;
        return s;
    }
    *found = true;
    param_engine_restart(e);
    return x->status;
}
