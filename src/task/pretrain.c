#include "task/pretrain.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/stop.h"
#include "dev/host_memory.h"
#include "pass/network_files.h"
#include "task/own_files.h"
#include "task/pretrain_run.h"
#include "task/pretrain_settings.h"
#include "task/run_outputs.h"
#include "task/same_inputs.h"
#include "task/together.h"
#include "train/memory_fit.h"
#include "train/trainer_state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct status configure(struct trainer_config *config, const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    *config = (struct trainer_config){
        .net = {.model = r->in.model,
                .device = r->backend.device,
                .ops = r->backend.ops,
                .precision = r->precision,
                .limits = r->in.limits,
                .learns = true,
                .whole_logits = tensor_log_wants(&o->tensor_log),
                .recompute = o->checkpoint_activations ? pretrain_recompute(o, r->in.model) : 0},
        .ranks = rank_options_ranks(&o->ranks, o->gradient_accumulation_steps),
        .mean_of_micro_batches = strcmp(o->loss_norm, "micro") == 0,
        .loss_scale = o->loss_scale,
        .counts_zeros = o->log_zero_gradients,
        .measures_weights = o->log_weight_norm,
        .optimizer = pretrain_optimizer(o),
        .saving = !o->skip_checkpoint,
        .seed = (uint64_t)o->seed,
    };
    return trainer_ranks_place(&config->ranks, &config->net);
}

/* Names what the kind knows against the plateau. */
static void advise(struct pretrain_run *r)
{
    if (r->options->kind->advise != NULL) {
        r->options->kind->advise(r->advice, sizeof r->advice, r->options);
    }
    r->plateau.is_masked = r->options->kind->advise != NULL;
    r->plateau.advice = r->advice[0] != '\0' ? r->advice : NULL;
}

/* An evaluation waits for it, so that it stands beside each. */
static void tell_ngrams(struct pretrain_run *r, bool wait)
{
    if (ngram_beside_take(&r->ngram, wait)) {
        metrics_ngram(&r->metrics, &r->ngram.score);
    }
}

/* Samples [first, first + n) of held-out data; `of` says where the run is. */
static struct status validate(struct pretrain_run *r, struct validation *v, int64_t first, int64_t n,
                              const char *of, double *loss)
{
    struct trainer_result result;
    int64_t start = clock_ns();
    int64_t micro = r->options->train_batch_size / r->options->gradient_accumulation_steps;
    profile_phase(&r->loop.profile, "evaluation");
    TRY(validation_run(v, &r->trainer, &r->loop.ranks.data, first, n, micro, &result));
    profile_phase(&r->loop.profile, NULL);
    metrics_validation(&r->metrics, r->loop.state.step, &result, of, n, v == &r->validation,
                       clock_ns() - start);
    *loss = trainer_result_loss(&result);
    return status_ok();
}

/* With eval_iters: batches of the size that the step's has, behind those of the evaluation before.  At the
 * end of training one more, and the test. */
static struct status evaluate_next(struct pretrain_run *r, double *loss)
{
    const struct pretrain_options *o = r->options;
    int64_t step = r->loop.state.step, n = o->eval_iters * pretrain_samples_at(o, step).batch;
    char at[40];
    snprintf(at, sizeof at, "iteration %lld", (long long)step);
    if (r->validation.source != NULL && o->eval_steps > 0 && step % o->eval_steps == 0) {
        TRY(validate(r, &r->validation, pretrain_validated_before(o, step), n, at, loss));
    }
    if (step < o->max_steps) {
        return status_ok();
    }
    if (r->validation.source != NULL) {
        TRY(validate(r, &r->validation, pretrain_validated_before(o, step + 1), n,
                     "the end of training for val data", loss));
    }
    double of_test;
    return r->test.source == NULL
               ? status_ok()
               : validate(r, &r->test, 0, n, "the end of training for test data", &of_test);
}

static struct status evaluate_all(struct pretrain_run *r, double *loss)
{
    struct trainer_result result;
    if (r->evaluation.batches.n_micro == 0) {
        return status_ok();
    }
    profile_phase(&r->loop.profile, "evaluation");
    int64_t start = clock_ns();
    TRY(evaluation_run(&r->evaluation, &r->trainer, &result));
    profile_phase(&r->loop.profile, NULL);
    metrics_evaluation(&r->metrics, r->loop.state.step, &result, &r->evaluation.unigram, clock_ns() - start);
    plateau_watch(&r->plateau, r->loop.state.step, &result, &r->evaluation.unigram);
    *loss = trainer_result_loss(&result);
    return status_ok();
}

