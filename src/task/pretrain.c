#include "task/pretrain.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/stop.h"
#include "dev/host_memory.h"
#include "task/own_files.h"
#include "task/pretrain_run.h"
#include "task/same_inputs.h"
#include "task/together.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void configure(const void *self, struct trainer_config *config)
{
    const struct pretrain_run *r = self;
    const struct pretrain_options *o = r->options;
    config->net.recompute = o->checkpoint_activations ? pretrain_recompute(o, r->in.model) : 0;
    config->mean_of_micro_batches = strcmp(o->loss_norm, "micro") == 0;
    config->counts_zeros = o->log_zero_gradients;
    config->measures_weights = o->log_weight_norm;
    config->optimizer = pretrain_optimizer(o);
}

static struct status open_prefetch(struct pretrain_run *r, int64_t first)
{
    TRY(prefetch_open(&r->prefetch, &r->in.train.source, r->run.loop.ranks.data.rank,
                      r->run.loop.ranks.data.size, rank_options_in_turn(&r->options->run.ranks), first,
                      r->run.loop.last_step));
    r->prefetching = true;
    return status_ok();
}

static struct status next_batch(void *self, int64_t step, const struct batch_step **batch)
{
    struct pretrain_run *r = self;
    if (step != r->prefetch.next) { /* the loop has rolled back, or left steps out */
        prefetch_close(&r->prefetch);
        r->prefetching = false;
        TRY(open_prefetch(r, step));
    }
    int64_t start = clock_ns();
    struct status s = prefetch_next(&r->prefetch, batch);
    r->run.metrics.drop_in.megatron.window.batch_ns += clock_ns() - start;
    return s;
}

static bool is_tenth_over(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    double done = r->run.loop.clock != NULL ? r->run.loop.clock->part
                                            : (double)r->run.loop.state.step / (double)o->run.max_steps;
    return done >= fmax(0.1, o->run.warmup_proportion);
}

static void on_result(void *self, const struct batch_step *batch, double lr,
                      const struct trainer_result *result)
{
    struct pretrain_run *r = self;
    char text[160];
    r->last_step_ns = clock_ns();
    r->first_step_ns = r->first_step_ns == 0 ? r->last_step_ns : r->first_step_ns;
    metrics_step(&r->run.metrics, r->run.loop.state.step, batch, lr, result);
    pretrain_tell_ngrams(r, false);
    if (together_is_first(&r->run.loop.ranks.world)) {
        plateau_look(&r->plateau, r->run.loop.state.step, is_tenth_over(r), result, &r->evaluation.unigram);
    }
    if (pace_step(&r->pace, batch, r->last_step_ns, text, sizeof text)) {
        log_info("%s", text);
    }
}

static struct pace pace_of(const struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    double whole = (double)o->run.max_steps * (double)o->run.batch.train_batch_size;
    double share = o->growth.batch > 0 ? (double)pretrain_samples_at(o, o->run.max_steps + 1).before / whole
                                       : 1; /* samples as a share of full batches */
    double n_micro = (double)o->run.batch.gradient_accumulation_steps;
    double epoch = r->in.train.steps_per_epoch * n_micro;
    return (struct pace){
        .run = {.n_micro = r->run.loop.clock != NULL ? 0 : n_micro * (double)o->run.max_steps * share,
                .total_s = o->total_training_time,
                .micro_of_an_epoch = epoch}};
}

static const struct timespec between_looks = {.tv_nsec = 20000000};

/* Weights trained on damaged data are not saved.  But a run that is asked to stop does not wait for the
 * check: if the data is damaged, the resumed run reports it, and the older checkpoints are still there. */
