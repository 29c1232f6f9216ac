#include "task/pretrain.h"

#include "core/clock.h"
#include "core/log.h"
#include "data/prefetch.h"
#include "dev/host_memory.h"
#include "ops/backend.h"
#include "model/bert_family.h"
#include "model/weights_average.h"
#include "nn/bert_model.h"
#include "task/loop.h"
#include "train/memory_fit.h"
#include "report/metrics.h"
#include "task/pace.h"
#include "task/plateau.h"
#include "task/pretrain_inputs.h"
#include "task/pretrain_ramps.h"
#include "task/pretrain_settings.h"
#include "task/run_outputs.h"
#include "task/together.h"
#include "watch/run_watch.h"
#include "core/stop.h"
#include "pass/network_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Everything a run owns, so that one function frees it all. */
struct run {
    const struct pretrain_options *options; /* of all ranks: the batch is the global one */
    struct comm world;
    struct pretrain_inputs in;
    struct pretrain_progress progress;
    struct bert_model bert;
    struct backend backend;
    struct precision precision;
    struct run_watch watch;
    struct loop loop;
    struct trainer trainer;
    struct evaluation evaluation;
    struct plateau plateau;
    struct pace pace;
    struct prefetch prefetch;
    struct store_check check;
    struct metrics metrics;
    struct dir_lock lock;
    int64_t start_ns;
    size_t taken_bytes; /* of host memory, before the model's is allocated */
    int64_t first_step_ns,
        last_step_ns; /* when the first step of this run ended, and the last so far; 0: none has */
    bool prefetching;
};

static struct trainer_config trainer_config_of(struct run *r)
{
    const struct pretrain_options *o = r->options;
    r->bert = bert_model(&r->in.model, pretrain_task(o));
    struct trainer_config config = {
        .model = &r->bert.model,
        .device = r->backend.device,
        .ops = r->backend.ops,
        .precision = r->precision,
        .loss_scale = o->loss_scale,
        .first_loss_scale = o->init_loss_scale,
        .optimizer = pretrain_optimizer(o),
        .limits = r->in.limits,
        .training = true,
        .saving = !o->skip_checkpoint,
        .recompute = o->checkpoint_activations ? pretrain_recompute(o, &r->in.model) : 0,
        .seed = (uint64_t)o->seed,
    };
    rank_options_configure(&o->ranks, &config);
    return config;
}

static double mib(size_t bytes)
{
    return (double)bytes / 0x1p20;
}

/* Logs what is going to happen. */
static void announce(const struct run *r, const struct trainer_plan *p)
{
    const struct pretrain_options *o = r->options;
    const struct bert_config *m = &r->in.model;
    double step_flops = p->micro_flops * (double)r->in.train.source.n_micro;
    const char *slash = strrchr(o->config_file, '/'), *name = slash != NULL ? slash + 1 : o->config_file;
    log_info("model: %s: %lld layers x %lld%s, %lld heads, feed-forward %lld, vocabulary %lld: %.2f M "
             "parameters, %s, %s",
             name, (long long)m->num_hidden_layers, (long long)m->hidden_size,
             m->layer_norm_large_model ? ", pre-LN" : "", (long long)m->num_attention_heads,
             (long long)m->intermediate_size, (long long)m->vocab_size, (double)p->n_params / 1e6,
             r->loop.state.dtype, o->optimizer);
    rank_options_announce(&o->ranks, o->train_batch_size, o->gradient_accumulation_steps);
    pretrain_inputs_announce(&r->in, o);
    log_info(
        "memory: weights %.1f + gradients %.1f + moments %.1f + activations %.1f + workspace %.1f + saving "
        "%.1f + libraries %.1f = %.1f MiB",
        mib(p->weight_bytes), mib(p->gradient_bytes), mib(p->optimizer_bytes), mib(p->activation_bytes),
        mib(p->workspace_bytes), mib(p->saving_bytes), mib(p->library_bytes), mib(p->total_bytes));
    if (o->total_training_time > 0) {
        log_info("work: phase %lld, %g seconds, at most %.3g GFLOP a step", (long long)r->loop.state.phase,
                 o->total_training_time, step_flops / 1e9);
        return;
    }
    log_info("work: phase %lld, %lld steps, at most %.3g GFLOP a step, %.3g TFLOP in all",
             (long long)r->loop.state.phase, (long long)o->max_steps, step_flops / 1e9,
             step_flops * (double)o->max_steps / 1e12);
}

