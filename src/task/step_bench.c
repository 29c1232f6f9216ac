#include "task/step_bench.h"

#include "core/clock.h"
#include "core/rng.h"
#include "data/text_batch.h"
#include "dev/host_view.h"
#include "ops/op_timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Evenly spread lengths in which neighbours differ: multiples of the golden ratio. */
static int64_t length_of(const struct step_bench *b, int64_t i)
{
    double place = fmod(((double)i + 0.5) * 0.6180339887498949, 1);
    return b->min_length == 0 || b->min_length >= b->length
               ? b->length
               : b->min_length + (int64_t)(place * (double)(b->length - b->min_length + 1));
}

static bool predicts_words(const struct step_bench *b)
{
    enum model_task task = b->config.net.model->task;
    return task == MODEL_TASK_PRETRAINING || task == MODEL_TASK_MASKED_LM || task == MODEL_TASK_CAUSAL_LM;
}

static int64_t masked_of(const struct step_bench *b, int64_t length)
{
    if (b->config.net.model->task == MODEL_TASK_CAUSAL_LM) {
        return length - 1; /* all tokens but the first */
    }
    double share = b->n_masked > 0 ? (double)b->n_masked / (double)b->length : 0.15;
    return predicts_words(b) ? lround(share * (double)length) : 0;
}

/* The batch's sizes without rounding. */
struct count {
    int64_t tokens, masked;
    double pairs;
};

static struct count count_sequences(const struct step_bench *b)
{
    struct count c = {0};
    for (int64_t i = 0; i < b->n_sequences; i++) {
        int64_t length = length_of(b, i);
        c.tokens += length;
        c.masked += masked_of(b, length);
        c.pairs += (double)(length * length);
    }
    return c;
}

int64_t step_bench_tokens(const struct step_bench *b)
{
    return count_sequences(b).tokens;
}

/* Plans twice: with rounded batches, for memory, and without rounding, for the useful work. */
struct status step_bench_plan(struct step_bench *b)
{
    struct trainer_config exact;
    struct count c = count_sequences(b);
    double tokens = (double)c.tokens, passes = b->config.net.learns ? 3 : 1;
    b->config.net.limits = text_batch_limits(b->n_sequences, b->length, masked_of(b, b->length));
    exact = b->config;
    exact.net.limits = (struct batch_limits){
        .n_tokens = c.tokens, .n_sequences = b->n_sequences, .n_labels = c.masked, .max_seqlen = b->length};
    TRY(trainer_plan(&b->plan, &exact));
    /* the plan assumes the longest length for each sequence */
    b->useful_flops = b->plan.micro_flops - passes * 4 * (tokens * (double)b->length - c.pairs) *
                                                (double)b->config.net.model->hidden_size *
                                                (double)b->config.net.model->n_layers;
    return trainer_plan(&b->plan, &b->config);
}

static void add_sequence(struct batch *b, const struct step_bench *s, int64_t i, struct rng_stream *r)
{
    uint32_t n_words = (uint32_t)s->config.net.model->vocab_size;
    int64_t length = length_of(s, i), n_masked = masked_of(s, length);
    int32_t *ids = text_batch_add(b, length, length / 2, (int32_t)(i % 2), (int32_t)i);
    for (int64_t k = 0; k < length; k++) {
        ids[k] = (int32_t)rng_below(r, n_words);
    }
    for (int64_t k = 0; k < n_masked; k++) {
        text_batch_masked_positions(b)[k] = (int32_t)(1 + k * (length - 1) / n_masked);
        text_batch_masked_labels(b)[k] = (int32_t)rng_below(r, n_words);
    }
    text_batch_take_masked(b, n_masked);
}

struct status step_bench_make(struct batch_step *step, const struct step_bench *s)
{
    TRY(batch_step_init(step, 1, &s->config.net.model->layout, s->config.net.limits));
    struct batch *b = step->micro;
    struct rng_stream r = rng_stream(rng_key(s->config.seed, 1));
    for (int64_t i = 0; i < s->n_sequences; i++) {
        add_sequence(b, s, i, &r);
    }
    batch_finish(b, 0);
    batch_step_count(step);
    return status_ok();
}

static struct status raise_ceilings(struct op_ceilings *c, const struct step_bench *b)
{
    double products, copy;
    TRY(ceiling_products(&b->plain, b->ceiling_size, b->config.net.precision, &products));
    TRY(ceiling_copy(&b->plain, b->ceiling_size, &copy));
    c->products = products > c->products ? products : c->products;
    c->copy = copy > c->copy ? copy : c->copy;
    return status_ok();
}

/* Brings the logits of a batch of questions to host memory, as answering does. */
static struct status fetch_logits(struct trainer *t)
{
    struct host_view view;
    TRY(host_view_open(&view, &t->net.x, stage_head_output(&t->net.stage, MODEL_SPAN_LOGITS)));
    host_view_close(&view);
    return t->net.x.status;
}

/* One step, including the wait for the device, which may still be working after the call. */
static struct status take_step(struct trainer *t, const struct batch_step *step, int64_t number,
                               double *seconds)
{
    struct trainer_result unused;
    struct status s;
    int64_t start = clock_ns();
    if (t->config.net.learns) {
        s = trainer_step(t, step, number, number, 1e-4, &unused);
        exec_synchronize(&t->net.x);
    } else {
        stage_infer(&t->net.stage, step->micro);
        s = fetch_logits(t);
    }
    *seconds = clock_since_s(start);
    return failed(s) ? s : t->net.x.status;
}

