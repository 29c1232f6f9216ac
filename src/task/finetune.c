#include "task/finetune_job.h"

#include "nn/vector_head.h"
#include "core/log.h"
#include "core/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status finetune_output_path(char path[MODEL_DIR_PATH_BYTES], const struct finetune_options *o,
                                   const char *name)
{
    int n = snprintf(path, MODEL_DIR_PATH_BYTES, "%s/%s", o->run.common.output_dir, name);
    FAIL_IF(n >= MODEL_DIR_PATH_BYTES, STATUS_USAGE, "the path of --output_dir is too long");
    return status_ok();
}

static struct status train_head(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    const struct finetune_trained *result = &j->result;
    char path[MODEL_DIR_PATH_BYTES];
    TRY(finetune_train(j));
    loop_close(&j->run.loop); /* predictions do not need its memory */
    j->run.loop = (struct loop){.ranks = j->run.loop.ranks};
    log_info("e2e_train_time %.1f s, training_sequences_per_second %.2f, final_loss %.4f", result->seconds,
             result->sequences_per_second, result->final_loss);
    if (result->n_steps > 0 && result->n_skipped == result->n_steps) {
        log_warning("the gradients of every step overflowed, so the model learned nothing: train longer, or "
                    "give a --loss_scale");
    }
    metrics_event(&j->run.metrics, "trained",
                  json_pack("{s:I, s:f, s:f, s:f}", "steps", (json_int_t)result->n_steps, "e2e_train_time",
                            result->seconds, "training_sequences_per_second", result->sequences_per_second,
                            "final_loss", result->final_loss));
    if (o->eval_file != NULL) {
        finetune_keep_score(j, "heldout_loss", result->heldout_loss);
    }
    if (o->run.skip_checkpoint) {
        return status_ok();
    }
    TRY(finetune_output_path(path, o, "model"));
    TRY(run_export(&j->run, path, j->open.model.family));
    return j->task->add_files != NULL && j->run.loop.ranks.world.rank == 0
               ? j->task->add_files(j->open.self, path)
               : status_ok();
}

static struct status open_inputs(void *self)
{
    struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    TRY(finetune_finished_check(j));
    slow_work_phase(&j->run.loop.start, "opening %s", o->run.init_checkpoint);
    TRY(finetune_open_model(j));
    slow_work_phase(&j->run.loop.start, "reading and tokenizing the texts");
    TRY(j->task->read(j->open.self, &j->open));
    if (o->do_train) {
        TRY(finetune_train_limits(j));
    }
    if (o->eval_file != NULL) {
        j->limits = batch_limits_both(
            j->limits, text_batch_limits(o->predict_batch_size, j->open.heldout.source.max_length, 0));
    }
    struct batch_limits of_predictions =
        o->do_predict ? finetune_predict_limits(j) : (struct batch_limits){0};
    j->run.limits = batch_limits_both(j->limits, of_predictions);
    TRY(j->open.model.family->create(&j->model, j->open.model.config, j->task->task));
    if (j->options->do_train && j->task->learns_vectors) {
        TRY(vector_head_add(j->model));
    }
    j->run.model = j->model;
    j->run.tokenizer = &j->open.model.tokenizer;
    return status_ok();
}

static void configure(const void *self, struct trainer_config *config)
{
    const struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    config->optimizer = optimizer_defaults(&optimizer_adamw);
    config->rates.freeze = o->do_train ? o->freeze : NULL;
    config->rates.layer_decay = o->layerwise_lr_decay;
    j->task->set_optimizer(j->open.self, &config->optimizer);
}

/* Host memory of this rank's batches of a step, and of one of held-out text. */
static size_t bytes_of_batches(const struct finetune_job *j)
{
    int64_t n_ranks = j->run.loop.ranks.world.size;
    int64_t n = (j->options->run.batch.gradient_accumulation_steps + n_ranks - 1) / n_ranks +
                (j->options->eval_file != NULL);
    return j->options->do_train ? (size_t)n * batch_bytes(&j->model->layout, j->limits) : 0;
}

static struct memory_cut announce(const void *self, const struct trainer_plan *plan)
{
    const struct finetune_job *j = self;
    const struct finetune_options *o = j->options;
    const struct run_settings *s = &o->run;
    size_t batches = bytes_of_batches(j);
    log_info("model: %s: %.2f M parameters, %s; memory %.1f MiB", s->init_checkpoint,
             (double)plan->net.n_params / 1e6, precision_name(j->run.precision),
             (double)(plan->total_bytes + batches) / 0x1p20);
    if (plan->n_frozen > 0) {
        log_info("frozen: %.2f M parameters are not trained", (double)plan->n_frozen / 1e6);
    }
    rank_options_announce(&s->ranks, s->batch.train_batch_size, s->batch.gradient_accumulation_steps);
    return o->do_train ? (struct memory_cut){.flag = s->names->batch,
                                             .batch_size = s->batch.train_batch_size,
                                             .n_micro = s->batch.gradient_accumulation_steps,
                                             .can_cut = true,
                                             .n_processes = j->run.loop.ranks.world.n_local,
                                             .batch_bytes = batches}
                       : (struct memory_cut){.flag = "--predict_batch_size",
                                             .batch_size = o->predict_batch_size,
                                             .n_micro = 1,
                                             .n_processes = 1};
}