/* A run accepts weights only of the same architecture and vocabulary. */
static struct status check_same_model(const struct run *r, const struct bert_config *config,
                                      uint64_t vocab_hash, const char *path)
{
    TRY(status_context(bert_config_same_architecture(config, &r->in.model),
                       "%s has another architecture than --config_file", path));
    return pretrain_inputs_check_vocab(&r->in, vocab_hash, path);
}

/* A model without next sentences has other tensors, so neither kind of run goes on from the other. */
static struct status check_task(const struct pretrain_options *o, const struct training_state *from)
{
    const json_t *classes = json_object_get(from->config, "architectures");
    const char *class = json_string_value(json_array_get(classes, 0));
    bool alone = class != NULL && strcmp(class, bert_task_class(BERT_TASK_MASKED_LM)) == 0;
    if (class == NULL || alone == o->no_nsp) {
        return status_ok();
    }
    return status_error(
        STATUS_USAGE,
        "%s is of a run %s --no_nsp: go on %s it, or start from its weights with --init_checkpoint in "
        "another --output_dir",
        from->path, alone ? "with" : "without", alone ? "with" : "without");
}

static struct status check_checkpoint(void *self, const struct training_state *from)
{
    const struct run *r = self;
    struct bert_config saved = r->in.model;
    TRY(check_task(r->options, from));
    TRY(from->config == NULL ? status_ok() : bert_config_parse(&saved, from->config, from->path));
    return check_same_model(r, &saved, from->vocab_hash, from->path);
}

/* Phase 2 begins where phase 1 ended, with its own step 0. */
static struct status begin_phase(void *self, const struct run_state *saved, const char *path)
{
    const struct pretrain_options *o = ((const struct run *)self)->options;
    if (saved->phase > 1) {
        return status_error(STATUS_USAGE, "%s is a checkpoint of phase 2; add --phase2 to continue from it",
                            path);
    }
    if (saved->global_step != o->phase1_end_step) {
        return status_error(
            STATUS_USAGE,
            "%s is at step %lld of phase 1, but --phase1_end_step is %lld; finish phase 1 first, or "
            "pass --phase1_end_step=%lld",
            path, (long long)saved->global_step, (long long)o->phase1_end_step,
            (long long)saved->global_step);
    }
    return status_ok();
}

/* What the run's own files are, where a model has none beside it. */
static struct model_dir_given given_of(const struct run *r)
{
    const char *vocabulary = r->in.vocab_path[0] == '\0' ? NULL : r->in.vocab_path;
    return (struct model_dir_given){r->options->config_file, vocabulary};
}

/* Loads the weights of any model directory; heads that it lacks are new. */
static struct status start_from_model(struct run *r, const char *path)
{
    struct model_dir m;
    struct load_report report;
    TRY(model_dir_open_given(&m, path, given_of(r)));
    struct bert_config config = *bert_family_config(&m);
    if (r->in.model.vocab_size >= m.tokenizer.n) {
        config.vocab_size = r->in.model.vocab_size; /* the number of padding rows may differ */
    }
    struct status s = check_same_model(r, &config, m.tokenizer.hash, path);
    if (!failed(s)) {
        unsigned may_be_new = 1U << NAMES_POOLER | 1U << NAMES_MLM | 1U << NAMES_NSP;
        s = network_files_load(&r->trainer.net, &m, pretrain_task(r->options), may_be_new, &report);
    }
    if (!failed(s)) {
        load_report_print(&report, path);
    }
    model_dir_close(&m);
    return s;
}

/* --init_checkpoint asks for its weights, not for what another program left in --output_dir. */
static struct training_state_place place_of(const struct run *r)
{
    const struct pretrain_options *o = r->options;
    return (struct training_state_place){.step = o->resume_step,
                                         .others = o->resume_from_checkpoint && o->init_checkpoint == NULL,
                                         .given = given_of(r),
                                         .task = BERT_TASK_PRETRAINING};
}

