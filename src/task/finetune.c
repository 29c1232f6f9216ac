#include "task/finetune.h"

#include "core/clock.h"
#include "core/integers.h"
#include "core/log.h"
#include "core/slow_work.h"
#include "core/stop.h"
#include "ops/half_ops.h"
#include "pass/network_files.h"
#include "serve/predict.h"
#include "task/finetune_finished.h"
#include "task/finetune_missing.h"
#include "task/run_outputs.h"
#include "task/same_inputs.h"
#include "task/seed_series.h"
#include "task/together.h"
#include "text/tokenizer_open.h"
#include "train/memory_fit.h"
#include "train/trainer_state.h"
#include "watch/run_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of a running command. */
struct job {
    struct finetune open;                   /* the part that the task sees */
    const struct finetune_options *options; /* of all ranks: the batch is the global one */
    const struct finetune_task *task;
    struct comm world;
    struct backend backend;
    struct ops half; /* the backend's, where precision.rounds_to_f16 */
    struct precision precision;
    struct run_watch watch;
    struct model *model; /* owned */
    struct trainer trainer;
    struct metrics log;
    struct dir_lock lock;
    bool ready; /* the model is there */
    struct slow_work start;
};

static struct status check_evaluation(const struct finetune_options *o)
{
    if (o->eval_file != NULL && !o->do_train) {
        return status_error(
            STATUS_USAGE,
            "--eval_file is evaluated during training: add --do_train, or give the file as --predict_file");
    }
    if (o->eval_file == NULL && (o->early.patience > 0 || o->eval_steps > 0)) {
        return status_error(STATUS_USAGE,
                            "--%s needs --eval_file, labelled data that is not used for training",
                            o->early.patience > 0 ? "early_stopping_patience" : "eval_steps");
    }
    if (o->early.patience > 0 && o->skip_checkpoint) {
        return status_error(STATUS_USAGE, "--early_stopping_patience needs checkpoints, to return to the "
                                          "best: leave out --skip_checkpoint");
    }
    return status_ok();
}

static struct status check_options(const struct finetune_options *o, const char *predictions)
{
    if (!o->do_train && !o->do_predict) {
        return status_error(STATUS_USAGE, "nothing to do: give --do_train, --do_predict or both");
    }
    if (o->do_train && o->train_file == NULL) {
        return status_error(STATUS_USAGE, "--do_train needs --train_file");
    }
    if (o->do_predict && o->predict_file == NULL) {
        return status_error(STATUS_USAGE, "--do_predict needs --predict_file");
    }
    if (o->do_eval && !o->do_predict) {
        return status_error(STATUS_USAGE, "--do_eval scores predictions: add --do_predict");
    }
    TRY(check_evaluation(o));
    TRY(profile_check(&o->profile));
    TRY(plain_ops_check(o->watch.plain_ops));
    if (o->do_train && o->max_steps <= 0 && o->num_train_epochs < 1) {
        return status_error(STATUS_USAGE, "--num_train_epochs %g is less than one whole epoch",
                            o->num_train_epochs);
    }
    if (rank_options_world(&o->ranks).rank > 0) {
        return status_ok();
    }
    TRY(finetune_finished_check(o, predictions));
    return o->dry_run ? status_ok() : run_outputs_check(o->output_dir);
}

/* Opens the model.  A configuration and vocabulary that were given too must be the model's own. */
static struct status open_model(struct job *j)
{
    const struct finetune_options *o = j->options;
    TRY(model_dir_open_given(
        &j->open.model, o->init_checkpoint,
        (struct model_dir_given){.config_file = o->config_file, .vocab_file = o->vocab_file}));
    if (o->config_file != NULL) {
        TRY(status_context(model_dir_check_config(&j->open.model, o->config_file),
                           "%s is not the configuration of %s", o->config_file, o->init_checkpoint));
    }
    if (o->vocab_file != NULL) {
        struct tokenizer given;
        TRY(tokenizer_open_vocabulary(&given, o->vocab_file, false));
        bool same = given.hash == j->open.model.tokenizer.hash;
        tokenizer_fini(&given);
        if (!same) {
            return status_error(STATUS_DATA, "%s is not the vocabulary of %s", o->vocab_file,
                                o->init_checkpoint);
        }
    }
    int64_t positions = model_dir_sizes(&j->open.model).max_length;
    if (o->max_seq_length > positions) {
        return status_error(STATUS_USAGE, "--max_seq_length %lld is more than the %lld positions of %s",
                            (long long)o->max_seq_length, (long long)positions, o->init_checkpoint);
    }
    if (!o->do_lower_case) {
        return status_ok();
    }
    if (!j->open.model.tokenizer.lower_case) {
        log_warning("%s is a cased model, but --do_lower_case was given: its text is lower-cased",
                    o->init_checkpoint);
    }
    return tokenizer_set_lower_case(&j->open.model.tokenizer, true);
}

