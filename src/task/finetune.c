#include "task/finetune.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/stop.h"
#include "ops/half_ops.h"
#include "task/finetune_finished.h"
#include "task/finetune_job.h"
#include "task/finetune_missing.h"
#include "task/run_outputs.h"
#include "task/same_inputs.h"
#include "task/seed_series.h"
#include "task/together.h"
#include "train/memory_fit.h"
#include "train/trainer_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct status limits_of(const struct finetune_job *j, struct batch_limits *train,
                               struct batch_limits *predict)
{
    const struct finetune_options *o = j->options;
    if (o->do_train) {
        TRY(finetune_train_limits(&j->open.train, o, train));
    }
    if (o->eval_file != NULL) {
        *train = batch_limits_both(
            *train, text_batch_limits(o->predict_batch_size, j->open.heldout.source.max_length, 0));
    }
    if (o->do_predict) {
        *predict = finetune_predict_limits(o, &j->open.predict);
    }
    return status_ok();
}

/* Room for the batches of training and of prediction. */
static struct trainer_config trainer_config_of(const struct finetune_job *j, struct batch_limits train,
                                               struct batch_limits predict)
{
    const struct finetune_options *o = j->options;
    struct trainer_config config = {
        .net =
            {
                .model = j->model,
                .device = j->backend.device,
                .ops = j->backend.ops,
                .precision = j->precision,
                .limits = batch_limits_both(train, predict),
                .learns = o->do_train,
                .whole_logits = tensor_log_wants(&o->tensor_log),
            },
        .ranks = rank_options_ranks(&o->ranks, o->gradient_accumulation_steps),
        .loss_scale = o->loss_scale,
        .optimizer = optimizer_defaults(&optimizer_adamw),
        .rates = {.freeze = o->do_train ? o->freeze : NULL, .layer_decay = o->layerwise_lr_decay},
        .saving = o->do_train && !o->skip_checkpoint,
        .seed = (uint64_t)o->seed,
    };
    j->task->set_optimizer(j->open.self, &config.optimizer);
    return config;
}

static struct memory_cut memory_cut_of(const struct finetune_options *o, size_t batch_bytes)
{
    if (!o->do_train) {
        return (struct memory_cut){.flag = "--predict_batch_size",
                                   .batch_size = o->predict_batch_size,
                                   .n_micro = 1,
                                   .n_processes = 1};
    }
    return (struct memory_cut){.flag = "--train_batch_size",
                               .batch_size = o->train_batch_size,
                               .n_micro = o->gradient_accumulation_steps,
                               .can_cut = true,
                               .n_processes = rank_options_world(&o->ranks).n_local,
                               .batch_bytes = batch_bytes};
}

struct status finetune_output_path(char path[MODEL_DIR_PATH_BYTES], const struct finetune_options *o,
                                   const char *name)
{
    int n = snprintf(path, MODEL_DIR_PATH_BYTES, "%s/%s", o->output_dir, name);
    return n < MODEL_DIR_PATH_BYTES ? status_ok()
                                    : status_error(STATUS_USAGE, "the path of --output_dir is too long");
}

static struct status train(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    struct finetune_trained result;
    char path[MODEL_DIR_PATH_BYTES];
    TRY(finetune_train(&j->trainer, &j->open.train, &j->open.heldout, &j->open.model.tokenizer, o, &j->log,
                       &result));
    log_info("e2e_train_time %.1f s, training_sequences_per_second %.2f, final_loss %.4f", result.seconds,
             result.sequences_per_second, result.final_loss);
    if (result.n_steps > 0 && result.n_skipped == result.n_steps) {
        log_warning("the gradients of every step overflowed, so the model learned nothing: train longer, or "
                    "give a --loss_scale");
    }
    metrics_event(&j->log, "trained",
                  json_pack("{s:I, s:f, s:f, s:f}", "steps", (json_int_t)result.n_steps, "e2e_train_time",
                            result.seconds, "training_sequences_per_second", result.sequences_per_second,
                            "final_loss", result.final_loss));
    if (o->eval_file != NULL) {
        finetune_keep_score(j, "heldout_loss", result.heldout_loss);
    }
    if (o->skip_checkpoint) {
        return status_ok();
    }
    TRY(finetune_output_path(path, o, "model"));
    struct model_dir_contents contents = {
        .family = j->open.model.family,
        .task = j->task->task,
        .config = j->open.model.config,
        .tokenizer = &j->open.model.tokenizer,
    };
    TRY(trainer_state_export(&j->trainer, &j->world, path, &contents));
    log_info("saved %s", path);
    return status_ok();
}

