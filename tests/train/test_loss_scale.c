/* The scale of the loss: halved by an overflow, doubled after a window of good steps, within its bounds. */
#include "train/loss_scale.h"

#include "test.h"

static void good_steps(struct loss_scale *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        loss_scale_raise(s);
    }
}

static void dynamic_scale_follows(void)
{
    struct loss_scale s = loss_scale_of(0, 1024);
    good_steps(&s, LOSS_SCALE_WINDOW - 1);
    EXPECT(s.value == 1024 && s.n_good == LOSS_SCALE_WINDOW - 1, "raised to %g too soon", s.value);
    EXPECT(loss_scale_lower(&s) && s.value == 512 && s.n_good == 0, "%g, %lld", s.value, (long long)s.n_good);
    good_steps(&s, LOSS_SCALE_WINDOW);
    EXPECT(s.value == 1024 && s.n_good == 0, "%g, %lld", s.value, (long long)s.n_good);
}

static void dynamic_scale_has_bounds(void)
{
    struct loss_scale s = loss_scale_of(0, LOSS_SCALE_MOST);
    good_steps(&s, LOSS_SCALE_WINDOW);
    EXPECT(s.value == LOSS_SCALE_MOST, "%g", s.value);
    int n = 0;
    while (loss_scale_lower(&s)) {
        n++;
    }
    EXPECT(n == 24 && s.value == LOSS_SCALE_LEAST, "%d times to %g", n, s.value);
    s = loss_scale_of(0, 3);
    EXPECT(loss_scale_lower(&s) && s.value == 1.5 && !loss_scale_lower(&s), "%g", s.value);
}

static void fixed_scale_stays(void)
{
    struct loss_scale s = loss_scale_of(128, 1024);
    good_steps(&s, 2 * LOSS_SCALE_WINDOW);
    EXPECT(s.value == 128 && !loss_scale_lower(&s) && s.value == 128, "%g", s.value);
}

int main(void)
{
    dynamic_scale_follows();
    dynamic_scale_has_bounds();
    fixed_scale_stays();
    return 0;
}
