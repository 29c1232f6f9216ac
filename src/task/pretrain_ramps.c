#include "task/pretrain_ramps.h"

#include "task/pretrain_settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LENGTHS = RAMP_MOST_SHORTER + 1, MOST_LENGTH = 65536 };

/* The batch of all ranks, as --global_batch_size or what is of each of them says. */
struct whole {
    int64_t n_ranks; /* that the flags are multiplied by */
    int64_t batch, n_micro;
};

static struct whole whole_of(const struct pretrain_options *o)
{
    int64_t of_all = o->ranks.global_batch_size, n = of_all > 0 ? 1 : rank_options_data(&o->ranks).size;
    return (struct whole){n, of_all > 0 ? of_all : n * o->train_batch_size,
                          n * o->gradient_accumulation_steps};
}

/* ---- lengths ---- */

/* LENGTH:SHARE,LENGTH:SHARE,...  into *n lengths and the shares before and with each. */
static struct status read_lengths(const char *text, struct ramp_length *lengths, int *n)
{
    const char *at = text;
    double until = 0;
    for (*n = 0; *n == 0 || *at == ','; ++*n) {
        char *end;
        at += *n > 0;
        double length = strtod(at, &end), share = 0;
        bool whole = end != at && *end == ':' && length >= 1 && length <= MOST_LENGTH && fmod(length, 1) == 0;
        if (whole) {
            at = end + 1;
            share = strtod(at, &end);
        }
        if (!whole || end == at || !(share > 0) || (*end != ',' && *end != '\0') || *n == MOST_LENGTHS) {
            return status_error(STATUS_USAGE,
                                "--length_schedule needs at most %d lengths, each with its share of the run, "
                                "as 128:0.7,256:0.2,512:0.1; not '%s'",
                                MOST_LENGTHS, text);
        }
        at = end;
        until += share;
        lengths[*n] = (struct ramp_length){(int64_t)length, until};
    }
    return fabs(until - 1) < 1e-9
               ? status_ok()
               : status_error(STATUS_USAGE,
                              "--length_schedule %s is %s than the run: its shares sum to %.9g, not 1", text,
                              until > 1 ? "longer" : "shorter", until);
}

/* The last length is that of the run: all its sizes are for it. */
static struct status read_length_schedule(struct pretrain_options *o,
                                          const struct pretrain_ramps_given *given)
{
    struct ramp_length lengths[MOST_LENGTHS];
    int n;
    TRY(read_lengths(o->length_schedule, lengths, &n));
    int64_t last = lengths[n - 1].max_seq_length;
    for (int i = 0; i < n - 1; i++) {
        if (lengths[i].max_seq_length >= lengths[i + 1].max_seq_length) {
            return status_error(STATUS_USAGE,
                                "--length_schedule %s: lengths must rise, but %lld comes before %lld",
                                o->length_schedule, (long long)lengths[i].max_seq_length,
                                (long long)lengths[i + 1].max_seq_length);
        }
        o->shorter[i] = lengths[i];
    }
    o->n_shorter = n - 1;
    if (given->max_seq_length && o->max_seq_length != last) {
        return status_error(STATUS_USAGE,
                            "--length_schedule %s ends with sequences of %lld tokens, and --max_seq_length "
                            "is %lld: leave one of the two out",
                            o->length_schedule, (long long)last, (long long)o->max_seq_length);
    }
    o->max_seq_length = last;
    return status_ok();
}

static struct status check_lengths(const struct pretrain_options *o)
{
    struct whole all = whole_of(o);
    TRY(batch_check_cut(all.batch, all.n_micro));
    int64_t micro = all.batch / all.n_micro * o->max_seq_length;
    for (int i = 0; i < o->n_shorter; i++) {
        int64_t length = o->shorter[i].max_seq_length;
        if (length < 5 || micro % length != 0) {
            return status_error(STATUS_USAGE,
                                "--length_schedule %s: a micro-batch of %lld tokens is not a whole number of "
                                "sequences of %lld, at least 5",
                                o->length_schedule, (long long)micro, (long long)length);
        }
    }
    return status_ok();
}

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
                "--batch_ramp needs FROM:TO:SHARE, as 4096:16384:0.5: tokens of the first and of the largest "
                "batch, and the share of the run in which it grows; not '%s'",
                text);
        }
        at = end + 1;
    }
    if (!(tokens->from >= 1 && tokens->from <= tokens->to && tokens->to <= 1e12)) {
        return status_error(STATUS_USAGE,
                            "--batch_ramp %s: the batch must grow, from at least 1 token to at most 1e12",
                            text);
    }
    if (!(tokens->share > 0 && tokens->share <= 1)) {
        return status_error(STATUS_USAGE,
                            "--batch_ramp %s: the share of the run must be above 0 and at most 1, not %g",
                            text, tokens->share);
    }
    return status_ok();
}

static bool is_multiple(double n, double of)
{
    return fmod(n, of) == 0;
}

/* A size that was not given: TO is the batch of all ranks. */
static struct status set_batch(struct pretrain_options *o, const struct ramp *tokens)
{
    if (!is_multiple(tokens->to, (double)o->max_seq_length)) {
        return status_error(
            STATUS_USAGE,
            "--batch_ramp %s ends with batches of %.0f tokens, not a whole number of sequences of "
            "--max_seq_length %lld: give a multiple, or --train_batch_size without a ramp",
            o->batch_ramp, tokens->to, (long long)o->max_seq_length);
    }
    int64_t batch = (int64_t)(tokens->to / (double)o->max_seq_length);
    if (rank_options_data(&o->ranks).size > 1) {
        o->ranks.global_batch_size = batch;
    } else {
        o->train_batch_size = batch;
    }
    return status_ok();
}