static struct status before_save(void *self, bool due, bool stopping)
{
    struct pretrain_run *r = self;
    bool wait = due && !stopping, others_wait = wait && r->run.loop.ranks.world.size > 1;
    /* others may wait for this rank for a short time only, so this rank signals that it still reads */
    while (others_wait) {
        TRY(together_any(&r->run.loop.ranks.world, store_check_is_pending(&r->check), &others_wait));
        nanosleep(others_wait ? &between_looks : &(struct timespec){0}, NULL);
    }
    TRY(store_check_take(&r->check, wait));
    bool pending = store_check_is_pending(&r->check),
         saves = (due || stopping) && !r->options->run.skip_checkpoint;
    r->run.loop.save_run.keep_last = pending ? 0 : r->options->run.keep_checkpoints;
    if (pending && saves) {
        log_warning("ckpt_%lld is saved before the checksums of the data have been checked: the resumed run "
                    "checks them, and older checkpoints are kept",
                    (long long)r->run.loop.state.global_step);
    }
    return status_ok();
}

static const struct loop_task pretraining = {.next_batch = next_batch,
                                             .on_result = on_result,
                                             .evaluate = pretrain_evaluate,
                                             .before_save = before_save,
                                             .check_checkpoint = pretrain_check_checkpoint,
                                             .begin_phase = pretrain_begin_phase,
                                             .saves_at_end = true};

static void set_loop(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    struct loop *l = &r->run.loop;
    r->progress = (struct run_progress){o->run.max_steps, {.total_s = o->total_training_time}};
    l->task = &pretraining;
    l->schedule = pretrain_schedule(o);
    l->clock = o->total_training_time > 0 ? &r->progress.clock : NULL;
    l->state = pretrain_state(o, r->run.precision);
    l->last_step = pretrain_last_step(o);
}

/* Measures the held-out loss of the weights that the run begins with. */
static struct status evaluate_start(struct pretrain_run *r)
{
    return r->options->eval_on_start && r->run.loop.state.step == 0 ? pretrain_evaluate(r, &r->losses.before)
                                                                    : status_ok();
}

static struct status train_steps(struct pretrain_run *r)
{
    struct loop *l = &r->run.loop;
    TRY(evaluate_start(r));
    TRY(open_prefetch(r, l->state.step + 1));
    r->pace = pace_of(r);
    struct status s = loop_run(l);
    prefetch_close(&r->prefetch); /* the prefetch thread counts what dealing gained */
    r->prefetching = false;
    pretrain_tell_balance(r);
    pretrain_tell_ngrams(r, !failed(s));
    if (!failed(s) || s.code == STATUS_PREEMPTED) {
        metrics_summary(&r->run.metrics, l->state.step);
    }
    return s;
}

static struct memory_cut announce(const void *self, const struct trainer_plan *plan)
{
    const struct pretrain_run *r = self;
    const struct pretrain_options *o = r->options;
    pretrain_announce(r, plan);
    return (struct memory_cut){.flag = o->run.names->batch,
                               .batch_size = o->run.batch.train_batch_size,
                               .n_micro = o->run.batch.gradient_accumulation_steps,
                               .can_cut = !o->run.names->of_prefix,
                               .n_processes = r->run.loop.ranks.world.n_local,
                               .batch_bytes = pretrain_batch_bytes(r),
                               .recompute =
                                   o->checkpoint_activations ? 0 : pretrain_recompute(o, r->in.model)};
}

/* The model that the run leaves replaces only one of its class. */
static struct status claim(void *self)
{
    const struct pretrain_options *o = ((const struct pretrain_run *)self)->options;
    char path[CHECKPOINT_PATH_BYTES];
    TRY(pretrain_export_path(path, o));
    return o->exports_model || o->run.early.patience > 0
               ? own_files_check_model(path, o->kind->family->class_of(o->kind->task(o)),
                                       o->run.names->output)
               : status_ok();
}

/* A resumed run has checkpoints already, one of which is removed for each new one. */
static uint64_t disk_bytes(const void *self, const struct trainer_plan *plan)
{
    const struct pretrain_run *r = self;
    const struct run_settings *s = &r->options->run;
    int64_t interval = s->num_steps_per_checkpoint, kept = s->keep_checkpoints;
    int64_t n_saves =
        interval == 0 || r->run.loop.clock != NULL ? 1 : (r->run.loop.last_step + interval - 1) / interval;
    n_saves = s->skip_checkpoint ? 0 : s->resume_from_checkpoint ? 1 : n_saves;
    int64_t best = s->early.patience > 0; /* one more, and the model of its weights */
    return run_checkpoint_bytes(&r->run, n_saves + best, kept + (kept > 0 ? best : 0), plan) +
           (uint64_t)best * (uint64_t)plan->n_model_params * sizeof(float);
}