static struct status evaluate(void *self, double *loss)
{
    struct pretrain_run *r = self;
    *loss = NAN;
    tell_ngrams(r, true);
    TRY(r->options->eval_iters > 0 ? evaluate_next(r, loss) : evaluate_all(r, loss));
    r->losses.after = *loss;
    return status_ok();
}

static struct status open_prefetch(struct pretrain_run *r, int64_t first)
{
    TRY(prefetch_open(&r->prefetch, &r->in.train.source, r->loop.ranks.data.rank, r->loop.ranks.data.size,
                      rank_options_in_turn(&r->options->ranks), first, r->loop.last_step));
    r->prefetching = true;
    return status_ok();
}

static struct status next_batch(void *self, int64_t step, const struct batch_step **batch)
{
    struct pretrain_run *r = self;
    if (step != r->prefetch.next) { /* the loop has gone back, or left steps out */
        prefetch_close(&r->prefetch);
        r->prefetching = false;
        TRY(open_prefetch(r, step));
    }
    int64_t start = clock_ns();
    struct status s = prefetch_next(&r->prefetch, batch);
    metrics_batch(&r->metrics, clock_ns() - start);
    return s;
}

static bool is_tenth_over(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    double done =
        r->loop.clock != NULL ? r->loop.clock->part : (double)r->loop.state.step / (double)o->max_steps;
    return done >= fmax(0.1, o->warmup_proportion);
}

static void on_result(void *self, const struct batch_step *batch, double lr,
                      const struct trainer_result *result)
{
    struct pretrain_run *r = self;
    char text[160];
    r->last_step_ns = clock_ns();
    r->first_step_ns = r->first_step_ns == 0 ? r->last_step_ns : r->first_step_ns;
    metrics_step(&r->metrics, r->loop.state.step, batch, lr, result);
    tell_ngrams(r, false);
    if (together_is_first(&r->world)) {
        plateau_look(&r->plateau, r->loop.state.step, is_tenth_over(r), result, &r->evaluation.unigram);
    }
    if (pace_step(&r->pace, batch, r->last_step_ns, text, sizeof text)) {
        log_info("%s", text);
    }
}

static struct pace pace_of(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    double whole = (double)o->max_steps * (double)o->train_batch_size;
    double share = o->growth.batch > 0 ? (double)pretrain_samples_at(o, o->max_steps + 1).before / whole
                                       : 1; /* of full batches */
    double n_micro = (double)o->gradient_accumulation_steps;
    double epoch = r->in.train.steps_per_epoch * n_micro;
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
    struct pretrain_run *r = self;
    bool wait = due && !stopping, others_wait = wait && r->world.size > 1;
    /* others may wait for this rank for a short time only, so this rank tells them that it still reads */
    while (others_wait) {
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
                                             .check_checkpoint = pretrain_check_checkpoint,
                                             .begin_phase = pretrain_begin_phase};

/* `data` is set once the inputs are open. */
static struct loop loop_of(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    struct pretrain_flag_names flags = pretrain_flags(o);
    struct run_exit leaves = o->exit;
    leaves.start_ns = r->start_ns;
    return (struct loop){
        .task = &pretraining,
        .self = r,
        .trainer = &r->trainer,
        .ranks = rank_options_mesh(&o->ranks),
        .log = &r->metrics,
        .directory = o->output_dir,
        .data_flag = flags.data,
        .output_flag = flags.output,
        .resume_flag = flags.resume,
        .resume_from = o->load_dir,
        .tokenizer = &r->in.tokenizer,
        .schedule = pretrain_schedule(o),
        .warmup_tokens = o->warmup_tokens,
        .clock = o->total_training_time > 0 ? &r->progress.clock : NULL,
        .state = pretrain_state(o, r->precision),
        .last_step = pretrain_last_step(o),
        .save_steps = o->num_steps_per_checkpoint,
        .eval_steps = o->eval_steps,
        .exit = leaves,
        .early = o->early,
        .health = o->health,
        .replica_check_steps = o->ranks.replica_check_steps,
        .keep_last = o->keep_checkpoints,
        .resume = o->resume_from_checkpoint,
        .allow_other_data = o->allow_other_data,
        .saves = !o->skip_checkpoint,
        .saves_at_end = true,
        .profile_options = &o->profile,
        .tensor_log_options = &o->tensor_log,
    };
}

/* What the weights that the run begins with lose on held-out text. */
static struct status evaluate_start(struct pretrain_run *r)
{
    return r->options->eval_on_start && r->loop.state.step == 0 ? evaluate(r, &r->losses.before)
                                                                : status_ok();
}

static struct status train(struct pretrain_run *r)
{
    struct loop *l = &r->loop;
    TRY(evaluate_start(r));
    TRY(open_prefetch(r, l->state.step + 1));
    r->pace = pace_of(r);
    struct status s = loop_run(l);
    prefetch_close(&r->prefetch); /* whose thread counts what dealing gained */
    r->prefetching = false;
    pretrain_tell_balance(r);
    tell_ngrams(r, !failed(s));
    if (!failed(s) || s.code == STATUS_PREEMPTED) {
        metrics_summary(&r->metrics, l->state.step);
    }
    return s;
}

static struct memory_cut memory_cut_of(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    return (struct memory_cut){.flag = pretrain_flags(o).batch,
                               .batch_size = o->train_batch_size,
                               .n_micro = o->gradient_accumulation_steps,
                               .can_cut = o->kind->flags == NULL,
                               .n_processes = r->world.n_local,
                               .batch_bytes = pretrain_batch_bytes(r),
                               .recompute =
                                   o->checkpoint_activations ? 0 : pretrain_recompute(o, r->in.model)};
}

/* The model that the run leaves replaces only one of its class. */
static struct status check_model_class(const struct pretrain_options *o)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(pretrain_export_path(path, o));
    return o->exports_model || o->early.patience > 0
               ? own_files_check_model(path, o->kind->family->class_of(o->kind->task(o)),
                                       pretrain_flags(o).output)
               : status_ok();
}