static struct status check_end(const struct pretrain_options *o, const struct ramp *tokens)
{
    struct whole all = whole_of(o);
    double length = (double)o->max_seq_length;
    char of_ranks[40] = "";
    if ((double)all.batch * length == tokens->to) {
        return batch_check_cut(all.batch, all.n_micro);
    }
    if (all.n_ranks > 1) {
        snprintf(of_ranks, sizeof of_ranks, " on %lld ranks", (long long)all.n_ranks);
    }
    return status_error(STATUS_USAGE,
                        "--batch_ramp %s ends with batches of %.0f tokens, but --%s %lld%s of "
                        "--max_seq_length %lld are %.0f; leave one of the two out",
                        o->batch_ramp, tokens->to,
                        o->ranks.global_batch_size > 0 ? "global_batch_size" : "train_batch_size",
                        (long long)(all.batch / all.n_ranks), of_ranks, (long long)o->max_seq_length,
                        (double)all.batch * length);
}

/* The sizes that were not given: TO is the batch, and FROM one micro-batch of each that shares it. */
static struct status set_sizes(struct pretrain_options *o, const struct ramp *tokens,
                               const struct pretrain_ramps_given *given)
{
    if (!given->train_batch_size && o->ranks.global_batch_size == 0) {
        TRY(set_batch(o, tokens));
    }
    double groups = (double)pretrain_groups(o), of_all = groups * (double)o->max_seq_length;
    if (groups > 1 && !given->gradient_accumulation_steps && !is_multiple(tokens->from, of_all)) {
        return status_error(STATUS_USAGE,
                            "--batch_ramp %s begins with batches of %.0f tokens, which %.0f ranks cannot "
                            "share in whole sequences of %lld tokens: give a multiple of %.0f",
                            o->batch_ramp, tokens->from, groups, (long long)o->max_seq_length, of_all);
    }
    double n = tokens->to / tokens->from * groups / (double)whole_of(o).n_ranks;
    if (!given->gradient_accumulation_steps && is_multiple(n, 1) && n <= 1e9) {
        o->gradient_accumulation_steps = (int64_t)n;
    }
    return check_end(o, tokens);
}

/* Ranks have equal parts of the first and of the last batch; those between are rounded down to such. */
static struct status check_shares(const struct pretrain_options *o, double micro)
{
    int64_t n = pretrain_groups(o);
    const double sizes[] = {o->n_micro.from, o->n_micro.to};
    for (int i = 0; i < 2; i++) {
        if (!is_multiple(sizes[i], (double)n)) {
            return status_error(
                STATUS_USAGE,
                "--batch_ramp %s: a batch of %.0f tokens is %.0f micro-batches, which %lld ranks%s cannot "
                "share: give a multiple of %.0f, or other --gradient_accumulation_steps",
                o->batch_ramp, sizes[i] * micro, sizes[i], (long long)n,
                o->ranks.reproducible_ranks > 0 ? " (--reproducible_ranks)" : "", (double)n * micro);
        }
    }
    return status_ok();
}

static struct status read_batch_ramp(struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    struct ramp tokens;
    TRY(read_words(o->batch_ramp, &tokens));
    TRY(set_sizes(o, &tokens, given));
    struct whole all = whole_of(o);
    double micro = tokens.to / (double)all.n_micro;
    if (!is_multiple(tokens.from, micro)) {
        return status_error(
            STATUS_USAGE,
            "--batch_ramp %s begins with batches of %.0f tokens, which micro-batches of %lld sequences of "
            "%lld tokens cannot make: give a multiple of %.0f, or other --gradient_accumulation_steps",
            o->batch_ramp, tokens.from, (long long)(all.batch / all.n_micro), (long long)o->max_seq_length,
            micro);
    }
    o->n_micro = (struct ramp){tokens.from / micro, tokens.to / micro, tokens.share};
    return check_shares(o, micro);
}

/* ---- the end of the run ---- */

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
    int64_t batch = whole_of(o).batch;
    double all = (double)o->max_steps * (double)batch * (double)o->max_seq_length;
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
        return status_error(STATUS_USAGE,
                            "--warmup_tokens %lld is longer than the run: %lld steps of %lld sequences of up "
                            "to %lld tokens are %.0f",
                            (long long)o->warmup_tokens, (long long)o->max_steps, (long long)batch,
                            (long long)o->max_seq_length, all);
    }
    return status_ok();
}

struct status pretrain_ramps_read(struct pretrain_options *o, const struct pretrain_ramps_given *given)
{
    if (o->length_schedule != NULL) {
        TRY(read_length_schedule(o, given));
    }
    if (o->batch_ramp != NULL) {
        TRY(read_batch_ramp(o, given));
    }
    TRY(o->n_shorter > 0 ? check_lengths(o) : status_ok());
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
    double part =
        p->clock.total_s > 0 ? run_clock_part(&p->clock, step) : (double)(step - 1) / (double)p->n_steps;
    return part < 1 ? part : 1;
}

struct run_part pretrain_progress_part(const struct pretrain_progress *p)
{
    return (struct run_part){part_before, p};
}
