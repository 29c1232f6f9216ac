#include "task/pretrain_kind.h"
#include "task/samples.h"

#include <string.h>

/* ---- what flags mean ---- */

static enum schedule_kind schedule_kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum schedule_kind kind;
    } kinds[] = {{"poly", SCHEDULE_POLY},     {"poly_constant", SCHEDULE_POLY_CONSTANT},
                 {"linear", SCHEDULE_LINEAR}, {"constant", SCHEDULE_CONSTANT},
                 {"warmup", SCHEDULE_WARMUP}, {"anneal", SCHEDULE_ANNEAL}};
    size_t i = 0;
    while (strcmp(kinds[i].name, name) != 0) {
        i++;
        CHECK(i < sizeof kinds / sizeof kinds[0], "schedule %s", name);
    }
    return kinds[i].kind;
}

struct schedule pretrain_schedule(const struct pretrain_options *o)
{
    struct schedule s = o->warmup;
    s.kind = schedule_kind_of(o->schedule);
    s.base = o->run.learning_rate;
    s.warmup = o->run.warmup_proportion;
    s.constant = o->constant_proportion;
    s.degree = o->scheduler_degree;
    s.n_steps = o->run.max_steps;
    return s;
}

struct optimizer pretrain_optimizer(const struct pretrain_options *o)
{
    return optimizer_with(optimizer_find(o->optimizer), o->update);
}

/* The default is the square root of the number of layers, rounded up, which keeps the fewest activations. */
int64_t pretrain_recomputed_layers(int64_t interval, int64_t n_layers)
{
    int64_t n = 1;
    while (n * n < n_layers) {
        n++;
    }
    return interval > 0 ? interval : n;
}

int64_t pretrain_recompute(const struct pretrain_options *o, const struct model *model)
{
    return pretrain_recomputed_layers(o->checkpoint_activations_interval, model->n_layers);
}

const char *pretrain_tuning_command(const struct pretrain_options *o)
{
    return o->run.names->tunes ? o->run.names->command : NULL;
}

const char *pretrain_config_name(const struct pretrain_options *o)
{
    if (o->config != NULL) {
        return o->config_from != NULL ? o->config_from : "the flags";
    }
    const char *slash = strrchr(o->run.common.config_file, '/');
    return slash != NULL ? slash + 1 : o->run.common.config_file;
}

struct batch_growth_step pretrain_samples_at(const struct pretrain_options *o, int64_t step)
{
    struct batch_growth fixed = {.batch = o->run.batch.train_batch_size};
    return batch_growth_at(o->growth.batch > 0 ? &o->growth : &fixed, step);
}

int64_t pretrain_validated_before(const struct pretrain_options *o, int64_t step)
{
    int64_t n = 0;
    for (int64_t s = o->run.eval_steps; o->run.eval_steps > 0 && s < step; s += o->run.eval_steps) {
        n += o->eval_iters * pretrain_samples_at(o, s).batch;
    }
    return n;
}

struct run_state pretrain_state(const struct pretrain_options *o, struct precision precision)
{
    static const char *const decays[] = {[SCHEDULE_DECAY_CONSTANT] = "constant",
                                         [SCHEDULE_DECAY_LINEAR] = "linear",
                                         [SCHEDULE_DECAY_COSINE] = "cosine"};
    struct run_state s = run_state_begin(&o->run, precision);
    s.phase = o->phase2 ? 2 : 1;
    s.global_step = o->phase2 ? o->phase1_end_step : 0;
    s.optimizer = o->optimizer;
    s.update = pretrain_optimizer(o);
    s.rate = pretrain_schedule(o);
    s.lr_schedule = o->schedule;
    s.batch_ramp = o->batch_ramp;
    s.total_training_time = o->total_training_time;
    if (s.rate.kind == SCHEDULE_ANNEAL) {
        s.lr_decay = decays[s.rate.decay];
    }
    if (o->kind->set_state != NULL) {
        o->kind->set_state(&s, o);
    }
    return s;
}

int64_t pretrain_last_step(const struct pretrain_options *o)
{
    return o->steps_this_run < 0 || o->steps_this_run > o->run.max_steps ? o->run.max_steps
                                                                         : o->steps_this_run;
}

/* ---- what cannot be ---- */

/* Spikes need checkpoints to roll back to, which reach far enough, and a run by steps: the clock cannot go
 * back. */
static struct status check_health(const struct pretrain_options *o)
{
    const struct health_options *h = &o->run.health;
    if (!(h->spike_z > 0)) {
        return status_ok();
    }
    FAIL_IF(o->run.skip_checkpoint || o->run.num_steps_per_checkpoint == 0, STATUS_USAGE,
            "--spike_z rolls back to checkpoints: leave out --skip_checkpoint, and give "
            "--num_steps_per_checkpoint above 0");
    FAIL_IF(o->total_training_time > 0, STATUS_USAGE,
            "--spike_z cannot be combined with --total_training_time: leave out one of the two");
    int64_t kept = (o->run.keep_checkpoints - 1) * o->run.num_steps_per_checkpoint;
    FAIL_IF(o->run.keep_checkpoints > 0 && h->spike_skip > kept, STATUS_USAGE,
            "--spike_skip %lld reaches further back than --keep_checkpoints %lld: these span %lld steps, "
            "with one every %lld",
            (long long)h->spike_skip, (long long)o->run.keep_checkpoints, (long long)kept,
            (long long)o->run.num_steps_per_checkpoint);
    return status_ok();
}