/* Loads the weights and position to start from: the newest checkpoint, a given model, or nothing. */
static struct status restore(struct run *r)
{
    const struct pretrain_options *o = r->options;
    bool found;
    r->loop.place = place_of(r);
    TRY(loop_restore(&r->loop, &found));
    if (found) {
        return status_ok();
    }
    if (o->init_checkpoint != NULL) {
        return start_from_model(r, o->init_checkpoint);
    }
    if (o->phase2) {
        return status_error(STATUS_NO_CHECKPOINT, "--phase2 continues phase 1, but %s has no checkpoint",
                            o->output_dir);
    }
    if (o->resume_from_checkpoint) {
        log_info("%s has no checkpoint yet: starting from the beginning", o->output_dir);
    }
    return status_ok();
}

static struct status evaluate(void *self, double *loss)
{
    struct run *r = self;
    struct trainer_result result;
    *loss = NAN;
    if (r->evaluation.batches.n_micro == 0) {
        return status_ok();
    }
    profile_phase(&r->loop.profile, "evaluation");
    TRY(evaluation_run(&r->evaluation, &r->trainer, &result));
    profile_phase(&r->loop.profile, NULL);
    metrics_evaluation(&r->metrics, r->loop.state.step, &result, &r->evaluation.unigram);
    plateau_watch(&r->plateau, r->loop.state.step, &result, &r->evaluation.unigram);
    *loss = trainer_result_loss(&result);
    return status_ok();
}

static struct status open_prefetch(struct run *r, int64_t first)
{
    TRY(prefetch_open_part(&r->prefetch, &r->in.train.source, r->world.rank, r->world.size,
                           rank_options_in_turn(&r->options->ranks), first, r->loop.last_step));
    r->prefetching = true;
    return status_ok();
}

static struct status next_batch(void *self, int64_t step, const struct batch_step **batch)
{
    struct run *r = self;
    if (step != r->prefetch.next) { /* the loop has gone back, or left steps out */
        prefetch_close(&r->prefetch);
        r->prefetching = false;
        TRY(open_prefetch(r, step));
    }
    return prefetch_next(&r->prefetch, batch);
}

static void on_result(void *self, const struct batch_step *batch, double lr,
                      const struct trainer_result *result)
{
    struct run *r = self;
    char text[160];
    r->last_step_ns = clock_ns();
    r->first_step_ns = r->first_step_ns == 0 ? r->last_step_ns : r->first_step_ns;
    metrics_step(&r->metrics, r->loop.state.step, batch, lr, result);
    if (pace_step(&r->pace, batch, r->last_step_ns, text, sizeof text)) {
        log_info("%s", text);
    }
}

static struct pace pace_of(const struct run *r)
{
    const struct pretrain_options *o = r->options;
    const struct ramp *ramp = &o->n_micro;
    double share =
        ramp_is_given(ramp) ? 1 - ramp->share * (1 - ramp->from / ramp->to) / 2 : 1; /* of full batches */
    double n_micro = (double)o->gradient_accumulation_steps;
    double epoch = pretrain_inputs_steps_per_epoch(&r->in, o) * n_micro;
    return (struct pace){
        .run = {.n_micro = r->loop.clock != NULL ? 0 : n_micro * (double)o->max_steps * share,
                .total_s = o->total_training_time,
                .micro_of_an_epoch = epoch}};
}

static const struct timespec between_looks = {.tv_nsec = 20000000};

/* Weights trained on damaged data are not saved.  But a run that is asked to stop does not wait for the
 * check: if the data is damaged, the resumed run says so, and the older checkpoints are still there. */
static struct status before_save(void *self, bool due, bool stopping)
{
    struct run *r = self;
    bool wait = due && !stopping, others_wait = wait && r->world.size > 1;
    while (
        others_wait) { /* they may wait for this rank for a short time only, so they are told that it still reads */
        TRY(together_any(&r->world, store_check_is_pending(&r->check), &others_wait));
        nanosleep(others_wait ? &between_looks : &(struct timespec){0}, NULL);
    }
    TRY(store_check_take(&r->check, wait));
    bool pending = store_check_is_pending(&r->check),
         saves = (due || stopping) && !r->options->skip_checkpoint;
    r->loop.save_run.keep_last = pending ? 0 : r->options->keep_checkpoints;
    if (pending && saves) {
        log_warning("ckpt_%lld is saved before the checksums of the data have been checked: the resumed run "
                    "checks them, and older checkpoints are kept",
                    (long long)r->loop.state.global_step);
    }
    return status_ok();
}