static struct status open_logs(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    const struct device *device = j->backend.device;
    struct metrics_options logs = {
        .directory = o->output_dir,
        .silent = !together_is_first(&j->world),
        .dllogger_file = o->json_summary,
        .tensorboard = o->enable_tensorboard_logging,
        .progress = !o->disable_progress_bar,
        .log_every = o->log_freq,
        .lines_every = o->log_freq_given ? o->log_freq : 0,
        .memory = {o->log_memory_usage ? device : NULL, device->free_bytes(), {0}, {0}},
        .process_start_ns = clock_ns(),
    };
    return metrics_open(&j->log, &logs);
}

/* Room on disk for the checkpoints and the fine-tuned model. */
static struct status open_outputs(struct finetune_job *j, const struct trainer_plan *plan)
{
    const struct finetune_options *o = j->options;
    int64_t interval = o->num_steps_per_checkpoint;
    int64_t steps = o->do_train ? finetune_train_steps(&j->open.train, o) : 0;
    int64_t n_saves = interval > 0 ? steps / interval : 0, kept = FINETUNE_TRAIN_KEPT;
    n_saves = o->resume_from_checkpoint && n_saves > 1 ? 1 : n_saves;
    if (o->early.patience > 0) { /* the best is saved when it comes, and kept */
        n_saves += 2;
        kept++;
    }
    uint64_t checkpoints =
        run_outputs_checkpoint_bytes(n_saves, kept, (uint64_t)j->world.size * plan->saving_bytes);
    bool saves = o->do_train && !o->skip_checkpoint;
    struct run_outputs outputs = {
        .directory = o->output_dir,
        .json_summary = o->json_summary,
        .migration_log = o->watch.migration_log,
        .trace_dir = o->profile.enabled ? o->profile.directory : NULL,
        .bytes = saves ? checkpoints + (uint64_t)plan->net.n_params * sizeof(float) : 0,
    };
    struct status s = together_is_first(&j->world) ? run_outputs_open(&outputs, &j->lock) : status_ok();
    if (!failed(s) && together_is_first(&j->world)) {
        s = finetune_finished_remove(o, j->task, j->open.model.place.directory);
    }
    return comm_agree(&j->world, s);
}

static struct status plan_job(const struct finetune_job *j, const struct trainer_config *config,
                              struct batch_limits train, struct trainer_plan *plan)
{
    const struct finetune_options *o = j->options;
    size_t batches = o->do_train ? finetune_train_batch_bytes(o, &j->model->layout, train) : 0;
    TRY(trainer_plan(plan, config));
    log_info("model: %s: %.2f M parameters, %s; memory %.1f MiB", o->init_checkpoint,
             (double)plan->net.n_params / 1e6, precision_name(j->precision),
             (double)(plan->total_bytes + batches) / 0x1p20);
    if (plan->n_frozen > 0) {
        log_info("frozen: %.2f M parameters are not trained", (double)plan->n_frozen / 1e6);
    }
    rank_options_announce(&o->ranks, o->train_batch_size, o->gradient_accumulation_steps);
    return memory_fit_require(config, plan, memory_cut_of(o, batches), o->dry_run);
}

/* A dry run goes on without what is not there yet. */
static struct status plan_without_inputs(struct finetune_job *j, const struct missing *missing)
{
    struct batch_limits train = {0}, predict = {0};
    struct trainer_plan plan;
    TRY(finetune_assume_limits(j->options, &train, &predict));
    TRY(finetune_assume_model(&j->model, j->options, j->task->task));
    if (j->model != NULL) {
        struct trainer_config config = trainer_config_of(j, train, predict);
        TRY(plan_job(j, &config, train, &plan));
    }
    missing_end(missing);
    return status_ok();
}

/* What each rank has read is the same; the examples are compared as the data that a run goes on with. */
static struct status compare_inputs(struct finetune_job *j)
{
    struct same_run same = {0};
    same_inputs_add_model(&same, j->model, &j->open.model.tokenizer);
    same_run_add_hash(&same, "the number of training features", (uint64_t)j->open.train.source.n);
    same_run_add_hash(&same, "the number of features of --eval_file", (uint64_t)j->open.heldout.source.n);
    return same_run_check(&same, &j->world, STATUS_DATA);
}