static struct batch_limits predict_limits(const struct finetune_options *o, const struct finetune_data *data)
{
    return packer_limits(o->predict_batch_size * data->source.max_length, data->source.max_length);
}

static struct status limits_of(const struct job *j, struct batch_limits *train, struct batch_limits *predict)
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
        *predict = predict_limits(o, &j->open.predict);
    }
    return status_ok();
}

/* Room for the batches of training and of prediction. */
static struct trainer_config trainer_config_of(const struct job *j, struct batch_limits train,
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
        .loss_scale = o->loss_scale,
        .optimizer = optimizer_defaults(&optimizer_adamw),
        .rates = {.freeze = o->do_train ? o->freeze : NULL, .layer_decay = o->layerwise_lr_decay},
        .saving = o->do_train && !o->skip_checkpoint,
        .seed = (uint64_t)o->seed,
    };
    j->task->set_optimizer(j->open.self, &config.optimizer);
    rank_options_configure(&o->ranks, &config);
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

/* As the working copy in fp16 has them; vectors are read in fp32 there too. */
static void round_matrices(struct trainer *t)
{
    for (int i = 0; i < t->net.params.n; i++) {
        const struct param *p = &t->net.params.params[i];
        if (p->n_dims == 2) {
            half_ops_round_tensor(param_view(p, t->net.master));
        }
    }
    network_weights_changed(&t->net);
}

/* Whether the files lack all tensors of a part that may be new. */
static bool lacks_head(const struct job *j)
{
    const struct model_files *files = &j->open.model.files;
    unsigned present = 0;
    for (int i = 0; i < files->n_tensors; i++) {
        present |= 1U << files->tensors[i].as.part;
    }
    return (j->task->may_be_new & ~present) != 0;
}

/* Gives a model that nobody trains a random head in place of one that its files lack.  A trainer that learns
 * has drawn all weights already. */
static struct status draw_head(struct job *j)
{
    const struct model_dir *m = &j->open.model;
    if (j->options->do_train || !j->task->predicts_untrained || !lacks_head(j)) {
        return status_ok();
    }
    if (rank_options_world(&j->options->ranks).rank == 0) {
        log_warning("%s is a %s: the head of a %s is new and random, and without --do_train nothing trains "
                    "it, so the predictions are random; for good ones give a fine-tuned model",
                    j->options->init_checkpoint, m->family->class_of(m->task),
                    m->family->class_of(j->task->task));
    }
    return trainer_initialize(&j->trainer);
}

/* The head may be new if it is going to be trained, or if predictions of a random one are wanted. */
static struct status load_weights(struct job *j)
{
    struct load_report report;
    bool may_lack = j->options->do_train || j->task->predicts_untrained;
    TRY(draw_head(j));
    TRY(network_files_load(&j->trainer.net, &j->open.model, j->task->task, may_lack ? j->task->may_be_new : 0,
                           &report));
    load_report_print(&report, j->options->init_checkpoint);
    if (j->precision.rounds_to_f16) {
        round_matrices(&j->trainer);
    }
    return status_ok();
}

struct status finetune_output_path(char path[MODEL_DIR_PATH_BYTES], const struct finetune_options *o,
                                   const char *name)
{
    int n = snprintf(path, MODEL_DIR_PATH_BYTES, "%s/%s", o->output_dir, name);
    return n < MODEL_DIR_PATH_BYTES ? status_ok()
                                    : status_error(STATUS_USAGE, "the path of --output_dir is too long");
}

static void keep_score(const struct job *j, const char *name, double value)
{
    if (j->options->scores != NULL) {
        score_list_add(j->options->scores, name, value);
    }
}

static struct status train(struct job *j)
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
        keep_score(j, "heldout_loss", result.heldout_loss);
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

/* With training, training is what is timed. */
static struct status run_request(struct job *j, struct packer *p, struct request *r)
{
    const struct finetune_options *o = j->options;
    struct profile profile = {0};
    struct profile_options times = o->profile;
    times.enabled = times.enabled && !o->do_train;
    struct status s = profile_open(&profile, &times, o->output_dir, &j->trainer.net.x);
    j->trainer.net.profile = &profile;
    if (!failed(s)) {
        stop_begin_work();
        s = predict_run(p, r, &(struct predict_options){&j->log.progress, stop_requested});
    }
    profile_close(&profile);
    j->trainer.net.profile = NULL;
    return s;
}