/* The examples themselves are compared as the data of a run to resume. */
static void compare(const void *self, struct same_run *same)
{
    const struct finetune_job *j = self;
    same_run_add_hash(same, "the number of training features", (uint64_t)j->open.train.source.n);
    same_run_add_hash(same, "the number of features of --eval_file", (uint64_t)j->open.heldout.source.n);
}

/* The checkpoints and the fine-tuned model. */
static uint64_t disk_bytes(const void *self, const struct trainer_plan *plan)
{
    const struct finetune_job *j = self;
    const struct run_settings *s = &j->options->run;
    if (!j->options->do_train || s->skip_checkpoint) {
        return 0;
    }
    int64_t interval = s->num_steps_per_checkpoint, steps = finetune_train_steps(j);
    int64_t n_saves = interval > 0 ? steps / interval : 0, kept = FINETUNE_KEPT;
    n_saves = s->resume_from_checkpoint && n_saves > 1 ? 1 : n_saves;
    if (s->early.patience > 0) { /* the best checkpoint is saved when it occurs, and kept */
        n_saves += 2;
        kept++;
    }
    return run_checkpoint_bytes(&j->run, n_saves, kept, plan) + (uint64_t)plan->net.n_params * sizeof(float);
}

static struct status restore(void *self)
{
    struct finetune_job *j = self;
    TRY(stop_before_work());
    TRY(run_open_logs(&j->run));
    slow_work_phase(&j->run.loop.start, "reading the weights of %s,", j->options->run.init_checkpoint);
    TRY(finetune_load_weights(j));
    return j->options->do_train ? finetune_train_restore(j) : status_ok();
}

static struct status train(void *self)
{
    struct finetune_job *j = self;
    slow_work_phase(&j->run.loop.start, NULL);
    TRY(stop_before_work());
    if (j->options->do_train) {
        return train_head(j);
    }
    metrics_start(&j->run.metrics, &(struct metrics_start){.task = j->open.predict.task,
                                                           .drop_in = DROP_IN_FINETUNING,
                                                           .phase = 1,
                                                           .trainer = &j->run.trainer,
                                                           .flags = j->options->run.flags});
    return status_ok();
}

static void close_job(void *self)
{
    struct finetune_job *j = self;
    finetune_train_close(j);
    free(j->model);
    model_dir_close(&j->open.model);
}

static const struct run_task tuning = {.check = finetune_check,
                                       .find_missing = finetune_find_missing,
                                       .open = open_inputs,
                                       .assume = finetune_assume,
                                       .configure = configure,
                                       .announce = announce,
                                       .compare = compare,
                                       .disk_bytes = disk_bytes,
                                       .claim = finetune_finished_remove,
                                       .restore = restore,
                                       .train = train,
                                       .predict = finetune_predict,
                                       .close = close_job};

static struct status run_task(const struct finetune_task *task, void *self,
                              const struct finetune_options *of_one)
{
    struct finetune_options all = *of_one;
    const struct run_flag_names names = {.data = "--train_file",
                                         .output = "--output_dir",
                                         .resume = "--resume_from_checkpoint",
                                         .batch = "--train_batch_size",
                                         .command = task->command,
                                         .tunes = true};
    struct finetune_job j = {.options = &all,
                             .task = task,
                             .open = {.self = self, .options = &all},
                             .run = {.learns = all.do_train}};
    all.run.names = &names;
    run_init(&j.run, &tuning, &j, &all.run);
    return run_all(&j.run);
}

struct status finetune_run_one(const struct finetune_task *task, const void *options)
{
    const struct finetune_options *o = options;
    const void **self = calloc(1, task->self_bytes);
    struct missing missing = {0};
    FAIL_IF(self == NULL, STATUS_MEMORY, "out of memory for a command");
    *self = options;
    if (o->run.common.dry_run && task->find_missing != NULL) {
        task->find_missing(options, &missing);
    }
    struct status s = run_task(task, self, o);
    task->close(self);
    free(self);
    return s;
}

struct status finetune_run(const struct finetune_task *task, const void *options)
{
    const struct finetune_options *o = options;
    return o->seeds > 0 ? finetune_series(task, options) : finetune_run_one(task, options);
}
