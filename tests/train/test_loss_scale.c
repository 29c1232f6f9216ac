/* The scale of the loss: halved by an overflow, doubled after a window of good steps, within its bounds. */
#include "train/loss_scale.h"

#include "core/rng.h"
#include "test.h"

#include <math.h>

static void good_steps(struct loss_scale *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        loss_scale_raise(s);
    }
}

static void dynamic_scale_follows(void)
{
    struct loss_scale s = loss_scale_of((struct loss_scale_rule){.first = 1024});
    good_steps(&s, LOSS_SCALE_WINDOW - 1);
    EXPECT(s.value == 1024 && s.n_good == LOSS_SCALE_WINDOW - 1, "raised to %g too soon", s.value);
    EXPECT(loss_scale_lower(&s) && s.value == 512 && s.n_good == 0, "%g, %lld", s.value, (long long)s.n_good);
    good_steps(&s, LOSS_SCALE_WINDOW);
    EXPECT(s.value == 1024 && s.n_good == 0, "%g, %lld", s.value, (long long)s.n_good);
}

static void dynamic_scale_has_bounds(void)
{
    struct loss_scale s = loss_scale_of((struct loss_scale_rule){.first = LOSS_SCALE_MOST});
    good_steps(&s, LOSS_SCALE_WINDOW);
    EXPECT(s.value == LOSS_SCALE_MOST, "%g", s.value);
    int n = 0;
    while (loss_scale_lower(&s)) {
        n++;
    }
    EXPECT(n == 24 && s.value == LOSS_SCALE_LEAST, "%d times to %g", n, s.value);
    s = loss_scale_of((struct loss_scale_rule){.first = 3});
    EXPECT(loss_scale_lower(&s) && s.value == 1.5 && loss_scale_lower(&s) && s.value == 1 &&
               !loss_scale_lower(&s),
           "%g", s.value);
}

static void fixed_scale_stays(void)
{
    struct loss_scale s = loss_scale_of((struct loss_scale_rule){.fixed = 128, .first = 1024});
    good_steps(&s, 2 * LOSS_SCALE_WINDOW);
    EXPECT(s.value == 128 && !loss_scale_lower(&s) && s.value == 128, "%g", s.value);
}

/* What DeepSpeed's DynamicLossScaler does, from its definition: scale, overflows that it still forgives, and
 * the iteration of the last overflow. */
struct deepspeed_scaler {
    double scale;
    int64_t now, last, left;
};

static void deepspeed_step(struct deepspeed_scaler *d, const struct loss_scale_rule *r, bool overflows)
{
    if (overflows) {
        if (r->hysteresis == 1 || d->left == 1) {
            d->scale = d->scale / 2 > r->least ? d->scale / 2 : r->least;
        } else {
            d->left--;
        }
        d->last = d->now;
    } else {
        d->left = r->forgets ? r->hysteresis : d->left;
        if ((d->now - d->last) % r->window == 0) {
            d->left = r->hysteresis;
            d->scale *= 2;
        }
    }
    d->now++;
}

static void hysteresis_is_deepspeeds(void)
{
    enum { STEPS = 20000 };
    int n_rises = 0, n_falls = 0, n_ends = 0;
    for (int k = 0; k < 8; k++) {
        struct loss_scale_rule r = {.first = 4096,
                                    .least = k % 2 == 0 ? 0.25 : 8,
                                    .most = INFINITY,
                                    .window = 5 + k,
                                    .hysteresis = 1 + k / 2,
                                    .forgets = k == 5};
        struct loss_scale s = loss_scale_of(r);
        struct deepspeed_scaler d = {.scale = r.first, .last = -1, .left = r.hysteresis};
        struct rng_stream random = rng_stream((uint64_t)k);
        for (int i = 0; i < STEPS; i++) {
            bool overflows = rng_below(&random, 100) < (uint64_t)(s.value > 100 ? 45 : 6);
            double before = s.value;
            if (overflows && !loss_scale_lower(&s)) {
                EXPECT(s.value <= r.least, "the run ended at %g", s.value);
                n_ends++;
                break;
            }
            if (!overflows) {
                loss_scale_raise(&s);
            }
            deepspeed_step(&d, &r, overflows);
            EXPECT(s.value == d.scale, "rule %d, step %d: %g, not %g", k, i, s.value, d.scale);
            n_rises += s.value > before;
            n_falls += s.value < before;
        }
    }
    EXPECT(n_rises > 100 && n_falls > 100, "%d rises, %d falls, %d ends", n_rises, n_falls, n_ends);
}

int main(void)
{
    hysteresis_is_deepspeeds();
    dynamic_scale_follows();
    dynamic_scale_has_bounds();
    fixed_scale_stays();
    return 0;
}