static struct status compute(struct job *j, struct request *r)
{
    struct packer p;
    struct status s = packer_init(&p, &j->trainer.net, predict_limits(j->options, &j->open.predict),
                                  tokenizer_tail_id(&j->open.model.tokenizer), r->outputs);
    s = failed(s) ? s : run_request(j, &p, r);
    packer_fini(&p);
    return s;
}

/* Scores the predictions, for people, for programs and for a series. */
static struct status score(struct job *j)
{
    struct score_list scores = {0};
    struct buf line = {0};
    json_t *fields = json_object(), *tables = json_array();
    struct status scored = j->task->score(j->open.self, &scores, tables);
    for (int i = 0; i < scores.n; i++) {
        const struct score *s = &scores.scores[i];
        buf_printf(&line, "%s%s %.4f", i == 0 ? "" : ", ", s->name, s->value);
        json_object_set_new(fields, s->name, json_real(s->value));
        keep_score(j, s->name, s->value);
    }
    if (!failed(scored) && scores.n > 0) {
        log_info("%s", buf_text(&line));
        json_object_set(fields, "tables", tables);
        metrics_event(&j->log, "score", json_incref(fields));
    }
    json_decref(fields);
    json_decref(tables);
    buf_fini(&line);
    return scored;
}

static struct status predict(struct job *j)
{
    const struct finetune_options *o = j->options;
    const struct finetune_data *data = &j->open.predict;
    struct buf written = {0};
    struct request request = j->task->prediction(j->open.self);
    metrics_event(&j->log, "predicting",
                  json_pack("{s:I, s:I, s:I}", data->unit, (json_int_t)data->n_examples, "features",
                            (json_int_t)data->source.n, "batch_size", (json_int_t)o->predict_batch_size));
    int64_t start = clock_ns();
    TRY(compute(j, &request));
    double seconds = clock_since_s(start), rate = (double)data->source.n / seconds;
    struct status s = j->task->write(j->open.self, &written);
    if (!failed(s)) {
        log_info("e2e_inference_time %.1f s, inference_sequences_per_second %.2f; wrote %s", seconds, rate,
                 buf_text(&written));
        metrics_event(&j->log, "predicted",
                      json_pack("{s:I, s:f, s:f}", "features", (json_int_t)data->source.n,
                                "e2e_inference_time", seconds, "inference_sequences_per_second", rate));
    }
    buf_fini(&written);
    return failed(s) || !o->do_eval ? s : score(j);
}

static struct status open_logs(struct job *j)
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
static struct status open_outputs(struct job *j, const struct trainer_plan *plan)
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
        s = finetune_finished_remove(o, j->task->predictions);
    }
    return comm_agree(&j->world, s);
}

static struct status plan_job(const struct job *j, const struct trainer_config *config,
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
static struct status plan_without_inputs(struct job *j, const struct missing *missing)
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
static struct status compare_inputs(struct job *j)
{
    struct same_run same = {0};
    same_inputs_add_model(&same, j->model, &j->open.model.tokenizer);
    same_run_add_hash(&same, "the number of training features", (uint64_t)j->open.train.source.n);
    same_run_add_hash(&same, "the number of features of --eval_file", (uint64_t)j->open.heldout.source.n);
    return same_run_check(&same, &j->world, STATUS_DATA);
}

/* All that ranks do together: everything but predictions. */
static struct status run_job(struct job *j)
{
    const struct finetune_options *o = j->options;
    struct batch_limits train_limits = {0}, limits = {0};
    struct missing missing = {0};
    struct trainer_plan plan;
    if (o->dry_run && finetune_find_missing(o, &missing)) {
        return plan_without_inputs(j, &missing);
    }
    slow_work_phase(&j->start, "opening %s", o->init_checkpoint);
    TRY(open_model(j));
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
    TRY(load_weights(j));
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
static struct status run_all(struct job *j)
{
    TRY(comm_agree(&j->world, stop_explain(run_job(j))));
    bool predicts = j->ready && j->options->do_predict && together_is_first(&j->world);
    return predicts ? stop_explain(predict(j)) : status_ok();
}

/* What a run computes with; nothing of it must be closed. */
static struct status find_means(struct job *j)
{
    const struct finetune_options *o = j->options;
    TRY(check_options(o, j->task->predictions));
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
    struct job j = {.options = &all,
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