/* All that ranks do together: everything but predictions. */
static struct status run_job(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    struct batch_limits train_limits = {0}, limits = {0};
    struct missing missing = {0};
    struct trainer_plan plan;
    if (o->dry_run && finetune_find_missing(o, &missing)) {
        return plan_without_inputs(j, &missing);
    }
    slow_work_phase(&j->start, "opening %s", o->init_checkpoint);
    TRY(finetune_open_model(j));
    slow_work_phase(&j->start, "reading and tokenizing the texts");
    TRY(j->task->read(j->open.self, &j->open));
    TRY(limits_of(j, &train_limits, &limits));
    TRY(j->open.model.family->create(&j->model, j->open.model.config, j->task->task));
    struct trainer_config config = trainer_config_of(j, train_limits, limits);
    slow_work_phase(&j->start, "planning the memory of a step");
    TRY(plan_job(j, &config, train_limits, &plan));
    if (o->dry_run) {
        return status_ok();
    }
    TRY(compare_inputs(j));
    TRY(open_outputs(j, &plan));
    TRY(same_inputs_directory(&j->world, "output_dir", o->output_dir));
    TRY(stop_before_work());
    TRY(open_logs(j));
    TRY(rank_options_open_watch(&o->ranks, &j->watch, &j->backend, j->task->command, &o->watch));
    config.net.ops = j->backend.ops;
    slow_work_phase(&j->start, "allocating the model, and reading the weights of %s,", o->init_checkpoint);
    TRY(trainer_init(&j->trainer, &config));
    if (together_is_first(&j->world)) {
        exec_keep_in(&j->trainer.net.x, o->output_dir);
    }
    TRY(finetune_load_weights(j));
    slow_work_end(&j->start);
    TRY(stop_before_work());
    j->ready = true;
    if (o->do_train) {
        return train(j);
    }
    metrics_start(&j->log, &(struct metrics_start){.task = j->open.predict.task,
                                                   .drop_in = DROP_IN_FINETUNING,
                                                   .phase = 1,
                                                   .trainer = &j->trainer,
                                                   .flags = o->flags});
    return status_ok();
}

/* Then the others end, and the first rank predicts: they would have to wait for it longer than ranks wait for
 * each other. */
static struct status run_all(struct finetune_job *j)
{
    TRY(comm_agree(&j->world, stop_explain(run_job(j))));
    bool predicts = j->ready && j->options->do_predict && together_is_first(&j->world);
    return predicts ? stop_explain(finetune_predict(j)) : status_ok();
}

/* What a run computes with; nothing of it must be closed. */
static struct status find_means(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    TRY(finetune_check_options(o, j->task));
    TRY(backend_find(&j->backend, o->device));
    if (rank_options_world(&o->ranks).rank == 0) {
        backend_announce(&j->backend, o->device);
    }
    TRY((o->do_train ? precision_find : precision_find_prediction)(&j->precision, &o->precision,
                                                                   j->backend.device));
    if (j->precision.rounds_to_f16 && o->watch.plain_ops != NULL) {
        return status_error(STATUS_USAGE, "--plain_ops cannot be combined with --fp16 on the cpu: the "
                                          "definitions of ops do not round to fp16");
    }
    if (j->precision.rounds_to_f16) {
        j->half = half_ops();
        j->backend.ops = &j->half;
    }
    return status_ok();
}

static struct status run_task(const struct finetune_task *task, void *self,
                              const struct finetune_options *of_one)
{
    struct finetune_options all = *of_one;
    all.command = task->command;
    struct finetune_job j = {.options = &all,
                             .task = task,
                             .world = rank_options_world(&all.ranks),
                             .lock = {.fd = -1},
                             .open = {.self = self, .options = &all}};
    stop_install();
    struct status s = rank_options_take(&all.ranks, all.precision.fp8, &all.train_batch_size,
                                        &all.gradient_accumulation_steps);
    s = failed(s) ? s : find_means(&j);
    if (failed(s)) {
        return comm_agree(&j.world, s);
    }
    s = run_all(&j);
    metrics_close(&j.log);
    trainer_fini(&j.trainer);
    if (j.model != NULL) {
        j.model->type->destroy(j.model);
    }
    model_dir_close(&j.open.model);
    slow_work_end(&j.start);
    dir_lock_release(&j.lock);
    run_watch_close(&j.watch, s);
    return s;
}

static struct status run_alone(const struct finetune_task *task, const void *options)
{
    const struct finetune_options *o = options;
    const void **self = calloc(1, task->self_bytes);
    struct missing missing = {0};
    if (self == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a command");
    }
    *self = options;
    if (o->dry_run && task->find_missing != NULL) {
        task->find_missing(options, &missing);
    }
    struct status s = run_task(task, self, o);
    task->close(self);
    free(self);
    return s;
}

/* A task with the options of all runs of its series. */
struct series_task {
    const struct finetune_task *task;
    const void *options;
};

static struct status run_one(const void *self, const struct finetune_options *one)
{
    const struct series_task *t = self;
    void *options = malloc(t->task->options_bytes);
    if (options == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a run");
    }
    memcpy(options, t->options, t->task->options_bytes);
    *(struct finetune_options *)options = *one;
    struct status s = run_alone(t->task, options);
    free(options);
    return s;
}

struct status finetune_run(const struct finetune_task *task, const void *options)
{
    const struct finetune_options *o = options;
    const struct series_task self = {task, options};
    const struct seed_series series = {.options = o, .run = run_one, .self = &self};
    return o->seeds > 0 ? seed_series_run(&series) : run_alone(task, options);
}