/* The first rank writes the model of a checkpoint, since a rank of a mesh has only a part of it in memory. */
static struct status export_checkpoint(const struct pretrain_run *r, const char *path, int64_t step)
{
    struct model_dir_contents contents = run_contents(&r->run, r->options->kind->family);
    char from[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(from, "%s/ckpt_%lld", r->run.loop.checkpoints, (long long)step));
    TRY(comm_agree(&r->run.loop.ranks.world, together_is_first(&r->run.loop.ranks.world)
                                                 ? model_dir_save_of(path, from, &contents)
                                                 : status_ok()));
    log_info("saved %s from ckpt_%lld, with a held-out loss of %.6g", path, (long long)step,
             r->run.loop.state.early.best_loss);
    return status_ok();
}

/* Once the phase is over: with early stopping the best weights become OUTPUT_DIR/best; or, with
 * exports_model, these or the last ones OUTPUT_DIR/model. */
static struct status export_weights(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    const struct early_stop_state *early = &r->run.loop.state.early;
    char path[CHECKPOINT_PATH_BYTES];
    bool whole = r->run.loop.last_step == o->run.max_steps ? loop_is_over(&r->run.loop)
                                                           : early_stop_is_over(early, &o->run.early),
         has_best = early->best_step > 0 && o->run.early.patience > 0;
    if ((!has_best && !o->exports_model) || !whole) {
        return status_ok();
    }
    TRY(pretrain_export_path(path, o));
    if (has_best) {
        r->losses.after = early->best_loss;
        return export_checkpoint(r, path, early->best_step);
    }
    return run_export(&r->run, path, o->kind->family);
}

/* Begins the check of the data: one rank reads a file for all that see the same one. */
static struct status begin_check(struct pretrain_run *r)
{
    char path[CHECKPOINT_PATH_BYTES];
    bool reads;
    TRY(checkpoint_path(path, "%s.bin", r->in.train.store_path));
    TRY(same_inputs_reader(&r->run.loop.ranks.world, path, &reads));
    if (!reads) {
        return status_ok();
    }
    r->check.was_resumed = r->run.loop.state.global_step > 0;
    r->check.allows_other = r->options->run.allow_other_data;
    TRY(pretrain_inputs_add_checks(&r->in, &r->check));
    return store_check_begin(&r->check, r->options->run.common.output_dir,
                             together_is_first(&r->run.loop.ranks.world) ? 0 : r->run.loop.ranks.world.rank);
}

static void compare(const void *self, struct same_run *same)
{
    const struct pretrain_run *r = self;
    const struct token_store *heldout = r->in.heldout.store;
    uint64_t hash = heldout == NULL ? 0 : (uint64_t)heldout->info.bin_crc << 32 | heldout->info.idx_crc;
    same_run_add(same, "the data of --input_dir", r->in.train.id);
    same_run_add_hash(same, "the held-out data", hash);
}

static struct status train_phase(struct pretrain_run *r)
{
    const struct pretrain_options *o = r->options;
    struct loop *l = &r->run.loop;
    slow_work_phase(&l->start, "making index files, or waiting for the rank that does,");
    TRY(comm_agree(&r->run.loop.ranks.world, pretrain_inputs_begin(&r->in, o)));
    slow_work_phase(&l->start, NULL);
    TRY(begin_check(r));
    TRY(pretrain_open_evaluation(r));
    TRY(stop_before_work());
    TRY(pretrain_open_logs(r));
    TRY(loop_open(l));
    host_memory_reset_peak(); /* so that it does not include the reading of a checkpoint */
    TRY(stop_before_work());
    TRY(train_steps(r));
    TRY(pretrain_announce_peak(r));
    TRY(pretrain_announce_traffic(r));
    return export_weights(r);
}