/* A resumed run has checkpoints already, one of which is removed for each new one. */
static struct status open_outputs(struct pretrain_run *r, const struct trainer_plan *plan)
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
                 (uint64_t)best * (uint64_t)plan->n_model_params * sizeof(float),
    };
    struct status s = status_ok();
    if (together_is_first(&r->world)) { /* the others write into what it has made */
        s = run_outputs_open(&outputs, o->lock != NULL ? o->lock : &r->lock);
        s = failed(s) ? s : check_model_class(o);
    }
    return comm_agree(&r->world, s);
}

/* The first rank writes the model of a checkpoint, of which a rank of a mesh has a part in memory. */
static struct status export_checkpoint(const struct pretrain_run *r, const char *path, int64_t step,
                                       const struct model_dir_contents *contents)
{
    char from[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(from, "%s/ckpt_%lld", r->loop.checkpoints, (long long)step));
    TRY(comm_agree(&r->world,
                   together_is_first(&r->world) ? model_dir_save_of(path, from, contents) : status_ok()));
    log_info("saved %s from ckpt_%lld, with a held-out loss of %.6g", path, (long long)step,
             r->loop.state.early.best_loss);
    return status_ok();
}

/* Once the phase is over: with early stopping the best weights become OUTPUT_DIR/best; or, with
 * exports_model, these or the last ones OUTPUT_DIR/model. */
static struct status export_weights(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    const struct early_stop_state *early = &r->loop.state.early;
    char path[CHECKPOINT_PATH_BYTES];
    bool whole = r->loop.last_step == o->max_steps ? loop_is_over(&r->loop)
                                                   : early_stop_is_over(early, &o->early),
         has_best = early->best_step > 0 && o->early.patience > 0;
    if ((!has_best && !o->exports_model) || !whole) {
        return status_ok();
    }
    TRY(pretrain_export_path(path, o));
    const struct model *model = r->in.model;
    struct model_dir_contents contents = {.family = o->kind->family,
                                          .task = model->task,
                                          .config = model->type->config(model),
                                          .tokenizer = &r->in.tokenizer};
    if (has_best) {
        r->losses.after = early->best_loss;
        return export_checkpoint(r, path, early->best_step, &contents);
    }
    TRY(trainer_state_export(&r->trainer, &r->world, path, &contents));
    log_info("saved %s", path);
    return status_ok();
}

/* One rank reads a file for all that see the same one. */
static struct status begin_check(struct pretrain_run *r)
{
    char path[CHECKPOINT_PATH_BYTES];
    bool reads;
    TRY(checkpoint_path(path, "%s.bin", r->in.train.store_path));
    TRY(same_inputs_reader(&r->world, path, &reads));
    if (!reads) {
        return status_ok();
    }
    r->check.was_resumed = r->loop.state.global_step > 0;
    r->check.allows_other = r->options->allow_other_data;
    TRY(pretrain_inputs_add_checks(&r->in, &r->check));
    return store_check_begin(&r->check, r->options->output_dir,
                             together_is_first(&r->world) ? 0 : r->world.rank);
}