static const struct loop_task pretraining = {.next_batch = next_batch,
                                             .on_result = on_result,
                                             .evaluate = evaluate,
                                             .before_save = before_save,
                                             .check_checkpoint = check_checkpoint,
                                             .begin_phase = begin_phase};

/* `data` is set once the inputs are open. */
static struct loop loop_of(struct run *r)
{
    const struct pretrain_options *o = r->options;
    return (struct loop){
        .task = &pretraining,
        .self = r,
        .trainer = &r->trainer,
        .world = &r->world,
        .log = &r->metrics,
        .directory = o->output_dir,
        .data_flag = "--input_dir",
        .tokenizer = &r->in.tokenizer,
        .schedule = pretrain_schedule(o),
        .warmup_tokens = o->warmup_tokens,
        .clock = o->total_training_time > 0 ? &r->progress.clock : NULL,
        .state = pretrain_state(o, r->precision),
        .last_step = pretrain_last_step(o),
        .save_steps = o->num_steps_per_checkpoint,
        .eval_steps = o->eval_steps,
        .early = o->early,
        .health = o->health,
        .replica_check_steps = o->ranks.replica_check_steps,
        .keep_last = o->keep_checkpoints,
        .average_last = o->average_last,
        .resume = o->resume_from_checkpoint,
        .allow_other_data = o->allow_other_data,
        .saves = !o->skip_checkpoint,
        .saves_at_end = true,
        .mean_of_micro_batches = strcmp(o->loss_norm, "micro") == 0,
        .profile_options = &o->profile,
        .tensor_log_options = &o->tensor_log,
    };
}

/* What dealing by length has gained: with ranks, the step takes as long as the one with the most tokens. */
static void tell_balance(struct run *r)
{
    const struct token_balance *b = r->in.train.loader.balance;
    prefetch_close(&r->prefetch); /* whose thread counts */
    r->prefetching = false;
    if (b == NULL || b->n_batches == 0) {
        return;
    }
    double with = b->fullest / b->mean, without = b->fullest_in_order / b->mean;
    log_info(
        "balance: the fullest rank of a step had %.4f times the mean tokens, and would have %.4f without "
        "--balance_tokens (%lld steps)",
        with, without, (long long)b->n_batches);
    metrics_event(&r->metrics, "balance",
                  json_pack("{s:f, s:f, s:I}", "fullest_over_mean", with, "without", without, "steps",
                            (json_int_t)b->n_batches));
}

static struct status train(struct run *r)
{
    struct loop *l = &r->loop;
    TRY(open_prefetch(r, l->state.step + 1));
    r->pace = pace_of(r);
    struct status s = loop_run(l);
    tell_balance(r);
    if (!failed(s) || s.code == STATUS_PREEMPTED) {
        metrics_summary(&r->metrics, l->state.step);
    }
    return s;
}

/* One rank of many, without the others. */
static struct status announce_emulation(struct run *r, size_t peak, size_t planned)
{
    const struct pretrain_options *o = r->options;
    int64_t n = r->loop.state.step - r->loop.first_step;
    double between_s = (double)(r->last_step_ns - r->first_step_ns) * 1e-9;
    struct emulation_result result = {.n_steps = n,
                                      .step_s = n > 1 ? between_s / (double)(n - 1) : 0,
                                      .peak = peak,
                                      .planned = planned,
                                      .base = r->backend.device->is_host ? r->taken_bytes : 0,
                                      .traffic = r->world.emulated->tensors,
                                      .zero_stage = (int)o->ranks.zero_stage,
                                      .n_micro = o->gradient_accumulation_steps / r->world.size,
                                      .links = o->emulation.links};
    json_t *event;
    TRY(emulation_tell(&result, &r->trainer.config, &r->world, &event));
    metrics_event(&r->metrics, "emulation", event);
    return status_ok();
}

