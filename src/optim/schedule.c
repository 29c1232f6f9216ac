/* A rate is computed in fp64 from the step, or from the part of the run that is over, and from nothing
 * else. So a resumed run has the rates of an uninterrupted one. */
#include "optim/schedule.h"

#include <math.h>

/* The rate as a fraction of the way from `min` to `max`. */
static double warmup_part(const struct schedule *s, double i)
{
    double w = (double)s->warmup_steps, d = (double)s->decay_steps;
    if (i < w) {
        return s->is_log ? log(i + 1) / log(w) : i / w;
    }
    return s->decay_steps == 0 ? 1 : fmax((d - i) / fmax(d - w, 1), 0);
}

static double warmup_rate(const struct schedule *s, int64_t k)
{
    return k < 2 ? s->base : s->min + (s->max - s->min) * warmup_part(s, (double)(k - 2));
}

/* The rate is base until the end of the constant part, and then base * ((1 - p) / rest)^degree: p is the part
 * of the run that is over, rest the part in which the rate decays. */
static double poly_constant_rate(const struct schedule *s, double p)
{
    double rest = 1 - s->warmup - s->constant;
    return p < s->warmup + s->constant || rest <= 0 ? s->base
                                                    : s->base * pow(fmax(1 - p, 0) / rest, s->degree);
}

static double anneal_rate(const struct schedule *s, int64_t k)
{
    int64_t n = batch_growth_at(&s->growth, k).before;
    double over = (double)(n - s->warmup_samples) / (double)(s->decay_samples - s->warmup_samples);
    if (s->warmup_samples > 0 && n <= s->warmup_samples) {
        return s->max * (double)n / (double)s->warmup_samples;
    }
    if (s->decay == SCHEDULE_DECAY_CONSTANT) {
        return s->max;
    }
    double left = s->decay == SCHEDULE_DECAY_LINEAR ? 1 - over : (cos(acos(-1) * over) + 1) / 2;
    return n > s->decay_samples ? s->min : s->min + left * (s->max - s->min);
}

double schedule_rate(const struct schedule *s, int64_t k)
{
    switch (s->kind) {
    case SCHEDULE_WARMUP: return warmup_rate(s, k);
    case SCHEDULE_ANNEAL: return anneal_rate(s, k);
    default: return schedule_rate_at(s, (double)k / (double)s->n_steps);
    }
}

double schedule_rate_at(const struct schedule *s, double p)
{
    if (p < s->warmup) {
        return s->base * p / s->warmup;
    }
    double left = fmax(1.0 - p, 0.0);
    switch (s->kind) {
    case SCHEDULE_POLY: return s->base * pow(left, s->degree);
    case SCHEDULE_LINEAR: return s->warmup < 1.0 ? s->base * left / (1.0 - s->warmup) : 0.0;
    case SCHEDULE_POLY_CONSTANT: return poly_constant_rate(s, p);
    case SCHEDULE_CONSTANT:
    case SCHEDULE_WARMUP:
    case SCHEDULE_ANNEAL: break;
    }
    return s->base;
}