/* What each rank has read is the same. */
static struct status compare_inputs(struct pretrain_run *r)
{
    struct same_run same = {0};
    const struct token_store *heldout = r->in.heldout.store;
    uint64_t hash = heldout == NULL ? 0 : (uint64_t)heldout->info.bin_crc << 32 | heldout->info.idx_crc;
    same_inputs_add_model(&same, r->in.model, &r->in.tokenizer);
    same_run_add(&same, "the data of --input_dir", r->in.train.id);
    same_run_add_hash(&same, "the held-out data", hash);
    return same_run_check(&same, &r->world, STATUS_DATA);
}

/* The baseline of counts, which the first rank finds beside the first steps. */
static void begin_ngrams(struct pretrain_run *r, int64_t n_samples)
{
    if (together_is_first(&r->world)) {
        ngram_beside_begin(&r->ngram, &r->in, n_samples, r->options);
    }
}

/* Held-out data whose samples are drawn when they are needed. */
static struct status open_validation(struct pretrain_run *r)
{
    struct pretrain_inputs *in = &r->in;
    if (in->heldout.source.self != NULL) {
        const struct pretrain_options *o = r->options;
        TRY(validation_init(&r->validation, &in->heldout.source));
        begin_ngrams(r, o->eval_iters * pretrain_samples_at(o, o->eval_steps).batch);
    }
    return in->test.source.self == NULL ? status_ok() : validation_init(&r->test, &in->test.source);
}

static struct status open_evaluation(struct pretrain_run *r)
{
    if (r->in.heldout.source.self == NULL) {
        return status_ok();
    }
    slow_work_phase(&r->loop.start, "drawing held-out samples, and counting the words of %s,",
                    r->options->input_dir);
    TRY(evaluation_init(&r->evaluation, &r->in.heldout.source, r->options->eval_samples, &r->in.train.source,
                        r->in.model->sums[0].labels, r->in.model->vocab_size));
    begin_ngrams(r, r->options->eval_samples);
    pretrain_inputs_release_heldout(&r->in);
    return status_ok();
}

static struct status run_phase(struct pretrain_run *r, const struct trainer_plan *plan)
{
    const struct pretrain_options *o = r->options;
    TRY(compare_inputs(r));
    TRY(open_outputs(r, plan));
    TRY(same_inputs_directory(&r->world, "output_dir", o->output_dir));
    TRY(rank_options_open_watch(&o->ranks, &r->watch, &r->backend, pretrain_flags(o).command, &o->watch));
    struct trainer_config config;
    TRY(configure(&config, r));
    size_t free_before = config.net.device->free_bytes();
    r->taken_bytes = host_memory_taken();
    slow_work_phase(&r->loop.start, "drawing the weights of a new model, %.1f M parameters,",
                    (double)plan->net.n_params / 1e6);
    TRY(trainer_init(&r->trainer, &config));
    if (together_is_first(&r->world)) {
        exec_keep_in(&r->trainer.net.x, o->output_dir);
    }
    slow_work_phase(&r->loop.start, "looking for weights to start from, and checking their checksums,");
    TRY(pretrain_restore(r));
    slow_work_phase(&r->loop.start, NULL);
    if (loop_is_over(&r->loop)) {
        pretrain_tell_complete(&r->loop);
        return export_weights(r);
    }
    slow_work_phase(&r->loop.start, "making index files, or waiting for the rank that does,");
    TRY(comm_agree(&r->world, pretrain_inputs_begin(&r->in, o)));
    slow_work_phase(&r->loop.start, NULL);
    TRY(begin_check(r));
    TRY(o->eval_iters > 0 ? open_validation(r) : open_evaluation(r));
    TRY(stop_before_work());
    TRY(pretrain_open_logs(r, free_before));
    TRY(loop_open(&r->loop));
    host_memory_reset_peak(); /* so that it does not include the reading of a checkpoint */
    TRY(stop_before_work());
    TRY(train(r));
    TRY(pretrain_announce_peak(r, free_before));
    TRY(pretrain_announce_traffic(r));
    return export_weights(r);
}

/* An error that damaged data has caused, such as an invalid token, is reported as damage of the data. */
static struct status find_cause(struct pretrain_run *r, struct status s)
{
    if (s.code == STATUS_DATA || s.code == STATUS_NUMERIC) {
        TRY(store_check_take(&r->check, true));
    }
    return s;
}