/* Logs the memory that the run has taken on its device, that of the rank which has taken the most, and the plan. */
static struct status announce_peak(struct run *r, size_t free_before)
{
    const struct device *d = r->backend.device;
    const struct trainer_plan *p = &r->trainer.plan;
    size_t left = d->free_bytes();
    size_t peak = d->is_host ? host_memory_peak() : free_before > left ? free_before - left : 0;
    size_t planned = d->is_host ? p->total_bytes + r->taken_bytes : memory_fit_device_bytes(p, d);
    double most, most_planned;
    TRY(together_largest(&r->world, mib(peak), &most));
    TRY(together_largest(&r->world, mib(planned), &most_planned));
    log_info("memory: %s%s %.1f MiB, planned %.1f MiB%s", d->is_host ? "" : d->name,
             d->is_host ? "peak" : " took", most, most_planned,
             r->world.size > 1 && r->world.emulated == NULL ? ", of the rank with the most" : "");
    return r->world.emulated != NULL ? announce_emulation(r, peak, planned) : status_ok();
}

static struct deepspeed_log_options deepspeed_log_of(const struct run *r)
{
    const struct pretrain_options *o = r->options;
    const struct trainer_config *c = &r->trainer.config;
    return (struct deepspeed_log_options){
        .settings = o->deepspeed_log,
        .device = c->device->name,
        .backend = r->world.type->name,
        .output_dir = o->output_dir,
        .optimizer = c->optimizer,
        .schedule = r->loop.schedule,
        .batch_size = o->train_batch_size,
        .n_micro = o->gradient_accumulation_steps,
        .has_loss_scale = c->precision.dtype == DTYPE_F16,
    };
}

static struct status open_logs(struct run *r, size_t free_before)
{
    const struct pretrain_options *o = r->options;
    struct deepspeed_log_options deepspeed = deepspeed_log_of(r);
    struct metrics_options logs = {
        .directory = o->output_dir,
        .silent = !together_is_first(&r->world),
        .dllogger_file = o->json_summary,
        .tensorboard = o->enable_tensorboard_logging,
        .progress = !o->disable_progress_bar,
        .log_every = o->log_freq,
        .memory = {o->log_memory_usage ? r->backend.device : NULL, free_before, {0}, {0}},
        .process_start_ns = r->start_ns,
    };
    struct metrics_start start = {
        .task = "pre-training",
        .drop_in = DROP_IN_PRETRAINING,
        .deepspeed = deepspeed.settings.on ? &deepspeed : NULL,
        .phase = (int)r->loop.state.phase,
        .step = r->loop.state.step,
        .global_step = r->loop.state.global_step,
        .last_step = r->loop.last_step,
        .total_s = r->progress.clock.total_s,
        .elapsed_s = r->progress.clock.elapsed_s,
        .steps_per_epoch = pretrain_inputs_steps_per_epoch(&r->in, o),
        .trainer = &r->trainer,
        .n_ranks = r->world.size,
        .flags = o->flags,
    };
    TRY(metrics_open(&r->metrics, &logs));
    metrics_start(&r->metrics, &start);
    return status_ok();
}

static struct memory_cut memory_cut_of(const struct run *r)
{
    const struct pretrain_options *o = r->options;
    return (struct memory_cut){.flag = "--train_batch_size",
                               .batch_size = o->train_batch_size,
                               .n_micro = o->gradient_accumulation_steps,
                               .can_cut = true,
                               .n_processes = r->world.n_local,
                               .recompute =
                                   o->checkpoint_activations ? 0 : pretrain_recompute(o, &r->in.model)};
}

/* A resumed run has checkpoints already, one of which is removed for each new one. */
static struct status open_outputs(struct run *r, const struct trainer_plan *plan)
{
    const struct pretrain_options *o = r->options;
    int64_t last = pretrain_last_step(o), interval = o->num_steps_per_checkpoint;
    int64_t n_saves = interval == 0 || r->loop.clock != NULL ? 1 : (last + interval - 1) / interval;
    n_saves = o->skip_checkpoint ? 0 : o->resume_from_checkpoint ? 1 : n_saves;
    int64_t best = o->early.patience > 0; /* one more, and the model of its weights */
    struct run_outputs outputs = {
        .directory = o->output_dir,
        .json_summary = o->json_summary,
        .migration_log = o->watch.migration_log,
        .trace_dir = o->profile.enabled ? o->profile.directory : NULL,
        .bytes = run_outputs_checkpoint_bytes(n_saves + best,
                                              o->keep_checkpoints + (o->keep_checkpoints > 0 ? best : 0),
                                              (uint64_t)r->world.size * plan->saving_bytes) +
                 (uint64_t)best * (uint64_t)plan->n_params * sizeof(float),
    };
    struct status s = status_ok();
    if (together_is_first(&r->world)) { /* the others write into what it has made */
        s = run_outputs_open(&outputs, &r->lock);
        s = failed(s) ? s : checkpoint_dir_clean(o->output_dir);
    }
    return comm_agree(&r->world, s);
}

