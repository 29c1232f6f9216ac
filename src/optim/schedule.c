#include "optim/schedule.h"

#include <math.h>

double schedule_rate(const struct schedule *s, int64_t k)
{
    double p = (double)k / (double)s->n_steps;
    if (p < s->warmup) {
        return s->base * p / s->warmup;
    }
    double left = fmax(1.0 - p, 0.0);
    switch (s->kind) {
    case SCHEDULE_POLY: return s->base * pow(left, s->degree);
    case SCHEDULE_LINEAR: return s->warmup < 1.0 ? s->base * left / (1.0 - s->warmup) : 0.0;
    case SCHEDULE_CONSTANT: break;
    }
    return s->base;
}