static struct status take_timed_step(struct trainer *t, struct op_timer *timer, const struct batch_step *step,
                                     int64_t number, double *seconds)
{
    op_timer_clear(timer);
    op_timer_attach(timer);
    struct status s = take_step(t, step, number, seconds);
    op_timer_detach(timer);
    return failed(s) ? s : t->net.x.status;
}

static struct status run_timed(struct step_times *out, const struct step_bench *b, struct trainer *t,
                               const struct batch_step *step, int64_t n_steps)
{
    struct op_timer timer;
    *out = (struct step_times){.seconds = INFINITY};
    TRY(op_timer_init(&timer, &t->net.x, 0));
    struct status s = status_ok();
    for (int64_t i = 0; i <= n_steps && !failed(s); i++) { /* the first warms up */
        double seconds;
        s = raise_ceilings(&out->ceilings, b);
        if (!failed(s)) {
            s = take_timed_step(t, &timer, step, i + 1, &seconds);
        }
        if (i > 0 && !failed(s) && seconds < out->seconds) {
            out->seconds = seconds;
            memcpy(out->totals, timer.totals, sizeof out->totals);
        }
    }
    op_timer_fini(&timer);
    TRY(s);
    return raise_ceilings(&out->ceilings, b);
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double sorted_at(double *seconds, int64_t n, int64_t i)
{
    qsort(seconds, (size_t)n, sizeof seconds[0], ascending);
    return seconds[i];
}

/* The first runs directly, the second is recorded. */
enum { LATENCY_WARM_UPS = 3, MOST_LATENCIES = 4096 };

static struct status run_plain(struct step_latency *l, struct trainer *t, const struct batch_step *step,
                               int64_t n_steps)
{
    static const double SECONDS = 1;
    double seconds[MOST_LATENCIES], sum = 0;
    int64_t i = 0;
    *l = (struct step_latency){0};
    for (; i < LATENCY_WARM_UPS; i++) {
        TRY(take_step(t, step, i + 1, &seconds[0]));
    }
    while (l->n < MOST_LATENCIES && (l->n < n_steps || sum < SECONDS)) {
        TRY(take_step(t, step, ++i, &seconds[l->n]));
        sum += seconds[l->n++];
    }
    l->median_s = sorted_at(seconds, l->n, l->n / 2);
    l->p99_s = sorted_at(seconds, l->n, (99 * l->n + 99) / 100 - 1);
    for (int64_t k = 0; k < l->n && t->config.net.learns; k++) { /* recorded by the steps before */
        int64_t start = clock_ns();
        TRY(trainer_passes(t, step, ++i));
        seconds[k] = clock_since_s(start);
    }
    l->passes_s = t->config.net.learns ? sorted_at(seconds, l->n, l->n / 2) : 0;
    return status_ok();
}

/* Measures the latency too, but not of training on the host: there nothing is recorded, and timed ops are as
 * fast as others. */
static struct status run_all(struct step_times *times, const struct step_bench *b, struct trainer *t,
                             const struct batch_step *step, int64_t n_steps)
{
    TRY(run_timed(times, b, t, step, n_steps));
    return b->config.net.device->graphs != NULL || !b->config.net.learns
               ? run_plain(&times->latency, t, step, n_steps)
               : status_ok();
}

struct status step_bench_run(const struct step_bench *b, int64_t n_steps, struct step_times *times)
{
    struct trainer t;
    struct batch_step step = {0};
    TRY(trainer_init(&t, &b->config));
    struct status s =
        b->config.net.learns ? status_ok() : trainer_initialize(&t); /* zeros would cost less power */
    if (!failed(s)) {
        s = step_bench_make(&step, b);
    }
    if (!failed(s)) {
        s = run_all(times, b, &t, &step, n_steps);
    }
    batch_step_fini(&step);
    trainer_fini(&t);
    return s;
}

static struct status count(struct step_forecast *f, const struct step_bench *b, const struct batch *batch,
                           bool whole_step)
{
    roofline_init(&f->ops, f->ceilings.products, f->ceilings.copy);
    return trainer_count(&b->config, &f->ops.watch.table, batch, whole_step);
}

struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct machine_rates *rates)
{
    struct batch_step step = {0};
    double products = machine_product_rate(rates, b->config.net.precision);
    *f = (struct step_forecast){.ceilings = {.products = products, .copy = rates->copy}};
    FAIL_IF(products <= 0, STATUS_USAGE, "the rate of products in %s is not known for %s: add --autocast",
            precision_name(b->config.net.precision), b->config.net.device->name);
    struct status s = step_bench_make(&step, b);
    if (!failed(s)) {
        s = count(f, b, step.micro, false);
        f->passes_s = roofline_seconds(&f->ops) / rates->reached;
    }
    if (!failed(s)) {
        s = count(f, b, step.micro, b->config.net.learns);
        f->step_s = roofline_seconds(&f->ops) / rates->reached;
    }
    batch_step_fini(&step);
    return s;
}