/* An error that damaged data has caused, such as an invalid token, is reported as damage of the data. */
static struct status train(void *self)
{
    struct pretrain_run *r = self;
    slow_work_phase(&r->run.loop.start, NULL);
    if (loop_is_over(&r->run.loop)) {
        pretrain_tell_complete(&r->run.loop);
        return export_weights(r);
    }
    struct status s = train_phase(r);
    if (s.code == STATUS_DATA || s.code == STATUS_NUMERIC) {
        TRY(store_check_take(&r->check, true));
    }
    return s;
}

static void close_run(void *self)
{
    struct pretrain_run *r = self;
    if (r->prefetching) {
        prefetch_close(&r->prefetch);
    }
    pretrain_close_evaluation(r);
    store_check_close(&r->check);
    pretrain_inputs_close(&r->in);
}

/* ---- before the steps ---- */

static struct status check(void *self)
{
    struct pretrain_options *o = ((struct pretrain_run *)self)->options;
    struct comm world = rank_options_world(&o->run.ranks);
    TRY(emulation_take(&o->run, o->emulation.links, &world));
    return pretrain_check(o);
}

static bool find_missing(void *self, struct missing *m)
{
    const struct pretrain_options *o = ((const struct pretrain_run *)self)->options;
    if (!pretrain_inputs_find_missing(o, m)) {
        return false;
    }
    if (o->phase2) {
        missing_path(m, "output_dir", o->run.common.output_dir,
                     "phase 1 makes it, with the checkpoint to resume from");
    }
    return true;
}

/* Sets what the run reads of its inputs. */
static void take_inputs(struct pretrain_run *r)
{
    r->run.model = r->in.model;
    r->run.tokenizer = &r->in.tokenizer;
    r->run.limits = r->in.limits;
    r->run.loop.state.data = r->in.train.id;
}

static struct status open_inputs(void *self)
{
    struct pretrain_run *r = self;
    const struct pretrain_options *o = r->options;
    set_loop(r);
    slow_work_phase(&r->run.loop.start, "opening the data of %s", o->input_dir);
    TRY(pretrain_inputs_open(&r->in, o, run_progress_part(&r->progress)));
    take_inputs(r);
    FAIL_IF(o->run.early.patience != 0 && r->in.heldout.source.self == NULL, STATUS_USAGE,
            "--early_stopping_patience needs held-out text: %s has none; give --eval_input_dir",
            o->input_dir);
    FAIL_IF(o->sample_prompts.n > 0 && r->in.tokenizer.n == 0, STATUS_USAGE,
            "--sample_prompts needs the vocabulary of the data: give --vocab_file");
    return status_ok();
}

static struct status assume(void *self)
{
    struct pretrain_run *r = self;
    const struct pretrain_options *o = r->options;
    set_loop(r);
    TRY(pretrain_inputs_assume(&r->in, o));
    take_inputs(r);
    if (r->in.model == NULL) {
        pretrain_inputs_announce(&r->in, o);
        log_info("work: phase %d, %lld steps", o->phase2 ? 2 : 1, (long long)o->run.max_steps);
    }
    return status_ok();
}

static const struct run_task task = {.check = check,
                                     .find_missing = find_missing,
                                     .open = open_inputs,
                                     .assume = assume,
                                     .configure = configure,
                                     .announce = announce,
                                     .compare = compare,
                                     .disk_bytes = disk_bytes,
                                     .claim = claim,
                                     .restore = pretrain_restore,
                                     .train = train,
                                     .close = close_run};

struct status pretrain_run(const struct pretrain_options *of_one)
{
    struct pretrain_options all = *of_one;
    struct pretrain_run r = {
        .options = &all, .run = {.learns = true, .lock = all.lock}, .losses = {NAN, NAN}};
    TRY(pretrain_check_ranks(&all));
    run_init(&r.run, &task, &r, &all.run);
    struct status s = run_all(&r.run);
    if (all.losses != NULL) {
        *all.losses = r.losses;
    }
    return s;
}
