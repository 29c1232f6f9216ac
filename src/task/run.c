#include "task/run.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/stop.h"
#include "dev/host_memory.h"
#include "io/file.h"
#include "ops/half_ops.h"
#include "task/emulation.h"
#include "task/same_inputs.h"
#include "task/together.h"
#include "train/trainer_state.h"

#include <string.h>

/* The longest name below --output_dir, rounded up: worker_0/eval/events.out.tfevents.TIME.HOST.PID.0 with a
 * host of 64 letters. */
enum { LONGEST_NAME = 128 };

void run_init(struct run *r, const struct run_task *task, void *self, struct run_settings *settings)
{
    r->task = task;
    r->self = self;
    r->settings = settings;
    r->own_lock.fd = -1;
    r->lock = r->lock != NULL ? r->lock : &r->own_lock;
    r->start_ns = settings->exit.start_ns = clock_ns();
    r->loop.self = self;
    r->loop.settings = settings;
    r->loop.trainer = &r->trainer;
    r->loop.ranks = rank_options_mesh(&settings->ranks);
    r->loop.log = &r->metrics;
}

/* ---- what it computes with ---- */

/* Whether the directory's name is valid and can be written, before inputs are read. */
static struct status check_output(const struct run *r)
{
    const struct run_settings *s = r->settings;
    return s->common.dry_run || !together_is_first(&r->loop.ranks.world)
               ? status_ok()
               : status_context(file_check_output_directory(s->common.output_dir, LONGEST_NAME, 0),
                                "--output_dir");
}

static struct status check(struct run *r)
{
    struct run_settings *s = r->settings;
    TRY(rank_options_take(&s->ranks, s->precision.fp8, &s->batch.train_batch_size,
                          &s->batch.gradient_accumulation_steps));
    TRY(r->task->check(r->self));
    FAIL_IF(
        s->early.patience > 0 && s->skip_checkpoint, STATUS_USAGE,
        "--early_stopping_patience needs checkpoints, to return to the best: leave out --skip_checkpoint");
    TRY(profile_check(&s->profile));
    TRY(plain_ops_check(s->watch.plain_ops));
    return check_output(r);
}

/* Whether the file that ends the run is there before it begins. */
static struct status look_for_switch(const struct run *r, bool *is_there)
{
    TRY(together_any(&r->loop.ranks.world, loop_is_switched_off(r->settings), is_there));
    if (*is_there) {
        log_warning("%s, the kill switch, is there: the run does not begin", r->settings->exit.kill_switch);
    }
    return status_ok();
}

static struct status find_device(struct run *r)
{
    const struct run_settings *s = r->settings;
    TRY(backend_find(&r->backend, s->device));
    if (r->loop.ranks.world.rank == 0) {
        backend_announce(&r->backend, s->device);
    }
    TRY((r->learns ? precision_find : precision_find_prediction)(&r->precision, &s->precision,
                                                                 r->backend.device));
    if (!r->precision.rounds_to_f16) {
        return status_ok();
    }
    r->half = half_ops();
    r->backend.ops = &r->half;
    FAIL_IF(
        s->watch.plain_ops != NULL, STATUS_USAGE,
        "--plain_ops cannot be combined with --fp16 on the cpu: the definitions of ops do not round to fp16");
    return status_ok();
}

/* ---- before anything is allocated ---- */

/* A dry run continues without what is not there yet. */
static struct status open_inputs(struct run *r)
{
    bool lacks = r->settings->common.dry_run && r->task->find_missing(r->self, &r->missing);
    TRY(lacks ? r->task->assume(r->self) : r->task->open(r->self));
    r->loop.tokenizer = r->tokenizer;
    return status_ok();
}

