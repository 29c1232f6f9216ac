/* The learning rates of the replaced recipes. */
#include "test.h"

#include "optim/schedule.h"

static void poly_schedule_has_its_published_rates(void)
{
    struct schedule phase1 = {SCHEDULE_POLY, 6e-3, 0.2843, 0.5, 7038};
    EXPECT_NEAR(schedule_rate(&phase1, 2000), 0.0059973, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase1, 2001), 0.0050759, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase1, 7038), 0, 0);
    struct schedule phase2 = {SCHEDULE_POLY, 4e-3, 0.128, 0.5, 1563};
    EXPECT_NEAR(schedule_rate(&phase2, 200), 0.0039987, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase2, 201), 0.0037340, 5e-8);
}

static void linear_schedule_is_continuous(void)
{
    struct schedule s = {SCHEDULE_LINEAR, 1.0, 0.1, 0, 100};
    EXPECT_NEAR(schedule_rate(&s, 5), 0.5, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 10), 1.0, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 55), 0.5, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 100), 0.0, 1e-12);
}

int main(void)
{
    poly_schedule_has_its_published_rates();
    linear_schedule_is_continuous();
    return 0;
}
