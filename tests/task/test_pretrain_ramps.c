/* task/pretrain_ramps: the part of a run that is done, by steps and by the clock. */
#include "task/pretrain_ramps.h"

#include "test.h"

static void parts_are_of_steps_or_seconds(void)
{
    struct pretrain_progress p = {.n_steps = 8};
    struct run_part part = pretrain_progress_part(&p);
    EXPECT_NEAR(part.before(part.context, 1), 0, 0);
    EXPECT_NEAR(part.before(part.context, 7), 0.75, 0);
    EXPECT_NEAR(part.before(part.context, 100), 1, 0);
    p.clock.total_s = 40;
    EXPECT_NEAR(part.before(part.context, 7), 0, 0);
    run_clock_begin_step(&p.clock, 1, 1000000000);
    run_clock_end_step(&p.clock, INT64_C(11000000000));
    run_clock_begin_step(&p.clock, 2, INT64_C(11000000000));
    EXPECT_NEAR(part.before(part.context, 3), 0.25, 1e-12);
}

int main(void)
{
    parts_are_of_steps_or_seconds();
    return 0;
}