static struct status configure(const struct run *r, struct trainer_config *config)
{
    const struct run_settings *s = r->settings;
    *config = (struct trainer_config){
        .net = {.model = r->model,
                .device = r->backend.device,
                .ops = r->backend.ops,
                .precision = r->precision,
                .limits = r->limits,
                .learns = r->learns,
                .whole_logits = tensor_log_wants(&s->tensor_log)},
        .ranks = rank_options_ranks(&s->ranks, s->batch.gradient_accumulation_steps),
        .scale_rule = s->loss_scale,
        .saving = r->learns && !s->skip_checkpoint,
        .seed = (uint64_t)s->seed,
    };
    r->task->configure(r->self, config);
    return trainer_ranks_place(&config->ranks, &config->net);
}

static struct status plan_memory(struct run *r, struct trainer_plan *plan)
{
    struct trainer_config config;
    if (r->model == NULL) {
        return status_ok();
    }
    TRY(configure(r, &config));
    TRY(emulation_check_slice(&config.net, &r->loop.ranks.world));
    slow_work_phase(&r->loop.start, "planning the memory of a step");
    TRY(trainer_plan(plan, &config));
    struct memory_cut cut = r->task->announce(r->self, plan);
    return memory_fit_require(&config, plan, cut, r->settings->common.dry_run);
}

/* Checks that each rank has read the same. */
static struct status compare_inputs(const struct run *r)
{
    struct same_run same = {0};
    same_inputs_add_model(&same, r->model, r->tokenizer);
    r->task->compare(r->self, &same);
    return same_run_check(&same, &r->loop.ranks.world, STATUS_DATA);
}

/* ---- outputs ---- */

uint64_t run_checkpoint_bytes(const struct run *r, int64_t n_saves, int64_t keep_last,
                              const struct trainer_plan *plan)
{
    const uint64_t others =
        5 << 18; /* bytes of a checkpoint besides its tensors, as checkpoint_check_space counts */
    int64_t most = keep_last == 0 ? 1 : keep_last + 1, n = n_saves < most ? n_saves : most;
    return n == 0 ? 0 : (uint64_t)n * (uint64_t)r->loop.ranks.world.size * plan->saving_bytes + others;
}

/* Makes the directory of the summary, as dllog_open does. */
static struct status check_summary(const char *path)
{
    char parent[FILE_PATH_BYTES];
    if (strlen(path) < sizeof parent) {
        file_parent(parent, path);
        TRY(file_make_directories(parent));
    }
    return file_check_output(path, 0);
}

/* Makes the directory first: the files may be in it. */
static struct status make_outputs(struct run *r, uint64_t bytes)
{
    const struct run_settings *s = r->settings;
    const char *traces = s->profile.enabled ? s->profile.directory : NULL;
    TRY(status_context(file_check_output_directory(s->common.output_dir, LONGEST_NAME, bytes),
                       "--output_dir"));
    TRY(file_make_directories(s->common.output_dir));
    TRY(r->lock->fd >= 0 ? status_ok() : dir_lock_acquire(r->lock, s->common.output_dir));
    if (s->json_summary != NULL) {
        TRY(status_context(check_summary(s->json_summary), "--json-summary"));
    }
    if (s->watch.migration_log != NULL) {
        TRY(status_context(file_check_output(s->watch.migration_log, 0), "--migration-log"));
    }
    if (traces != NULL && *traces != '\0') {
        TRY(status_context(file_check_output_directory(traces, LONGEST_NAME, 0), "--tensorboard_logdir"));
    }
    return r->task->claim(r->self);
}

/* The first rank makes the directory that the others write into. */
static struct status open_outputs(struct run *r, const struct trainer_plan *plan)
{
    TRY(comm_agree(&r->loop.ranks.world, together_is_first(&r->loop.ranks.world)
                                             ? make_outputs(r, r->task->disk_bytes(r->self, plan))
                                             : status_ok()));
    return same_inputs_directory(&r->loop.ranks.world, "output_dir", r->settings->common.output_dir);
}