/* With --average_last, once the phase is over: the loss of the mean on held-out text.  The trainer has its weights then. */
static struct status evaluate_average(struct run *r)
{
    const struct pretrain_options *o = r->options;
    char path[CHECKPOINT_PATH_BYTES];
    struct model_dir m;
    struct load_report report;
    struct trainer_result result;
    if (o->average_last == 0 || r->evaluation.batches.n_micro == 0 || !loop_is_over(&r->loop)) {
        return status_ok();
    }
    TRY(weights_average_path(path, o->output_dir, r->loop.state.global_step));
    TRY(model_dir_open(&m, path));
    struct status s = network_files_load(&r->trainer.net, &m, pretrain_task(o), 0, &report);
    model_dir_close(&m);
    TRY(s);
    TRY(evaluation_run(&r->evaluation, &r->trainer, &result));
    metrics_average(&r->metrics, path, &result);
    return status_ok();
}

/* With early stopping, the best weights become OUTPUT_DIR/best, once the phase is over. */
static struct status export_best(struct run *r)
{
    const struct pretrain_options *o = r->options;
    struct loop *l = &r->loop;
    char path[CHECKPOINT_PATH_BYTES];
    bool whole =
        l->last_step == o->max_steps ? loop_is_over(l) : early_stop_is_over(&l->state.early, &l->early);
    if (l->state.early.best_step == 0 || o->early.patience == 0 || !whole) {
        return status_ok();
    }
    TRY(checkpoint_path(path, "%s/best", o->output_dir));
    TRY(loop_take_best(l));
    struct model_dir_contents contents = {.family = &bert_family,
                                          .task = pretrain_task(o),
                                          .config = &r->bert.config,
                                          .tokenizer = &r->in.tokenizer};
    TRY(comm_agree(&r->world, together_is_first(&r->world)
                                  ? network_files_export(&r->trainer.net, path, &contents)
                                  : status_ok()));
    log_info("saved %s, of ckpt_%lld", path, (long long)l->state.early.best_step);
    return status_ok();
}

static void tell_complete(const struct loop *l)
{
    if (l->clock != NULL) {
        log_info("phase %lld is complete: %lld steps in %.1f of %g seconds", (long long)l->state.phase,
                 (long long)l->state.step, l->clock->elapsed_s, l->clock->total_s);
        return;
    }
    log_info("phase %lld is complete: %lld of %lld steps done", (long long)l->state.phase,
             (long long)l->state.step, (long long)l->last_step);
}

/* One rank reads the data for all. */
static struct status begin_check(struct run *r)
{
    if (!together_is_first(&r->world)) {
        return status_ok();
    }
    TRY(pretrain_inputs_add_checks(&r->in, r->options, &r->check));
    return store_check_begin(&r->check, r->options->output_dir);
}

static struct status run_phase(struct run *r, const struct trainer_plan *plan)
{
    const struct pretrain_options *o = r->options;
    TRY(open_outputs(r, plan));
    TRY(rank_options_open_watch(&o->ranks, &r->watch, &r->backend, "pretrain", &o->watch));
    struct trainer_config config = trainer_config_of(r);
    size_t free_before = config.device->free_bytes();
    r->taken_bytes = host_memory_taken();
    TRY(trainer_init(&r->trainer, &config));
    if (together_is_first(&r->world)) {
        exec_keep_in(&r->trainer.net.x, o->output_dir);
    }
    TRY(restore(r));
    if (loop_is_over(&r->loop)) {
        tell_complete(&r->loop);
        return export_best(r);
    }
    TRY(begin_check(r));
    if (r->in.heldout.source.self != NULL) {
        TRY(evaluation_init(&r->evaluation, &r->in.heldout.source, o->eval_samples, &r->in.train.source,
                            r->bert.model.sums[BERT_MLM_LOSS].labels, r->in.model.vocab_size));
        pretrain_inputs_close_heldout(&r->in);
    }
    TRY(stop_before_work());
    TRY(open_logs(r, free_before));
    TRY(loop_open(&r->loop));
    host_memory_reset_peak(); /* so that it does not include the reading of a checkpoint */
    TRY(stop_before_work());
    TRY(train(r));
    TRY(announce_peak(r, free_before));
    TRY(export_best(r)); /* first: it takes the trainer's own weights */
    return evaluate_average(r);
}

