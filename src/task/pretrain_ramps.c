#include "task/pretrain_ramps.h"

#include <string.h>

/* The sequences of a step of all ranks. */
static int64_t whole_batch(const struct pretrain_options *o)
{
    int64_t of_all = o->run.ranks.global_batch_size;
    return of_all > 0 ? of_all : rank_options_data(&o->run.ranks).size * o->run.train_batch_size;
}

static struct status check_time(struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    if (given->max_steps || given->steps_this_run) {
        return status_error(STATUS_USAGE,
                            "--total_training_time and --%s both say when the run ends: leave one out",
                            given->max_steps ? "max_steps" : "steps_this_run");
    }
    if (strcmp(o->schedule, "warmup") == 0) {
        return status_error(STATUS_USAGE,
                            "--total_training_time plans by the clock, and the \"scheduler\" of %s counts "
                            "steps: give --lr_schedule",
                            o->deepspeed_config);
    }
    o->max_steps = PRETRAIN_MOST_STEPS;
    return status_ok();
}

static struct status check_warmup(const struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    int64_t batch = whole_batch(o);
    double all = (double)o->max_steps * (double)batch * (double)o->run.max_seq_length;
    if (given->warmup_proportion) {
        return status_error(
            STATUS_USAGE,
            "--warmup_tokens and --warmup_proportion both say how long the rate rises: leave one out");
    }
    if (strcmp(o->schedule, "warmup") == 0) {
        return status_error(STATUS_USAGE, "--warmup_tokens: the \"scheduler\" of %s has its own warm-up",
                            o->deepspeed_config);
    }
    if ((double)o->run.warmup_tokens > all) {
        return status_error(STATUS_USAGE,
                            "--warmup_tokens %lld is longer than the run: %lld steps of %lld sequences of up "
                            "to %lld tokens are %.0f",
                            (long long)o->run.warmup_tokens, (long long)o->max_steps, (long long)batch,
                            (long long)o->run.max_seq_length, all);
    }
    return status_ok();
}

struct status pretrain_ramps_read(struct pretrain_options *o, const struct pretrain_ramps_given *given)
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

static double part_before(const void *context, int64_t step)
{
    const struct pretrain_progress *p = context;
    double part =
        p->clock.total_s > 0 ? run_clock_part(&p->clock, step) : (double)(step - 1) / (double)p->n_steps;
    return part < 1 ? part : 1;
}

struct run_part pretrain_progress_part(const struct pretrain_progress *p)
{
    return (struct run_part){part_before, p};
}