struct status run_open_logs(struct run *r)
{
    const struct run_settings *s = r->settings;
    struct metrics_options logs = {
        .directory = s->common.output_dir,
        .silent = !together_is_first(&r->loop.ranks.world),
        .dllogger_file = s->json_summary,
        .tensorboard = s->enable_tensorboard_logging,
        .progress = !s->common.disable_progress_bar,
        .log_every = s->log_freq,
        .lines_every = s->log_freq_given ? s->log_freq : 0,
        .memory = {s->log_memory_usage ? r->backend.device : NULL, r->free_before, {0}, {0}},
        .process_start_ns = r->start_ns,
    };
    return metrics_open(&r->metrics, &logs);
}

struct metrics_start run_start(const struct run *r)
{
    const struct loop *l = &r->loop;
    return (struct metrics_start){.phase = (int)l->state.phase,
                                  .step = l->state.step,
                                  .global_step = l->state.global_step,
                                  .last_step = l->last_step,
                                  .trainer = &r->trainer,
                                  .n_ranks = r->loop.ranks.world.size,
                                  .flags = r->settings->flags,
                                  .command = r->settings->command};
}

struct model_dir_contents run_contents(const struct run *r, const struct model_family *family)
{
    return (struct model_dir_contents){.family = family,
                                       .task = r->model->task,
                                       .config = r->model->type->config(r->model),
                                       .tokenizer = r->tokenizer};
}

struct status run_export(struct run *r, const char *path, const struct model_family *family)
{
    struct model_dir_contents contents = run_contents(r, family);
    TRY(trainer_state_export(&r->trainer, &r->loop.ranks.world, path, &contents));
    log_info("saved %s", path);
    return status_ok();
}

/* ---- the run ---- */

static struct status make_trainer(struct run *r, const struct trainer_plan *plan)
{
    const struct run_settings *s = r->settings;
    struct trainer_config config;
    TRY(rank_options_open_watch(&s->ranks, &r->watch, &r->backend, s->names->command, &s->watch));
    TRY(configure(r, &config));
    r->free_before = config.net.device->free_bytes();
    r->taken_bytes = host_memory_taken();
    slow_work_phase(&r->loop.start, "drawing the weights of a new model, %.1f M parameters,",
                    (double)plan->net.n_params / 1e6);
    TRY(trainer_init(&r->trainer, &config));
    if (together_is_first(&r->loop.ranks.world)) {
        exec_keep_in(&r->trainer.net.x, s->common.output_dir);
    }
    return status_ok();
}

/* Runs all phases that ranks do together. */
static struct status run_phases(struct run *r)
{
    struct trainer_plan plan = {0};
    TRY(open_inputs(r));
    TRY(plan_memory(r, &plan));
    if (r->missing.n > 0) {
        missing_end(&r->missing);
    }
    if (r->settings->common.dry_run) {
        return status_ok();
    }
    TRY(compare_inputs(r));
    TRY(open_outputs(r, &plan));
    TRY(make_trainer(r, &plan));
    TRY(r->task->restore(r->self));
    return r->task->train(r->self);
}

/* Runs the phases; then the others end, and the first rank predicts: they would have to wait for it longer
 * than ranks wait for each other. */
static struct status run_and_predict(struct run *r)
{
    struct status s = stop_explain(run_phases(r));
    if (r->task->predict == NULL) {
        return s;
    }
    TRY(comm_agree(&r->loop.ranks.world, s));
    return r->settings->common.dry_run || !together_is_first(&r->loop.ranks.world)
               ? status_ok()
               : stop_explain(r->task->predict(r->self));
}

struct status run_all(struct run *r)
{
    bool is_switched = false;
    stop_install();
    struct status s = check(r);
    s = failed(s) ? s : look_for_switch(r, &is_switched);
    s = failed(s) || is_switched ? s : find_device(r);
    if (failed(s) || is_switched) {
        return r->task->predict != NULL ? comm_agree(&r->loop.ranks.world, s) : s;
    }
    s = run_and_predict(r);
    loop_close(&r->loop);
    metrics_close(&r->metrics);
    trainer_fini(&r->trainer);
    r->task->close(r->self);
    dir_lock_release(&r->own_lock);
    run_watch_close(&r->watch, s);
    return s;
}
