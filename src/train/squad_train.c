#include "train/squad_train.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/squad_batches.h"
#include "io/dir_lock.h"
#include "optim/schedule.h"
#include "train/run_state.h"
#include "train/save_run.h"
#include "train/stop.h"
#include "train/trainer_state.h"

/* A fine-tuning under way. */
struct tuning {
    struct trainer *trainer;
    const struct squad_options *options;
    const struct vocab *vocab;
    struct squad_batches batches;
    struct batch_step step;
    struct schedule schedule;
    struct run_state state;
    char data_id[40]; /* run_state's */
    struct save_run saves;
    struct profile profile;
    struct metrics *log;
    struct squad_trained *result;
    int64_t n_examples, last_step;
    double window_loss; /* sum since the last line */
    int64_t window_steps, window_sequences, window_start_ns;
    double n_sequences; /* after the warm-up of the throughput */
    int64_t start_ns, measured_ns;
};

static struct status init_batches(struct squad_batches *b, const struct squad_features *features,
                                  const struct squad_options *o, int32_t pad_id)
{
    return squad_batches_init(b, features, o->train_batch_size, o->gradient_accumulation_steps,
                              (uint64_t)o->seed, pad_id);
}

struct status squad_train_limits(const struct squad_features *features, const struct squad_options *o,
                                 struct batch_limits *limits)
{
    struct squad_batches b;
    TRY(init_batches(&b, features, o, 0));
    *limits = squad_batches_limits(&b);
    squad_batches_fini(&b);
    return status_ok();
}

/* The length of the schedule counts examples, not features, so the last few steps run at rate 0
 * (docs/quirks.md). */
static int64_t schedule_steps(const struct squad_options *o, int64_t n_examples)
{
    if (o->max_steps > 0) {
        return (int64_t)o->max_steps;
    }
    int64_t steps = n_examples / o->train_batch_size * (int64_t)o->num_train_epochs;
    return steps < 1 ? 1 : steps;
}

static struct run_state state_of(const struct squad_options *o, const struct trainer_config *config,
                                 int64_t n_steps)
{
    return (struct run_state){
        .phase = 1,
        .seed = o->seed,
        .dtype = precision_name(config->precision),
        .optimizer = optimizer_name(OPTIMIZER_ADAMW),
        .max_seq_length = o->max_seq_length,
        .max_predictions_per_seq = 0,
        .train_batch_size = o->train_batch_size,
        .gradient_accumulation_steps = o->gradient_accumulation_steps,
        .max_steps = n_steps,
        .learning_rate = o->learning_rate,
        .warmup_proportion = o->warmup_proportion,
    };
}

static struct status name_data(struct tuning *t)
{
    struct file_map m;
    TRY(file_map_open(&m, t->options->train_file));
    snprintf(t->data_id, sizeof t->data_id, "file %016llx", (unsigned long long)hash_fnv1a(m.data, m.n));
    t->state.data = t->data_id;
    file_map_close(&m);
    return status_ok();
}

static struct status open_saves(struct tuning *t)
{
    t->saves = (struct save_run){
        .trainer = t->trainer,
        .directory = t->options->output_dir,
        .vocab = t->vocab,
        .lower_case = t->options->do_lower_case,
        .keep_last = SQUAD_TRAIN_KEPT,
        .log = t->log,
        .profile = &t->profile,
    };
    return t->options->skip_checkpoint ? status_ok() : save_run_init(&t->saves);
}

static struct status resume(struct tuning *t)
{
    struct checkpoint c = {0};
    struct run_state saved;
    bool found;
    TRY(checkpoint_dir_open_newest(&c, t->options->output_dir, &found));
    if (!found) {
        return status_ok();
    }
    struct status s = run_state_parse(&saved, c.state, c.path);
    if (!failed(s) && !t->options->resume_from_checkpoint) {
        s = status_error(STATUS_USAGE,
                         "%s already has checkpoints; add --resume_from_checkpoint to go on, or give another "
                         "--output_dir",
                         t->options->output_dir);
    }
    if (!failed(s)) {
        s = run_state_check_data(&saved, &t->state, t->options->allow_other_data, c.path, "--train_file");
    }
    if (!failed(s)) {
        run_state_warn_differences(&saved, &t->state);
        t->state.step = saved.step;
        t->state.global_step = saved.global_step;
        t->state.n_skipped = saved.n_skipped;
        run_state_resume_scale(&saved, &t->trainer->loss_scale);
        s = trainer_state_resume(t->trainer, &c);
    }
    if (!failed(s)) {
        log_info("resumed from %s: %lld steps done", c.path, (long long)saved.step);
    }
    checkpoint_close(&c);
    return s;
}

static void log_step(struct tuning *t, double lr, const struct trainer_result *r)
{
    const struct squad_options *o = t->options;
    struct progress *progress = &t->log->progress;
    if (r->skipped) {
        metrics_skipped(t->log, t->state.step, r);
        return;
    }
    t->window_loss += trainer_result_loss(r);
    t->window_steps++;
    t->window_sequences += t->step.n_sequences;
    bool at_line = t->state.step % o->log_freq == 0 || t->state.step == t->last_step;
    if (!at_line && !(progress->terminal && progress_due(progress))) {
        return;
    }
    double loss = t->window_loss / (double)t->window_steps;
    double done = (double)(t->state.step - t->log->first_step + 1);
    double seconds = clock_since_s(t->start_ns);
    double rate = done * (double)o->train_batch_size / seconds;
    struct progress_time left = progress_time(seconds / done * (double)(t->last_step - t->state.step));
    if (progress->terminal) {
        progress_show(progress, "step %lld/%lld loss %.4f %.1f seq/s lr %.2e %s left",
                      (long long)t->state.step, (long long)t->last_step, loss, rate, lr, left.text);
    } else {
        log_info("step %lld/%lld loss %.4f %.1f seq/s lr %.2e %s left", (long long)t->state.step,
                 (long long)t->last_step, loss, rate, lr, left.text);
    }
    if (at_line) {
        double window_s = clock_since_s(t->window_start_ns);
        metrics_at(t->log, t->state.step);
        metrics_event(t->log, "step",
                      json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)t->state.step,
                                "step_loss", loss, "learning_rate", lr, "grad_norm", r->grad_norm,
                                "sequences_per_second", (double)t->window_sequences / window_s,
                                "steps_per_second", (double)t->window_steps / window_s));
        t->result->final_loss = loss;
        t->window_start_ns = clock_ns();
        t->window_loss = 0;
        t->window_steps = t->window_sequences = 0;
    }
}