static void close_run(struct pretrain_run *r)
{
    if (r->prefetching) {
        prefetch_close(&r->prefetch);
    }
    loop_close(&r->loop);
    ngram_beside_take(&r->ngram, true); /* which reads the inputs */
    metrics_close(&r->metrics);
    evaluation_fini(&r->evaluation);
    validation_fini(&r->validation);
    validation_fini(&r->test);
    trainer_fini(&r->trainer);
    store_check_close(&r->check);
    pretrain_inputs_close(&r->in);
    dir_lock_release(&r->lock);
}

/* A dry run goes on without what is not there yet. */
static struct status open_inputs(struct pretrain_run *r, struct missing *missing)
{
    const struct pretrain_options *o = r->options;
    if (!o->dry_run || !pretrain_inputs_find_missing(o, missing)) {
        slow_work_phase(&r->loop.start, "opening the data of %s", o->input_dir);
        return stop_explain(pretrain_inputs_open(&r->in, o, pretrain_progress_part(&r->progress)));
    }
    if (o->phase2) {
        missing_path(missing, "output_dir", o->output_dir,
                     "phase 1 makes it, with the checkpoint to resume from");
    }
    return pretrain_inputs_assume(&r->in, o);
}

static struct status plan_run(struct pretrain_run *r, struct trainer_plan *plan)
{
    struct trainer_config config;
    TRY(configure(&config, r));
    TRY(emulation_check_slice(&config.net, &r->world));
    slow_work_phase(&r->loop.start, "planning the memory of a step");
    TRY(trainer_plan(plan, &config));
    pretrain_announce(r, plan);
    return memory_fit_require(&config, plan, memory_cut_of(r), r->options->dry_run);
}

/* Whether the file that ends the run is there before it begins. */
static struct status look_for_switch(const struct pretrain_run *r, bool *is_there)
{
    const struct run_exit *e = &r->options->exit;
    TRY(together_any(&r->world, run_exit_is_switched(e), is_there));
    if (*is_there) {
        log_warning("%s, the kill switch, is there: the run does not begin", e->kill_switch);
    }
    return status_ok();
}

struct status pretrain_run(const struct pretrain_options *of_one)
{
    struct pretrain_options all = *of_one;
    const struct pretrain_options *o = &all;
    struct missing missing = {0};
    struct trainer_plan plan = {0};
    struct pretrain_run r = {.options = o,
                             .world = rank_options_world(&all.ranks),
                             .lock = {.fd = -1},
                             .losses = {NAN, NAN},
                             .start_ns = clock_ns()};
    stop_install();
    TRY(pretrain_check_ranks(&all));
    TRY(rank_options_take(&all.ranks, all.precision.fp8, &all.train_batch_size,
                          &all.gradient_accumulation_steps));
    TRY(emulation_take(&all, &r.world));
    TRY(pretrain_check(o));
    bool is_switched;
    TRY(look_for_switch(&r, &is_switched));
    if (is_switched) {
        return status_ok();
    }
    TRY(backend_find(&r.backend, o->device));
    if (r.world.rank == 0) {
        backend_announce(&r.backend, o->device);
    }
    TRY(precision_find(&r.precision, &o->precision, r.backend.device));
    r.progress = (struct pretrain_progress){o->max_steps, {.total_s = o->total_training_time}};
    r.loop = loop_of(&r);
    advise(&r);
    struct status s = open_inputs(&r, &missing);
    if (!failed(s) && o->early.patience > 0 && !r.in.assumed && r.in.heldout.source.self == NULL) {
        s = status_error(STATUS_USAGE,
                         "--early_stopping_patience needs held-out text: %s has none; give --eval_input_dir",
                         o->input_dir);
    }
    if (failed(s)) {
        close_run(&r);
        return s;
    }
    r.loop.state.data = r.in.train.id;
    bool has_model = r.in.model != NULL;
    if (!has_model) {
        pretrain_inputs_announce(&r.in, o);
        log_info("work: phase %d, %lld steps", o->phase2 ? 2 : 1, (long long)o->max_steps);
    }
    s = has_model ? plan_run(&r, &plan) : status_ok();
    if (!failed(s) && missing.n > 0) {
        missing_end(&missing);
    }
    if (!failed(s) && !o->dry_run) {
        s = stop_explain(find_cause(&r, run_phase(&r, &plan)));
    }
    if (o->losses != NULL) {
        *o->losses = r.losses;
    }
    close_run(&r);
    run_watch_close(&r.watch, s);
    return s;
}
