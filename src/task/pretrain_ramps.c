#include "task/pretrain_ramps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the batch ---- */

/* FROM:TO:SHARE. */
static struct status read_words(const char *text, struct ramp *tokens)
{
    double *fields[] = {&tokens->from, &tokens->to, &tokens->share};
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end;
        *fields[i] = strtod(at, &end);
        if (end == at || *end != (i < 2 ? ':' : '\0') || !isfinite(*fields[i])) {
            return status_error(
                STATUS_USAGE,
                "--batch_ramp wants FROM:TO:SHARE, as 4096:16384:0.5: tokens of the first and of "
                "the largest batch, and the part of the run in which it grows; not '%s'",
                text);
        }
        at = end + 1;
    }
    if (!(tokens->from >= 1 && tokens->from <= tokens->to && tokens->to <= 1e12)) {
        return status_error(STATUS_USAGE,
                            "--batch_ramp %s: the batch grows, from 1 token or more to at most 1e12", text);
    }
    if (!(tokens->share > 0 && tokens->share <= 1)) {
        return status_error(
            STATUS_USAGE,
            "--batch_ramp %s: the batch grows in a part of the run, above 0 and at most 1, not %g", text,
            tokens->share);
    }
    return status_ok();
}

static bool is_multiple(double n, double of)
{
    return fmod(n, of) == 0;
}

/* The sizes that were not given: TO is the batch, and FROM one micro-batch. */
static struct status set_sizes(struct pretrain_options *o, const struct ramp *tokens,
                               const struct pretrain_ramps_given *given)
{
    double length = (double)o->max_seq_length;
    if (!given->train_batch_size) {
        if (!is_multiple(tokens->to, length)) {
            return status_error(
                STATUS_USAGE,
                "--batch_ramp %s ends with batches of %.0f tokens, not a whole number of sequences of "
                "--max_seq_length %lld",
                o->batch_ramp, tokens->to, (long long)o->max_seq_length);
        }
        o->train_batch_size = (int64_t)(tokens->to / length);
    }
    if (!given->gradient_accumulation_steps && is_multiple(tokens->to, tokens->from)) {
        o->gradient_accumulation_steps = (int64_t)(tokens->to / tokens->from);
    }
    if ((double)o->train_batch_size * length != tokens->to) {
        return status_error(STATUS_USAGE,
                            "--batch_ramp %s ends with batches of %.0f tokens, but --train_batch_size %lld "
                            "of --max_seq_length %lld "
                            "are %.0f; leave one of the two out",
                            o->batch_ramp, tokens->to, (long long)o->train_batch_size,
                            (long long)o->max_seq_length, (double)o->train_batch_size * length);
    }
    return batch_check_cut(o->train_batch_size, o->gradient_accumulation_steps);
}

static struct status read_batch_ramp(struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    struct ramp tokens;
    TRY(read_words(o->batch_ramp, &tokens));
    TRY(set_sizes(o, &tokens, given));
    double micro = tokens.to / (double)o->gradient_accumulation_steps;
    if (!is_multiple(tokens.from, micro)) {
        return status_error(STATUS_USAGE,
                            "--batch_ramp %s begins with batches of %.0f tokens, which micro-batches of %lld "
                            "sequences of %lld tokens "
                            "cannot make: give a multiple of %.0f, or other --gradient_accumulation_steps",
                            o->batch_ramp, tokens.from,
                            (long long)(o->train_batch_size / o->gradient_accumulation_steps),
                            (long long)o->max_seq_length, micro);
    }
    o->n_micro = (struct ramp){tokens.from / micro, tokens.to / micro, tokens.share};
    return status_ok();
}

/* ---- the end of the run ---- */

static struct status check_time(struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    if (given->max_steps || given->steps_this_run) {
        return status_error(
            STATUS_USAGE, "--total_training_time and --%s both say when the run ends: leave one of them out",
            given->max_steps ? "max_steps" : "steps_this_run");
    }
    if (strcmp(o->schedule, "warmup") == 0) {
        return status_error(
            STATUS_USAGE,
            "--total_training_time plans by the clock, and the \"scheduler\" of %s counts steps: give "
            "--lr_schedule",
            o->deepspeed_config);
    }
    o->max_steps = PRETRAIN_MOST_STEPS;
    return status_ok();
}

static struct status check_warmup(const struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    double all = (double)o->max_steps * (double)o->train_batch_size * (double)o->max_seq_length;
    if (given->warmup_proportion) {
        return status_error(
            STATUS_USAGE,
            "--warmup_tokens and --warmup_proportion both say how long the rate rises: leave one out");
    }
    if (strcmp(o->schedule, "warmup") == 0) {
        return status_error(STATUS_USAGE, "--warmup_tokens: the \"scheduler\" of %s has its own warm-up",
                            o->deepspeed_config);
    }
    if ((double)o->warmup_tokens > all) {
        return status_error(
            STATUS_USAGE,
            "--warmup_tokens %lld is longer than the run: %lld steps of %lld sequences of up to %lld "
            "tokens are %.0f",
            (long long)o->warmup_tokens, (long long)o->max_steps, (long long)o->train_batch_size,
            (long long)o->max_seq_length, all);
    }
    return status_ok();
}

struct status pretrain_ramps_read(struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    if (!(o->mask_rate[0] > 0 && o->mask_rate[1] > 0)) {
        return status_error(STATUS_USAGE, "--mask_rate must be above 0, and at most 1");
    }
    if (o->batch_ramp != NULL) {
        TRY(read_batch_ramp(o, given));
    }
    if (o->total_training_time > 0) {
        TRY(check_time(o, given));
    }
    if (o->warmup_tokens > 0) {
        TRY(check_warmup(o, given));
        o->warmup_proportion = 0;
    }
    return status_ok();
}

/* ---- what is done of it ---- */

static double part_before(const void *context, int64_t step)
{
    const struct pretrain_progress *p = context;
    double part = p->clock.total_s > 0 ? run_clock_part(&p->clock) : (double)(step - 1) / (double)p->n_steps;
    return part < 1 ? part : 1;
}

struct run_part pretrain_progress_part(const struct pretrain_progress *p)
{
    return (struct run_part){part_before, p};
}