static struct status one_step(struct tuning *t)
{
    struct trainer_result r;
    t->state.step++;
    t->state.global_step++;
    profile_micro_step(&t->profile);
    profile_phase(&t->profile, "batch");
    squad_batches_step(&t->batches, t->state.step, &t->step);
    double lr = schedule_rate(&t->schedule,
                              t->state.step < t->schedule.n_steps ? t->state.step : t->schedule.n_steps);
    TRY(trainer_step(t->trainer, &t->step, t->state.step, t->state.step - t->state.n_skipped, lr, false, &r));
    run_state_keep_scale(&t->state, &t->trainer->loss_scale, &r);
    t->result->n_skipped += r.skipped;
    profile_phase(&t->profile, NULL);
    if (++t->result->n_steps > t->options->throughput_warmup_steps) {
        t->n_sequences += (double)t->step.n_sequences;
    } else {
        t->measured_ns = clock_ns();
    }
    log_step(t, lr, &r);
    return status_ok();
}

static bool is_every(int64_t step, int64_t interval)
{
    return interval > 0 && step % interval == 0;
}

static void start_log(struct tuning *t)
{
    const struct squad_options *o = t->options;
    struct metrics_start start = {
        .task = "question answering",
        .drop_in = DROP_IN_SQUAD,
        .phase = 1,
        .step = t->state.step,
        .global_step = t->state.step,
        .last_step = t->last_step,
        .steps_per_epoch = (double)squad_batches_per_epoch(&t->batches),
        .trainer = t->trainer,
        .flags = o->flags,
    };
    metrics_start(t->log, &start);
    metrics_event(t->log, "training",
                  json_pack("{s:I, s:I, s:I, s:I}", "questions", (json_int_t)t->n_examples, "features",
                            (json_int_t)t->batches.features->n, "micro_batch_size",
                            (json_int_t)(o->train_batch_size / o->gradient_accumulation_steps), "steps",
                            (json_int_t)t->last_step));
}

static struct status loop(struct tuning *t)
{
    const struct squad_options *o = t->options;
    start_log(t);
    stop_begin_work();
    t->start_ns = t->measured_ns = t->window_start_ns = clock_ns();
    bool stopping = false;
    while (t->state.step < t->last_step && !stopping) {
        TRY(one_step(t));
        save_run_tell(&t->saves);
        stopping = stop_requested() && t->state.step < t->last_step;
        if (!o->skip_checkpoint && (stopping || is_every(t->state.step, o->num_steps_per_checkpoint))) {
            profile_phase(&t->profile, "save");
            save_run_begin(&t->saves, run_state_to_json(&t->state), t->state.step, false);
            profile_phase(&t->profile, NULL);
        }
    }
    struct status saved = save_run_finish(&t->saves);
    if (stopping) {
        TRY(saved);
    }
    progress_end(&t->log->progress);
    if (stopping) {
        return status_error(STATUS_PREEMPTED,
                            "stopped by a signal after step %lld; the same command with "
                            "--resume_from_checkpoint goes on",
                            (long long)t->state.step);
    }
    t->result->seconds = clock_since_s(t->start_ns);
    t->result->sequences_per_second = t->n_sequences / clock_since_s(t->measured_ns);
    return status_ok();
}

struct status squad_train(struct trainer *trainer, const struct squad_features *features, int64_t n_examples,
                          const struct vocab *vocab, const struct squad_options *o, struct metrics *log,
                          struct squad_trained *result)
{
    *result = (struct squad_trained){0};
    struct tuning t = {.trainer = trainer,
                       .options = o,
                       .vocab = vocab,
                       .log = log,
                       .result = result,
                       .n_examples = n_examples};
    TRY(init_batches(&t.batches, features, o, vocab->pad));
    int64_t n_steps = schedule_steps(o, n_examples);
    t.schedule = (struct schedule){SCHEDULE_LINEAR, o->learning_rate, o->warmup_proportion, 0, n_steps};
    t.state = state_of(o, &trainer->config, n_steps);
    t.last_step = o->max_steps > 0 ? (int64_t)o->max_steps
                                   : squad_batches_per_epoch(&t.batches) * (int64_t)o->num_train_epochs;
    struct status s = batch_step_init(&t.step, o->gradient_accumulation_steps, trainer->config.model->layout,
                                      squad_batches_limits(&t.batches));
    if (!failed(s)) {
        s = name_data(&t);
    }
    if (!failed(s)) {
        s = resume(&t);
    }
    if (!failed(s)) {
        s = open_saves(&t);
    }
    if (!failed(s)) {
        s = profile_open(&t.profile, &o->profile, o->output_dir, &trainer->x);
        trainer->profile = &t.profile;
    }
    if (!failed(s)) {
        s = loop(&t);
    }
    save_run_fini(&t.saves);
    profile_close(&t.profile);
    trainer->profile = NULL;
    batch_step_fini(&t.step);
    squad_batches_fini(&t.batches);
    return s;
}