/* An error that damaged data has caused, such as an invalid token, is reported as damage of the data. */
static struct status find_cause(struct run *r, struct status s)
{
    if (s.code == STATUS_DATA || s.code == STATUS_NUMERIC) {
        TRY(store_check_take(&r->check, true));
    }
    return s;
}

static void close_run(struct run *r)
{
    if (r->prefetching) {
        prefetch_close(&r->prefetch);
    }
    loop_close(&r->loop);
    metrics_close(&r->metrics);
    evaluation_fini(&r->evaluation);
    trainer_fini(&r->trainer);
    store_check_close(&r->check);
    pretrain_inputs_close(&r->in);
    dir_lock_release(&r->lock);
}

/* A dry run goes on without what is not there yet. */
static struct status open_inputs(struct run *r, struct missing *missing)
{
    const struct pretrain_options *o = r->options;
    if (!o->dry_run || !pretrain_inputs_find_missing(o, missing)) {
        return stop_explain(pretrain_inputs_open(&r->in, o, pretrain_progress_part(&r->progress)));
    }
    if (o->phase2) {
        missing_path(missing, "output_dir", o->output_dir,
                     "phase 1 makes it, with the checkpoint to go on from");
    }
    return pretrain_inputs_assume(&r->in, o);
}

static struct status plan_run(struct run *r, struct trainer_plan *plan)
{
    struct trainer_config config = trainer_config_of(r);
    TRY(trainer_plan(plan, &config));
    announce(r, plan);
    return memory_fit_require(&config, plan, memory_cut_of(r), r->options->dry_run);
}

struct status pretrain_run(const struct pretrain_options *of_one)
{
    struct pretrain_options all = *of_one;
    const struct pretrain_options *o = &all;
    struct missing missing = {0};
    struct trainer_plan plan = {0};
    struct run r = {
        .options = o, .world = rank_options_world(&all.ranks), .lock = {.fd = -1}, .start_ns = clock_ns()};
    stop_install();
    TRY(pretrain_check_ranks(&all));
    TRY(rank_options_take(&all.ranks, all.precision.fp8, &all.train_batch_size,
                          &all.gradient_accumulation_steps));
    TRY(emulation_take(&all, &r.world));
    TRY(pretrain_check(o));
    TRY(backend_find(&r.backend, o->device));
    TRY(precision_find(&r.precision, &o->precision, r.backend.device));
    r.progress = (struct pretrain_progress){o->max_steps, {.total_s = o->total_training_time}};
    r.loop = loop_of(&r);
    TRY(open_inputs(&r, &missing));
    if (o->early.patience > 0 && !r.in.assumed && r.in.heldout.source.self == NULL) {
        struct status s = status_error(
            STATUS_USAGE, "--early_stopping_patience wants held-out text: %s has none; give --eval_input_dir",
            o->input_dir);
        close_run(&r);
        return s;
    }
    r.loop.state.data = r.in.data_id;
    bool has_model = r.in.model.hidden_size > 0;
    if (!has_model) {
        pretrain_inputs_announce(&r.in, o);
        log_info("work: phase %d, %lld steps", o->phase2 ? 2 : 1, (long long)o->max_steps);
    }
    struct status s = has_model ? plan_run(&r, &plan) : status_ok();
    if (!failed(s) && missing.n > 0) {
        missing_end(&missing);
    }
    if (!failed(s) && !o->dry_run) {
        s = stop_explain(find_cause(&r, run_phase(&r, &plan)));
    }
    close_run(&r);
    run_watch_close(&r.watch, s);
    return s;
}