struct status pretrain_check(const struct pretrain_options *o)
{
    TRY(o->kind->check != NULL ? o->kind->check(o) : status_ok());
    FAIL_IF(o->phase2 && o->phase1_end_step < 1, STATUS_USAGE,
            "--phase2 needs --phase1_end_step, the last step of phase 1, at least 1");
    FAIL_IF(o->phase2 && !o->run.resume_from_checkpoint && o->run.init_checkpoint == NULL, STATUS_USAGE,
            "--phase2 continues phase 1: add --resume_from_checkpoint, or --init_checkpoint with the model "
            "to start from");
    FAIL_IF(o->constant_proportion > 0 && strcmp(o->schedule, "poly_constant") != 0, STATUS_USAGE,
            "--constant_proportion needs --use_lr_scheduler");
    FAIL_IF(o->run.warmup_proportion + o->constant_proportion > 1, STATUS_USAGE,
            "--warmup_proportion %g and --constant_proportion %g sum to more than 1",
            o->run.warmup_proportion, o->constant_proportion);
    FAIL_IF(o->run.early.patience > 0 && o->run.eval_steps == 0, STATUS_USAGE,
            "--early_stopping_patience counts evaluations: give --eval_steps above 0");
    TRY(samples_check(o));
    return check_health(o);
}

int64_t pretrain_groups(const struct pretrain_options *o)
{
    int64_t n = o->run.ranks.reproducible_ranks;
    bool shares = o->balance_tokens || o->batch_ramp != NULL;
    return !shares ? 1 : n > 0 ? n : rank_options_data(&o->run.ranks).size;
}

/* All ranks are dealt the same number of sequences. */
struct status pretrain_check_ranks(const struct pretrain_options *o)
{
    int n_ranks = rank_options_data(&o->run.ranks).size;
    FAIL_IF(o->balance_tokens && o->run.ranks.reproducible_ranks > 0, STATUS_USAGE,
            "--balance_tokens cannot be combined with --reproducible_ranks, since it deals sequences out by "
            "the number of ranks: leave out one of the two");
    FAIL_IF(o->balance_tokens && o->run.ranks.global_batch_size > 0 &&
                o->run.batch.gradient_accumulation_steps % n_ranks != 0,
            STATUS_USAGE,
            "--balance_tokens gives each of %d ranks the same number of sequences, but "
            "--gradient_accumulation_steps %lld of --global_batch_size %lld is not a multiple of %d",
            n_ranks, (long long)o->run.batch.gradient_accumulation_steps,
            (long long)o->run.ranks.global_batch_size, n_ranks);
    return status_ok();
}

/* The sequences of a step of all ranks. */
static int64_t whole_batch(const struct pretrain_options *o)
{
    int64_t of_all = o->run.ranks.global_batch_size;
    return of_all > 0 ? of_all : rank_options_data(&o->run.ranks).size * o->run.batch.train_batch_size;
}

static struct status check_time(struct pretrain_options *o, const struct pretrain_lengths_given *given)
{
    FAIL_IF(given->steps != NULL, STATUS_USAGE,
            "--total_training_time and --%s both say when the run ends: leave one out", given->steps);
    FAIL_IF(strcmp(o->schedule, "warmup") == 0, STATUS_USAGE,
            "--total_training_time plans by the clock, and the \"scheduler\" of %s counts steps: give "
            "--lr_schedule",
            o->deepspeed_config);
    o->run.max_steps = PRETRAIN_MOST_STEPS;
    return status_ok();
}

static struct status check_warmup(const struct pretrain_options *o,
                                  const struct pretrain_lengths_given *given)
{
    int64_t batch = whole_batch(o);
    double all = (double)o->run.max_steps * (double)batch * (double)o->run.batch.max_seq_length;
    FAIL_IF(given->warmup_proportion, STATUS_USAGE,
            "--warmup_tokens and --warmup_proportion both say how long the rate rises: leave one out");
    FAIL_IF(strcmp(o->schedule, "warmup") == 0, STATUS_USAGE,
            "--warmup_tokens: the \"scheduler\" of %s has its own warm-up", o->deepspeed_config);
    FAIL_IF((double)o->run.warmup_tokens > all, STATUS_USAGE,
            "--warmup_tokens %lld is longer than the run: %lld steps of %lld sequences of up to %lld tokens "
            "are %.0f",
            (long long)o->run.warmup_tokens, (long long)o->run.max_steps, (long long)batch,
            (long long)o->run.batch.max_seq_length, all);
    return status_ok();
}

struct status pretrain_read_lengths(struct pretrain_options *o, const struct pretrain_lengths_given *given)
{
    if (o->total_training_time > 0) {
        TRY(check_time(o, given));
    }
    if (o->run.warmup_tokens > 0) {
        TRY(check_warmup(o, given));
        o->run.warmup_proportion = 0;
    }
    return status_ok();
}
