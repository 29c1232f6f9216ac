/* task/run_clock: the part of a run by the clock, its end, its resumption, and clocks that jump. */
#include "task/run_clock.h"

#include "test.h"

#include <math.h>

enum { SECOND = 1000000000 };

/* Steps of this many seconds with this much between them until the run is over; returns the time at the
 * end. */
static int64_t run(struct run_clock *c, int64_t now, double step_s, double between_s, int *n_steps)
{
    *n_steps = 0;
    while (!run_clock_is_over(c)) {
        run_clock_begin_step(c, *n_steps + 1, now);
        now += (int64_t)(step_s * SECOND);
        run_clock_end_step(c, now);
        now += (int64_t)(between_s * SECOND);
        (*n_steps)++;
    }
    return now;
}

static void runs_end_in_time(void)
{
    struct run_clock c = {.total_s = 100};
    int n;
    run(&c, 5 * (int64_t)SECOND, 1, 0, &n);
    EXPECT(n == 100, "%d steps of a second", n);
    EXPECT_NEAR(c.part, 1, 1e-9);
    c = (struct run_clock){.total_s = 100};
    run(&c, SECOND, 3, 0.5, &n);
    EXPECT(n == 28 && c.elapsed_s <= 100 && c.elapsed_s > 96.4, "%d steps, %g s", n, c.elapsed_s);
    c = (struct run_clock){.total_s = 0.5};
    run(&c, SECOND, 3, 0, &n);
    EXPECT(n == 1, "%d steps, where one takes longer than the run", n);
}

static void parts_rise_to_1(void)
{
    struct run_clock c = {.total_s = 10};
    run_clock_begin_step(&c, 1, SECOND);
    EXPECT_NEAR(c.part, 0, 0);
    EXPECT_NEAR(run_clock_part_after_step(&c), 0, 0); /* nobody knows how long the first one takes */
    run_clock_end_step(&c, 3 * (int64_t)SECOND);
    run_clock_begin_step(&c, 2, 4 * (int64_t)SECOND);
    EXPECT_NEAR(c.part, 0.3, 1e-12);
    EXPECT_NEAR(run_clock_part_after_step(&c), 0.5, 1e-12);
    EXPECT_NEAR(run_clock_part(&c, 2), 0, 0);
    EXPECT_NEAR(run_clock_part(&c, 3), 0.2, 1e-12); /* its batch may be made from now on */
    run_clock_end_step(&c, 40 * (int64_t)SECOND);
    EXPECT_NEAR(c.part, 1, 0);
    EXPECT_NEAR(run_clock_part(&c, 3), 0.2, 1e-12);
    EXPECT_NEAR(run_clock_part_after_step(&c), 1, 0);
    EXPECT(run_clock_is_over(&c), "it goes on");
}

/* What follows from the time is that of the first rank's clock, whenever the others have read theirs. */
static void ranks_have_one_clock(void)
{
    struct run_clock first = {.total_s = 10}, other = {.total_s = 10};
    for (int step = 1; step <= 4; step++) {
        run_clock_begin_step(&first, step, (2 * step - 1) * (int64_t)SECOND);
        run_clock_begin_step(&other, step, (90 * step - 89) * (int64_t)SECOND);
        run_clock_hear(&other, first.elapsed_s, other.step_s);
        EXPECT_NEAR(run_clock_part_after_step(&other), run_clock_part_after_step(&first), 0);
        EXPECT_NEAR(run_clock_part(&other, step + 1), run_clock_part(&first, step + 1), 0);
        run_clock_end_step(&first, 2 * step * (int64_t)SECOND);
        run_clock_end_step(&other, 90 * step * (int64_t)SECOND);
        run_clock_hear(&other, first.elapsed_s, first.step_s);
        EXPECT(run_clock_is_over(&other) == run_clock_is_over(&first), "step %d ends one of them", step);
    }
    EXPECT_NEAR(other.elapsed_s, 7, 1e-9);
}

/* A resumed run has the seconds that are left, whatever time its clock shows. */
static void resumed_runs_go_on(void)
{
    struct run_clock whole = {.total_s = 60}, first = {.total_s = 60}, second = {.total_s = 60};
    int n, n_rest;
    run(&whole, SECOND, 2, 0, &n);
    for (int i = 0; i < 10; i++) {
        run_clock_begin_step(&first, i + 1, (int64_t)(1 + 2 * i) * SECOND);
        run_clock_end_step(&first, (int64_t)(3 + 2 * i) * SECOND);
    }
    run_clock_resume(&second, first.elapsed_s, first.step_s);
    EXPECT_NEAR(run_clock_part(&second, 11), 20.0 / 60, 1e-12);
    run(&second, 86400 * (int64_t)SECOND, 2, 0, &n_rest);
    EXPECT(n == 30 && n_rest == 20, "%d steps, and %d after the tenth", n, n_rest);
    struct run_clock over = {.total_s = 60};
    run_clock_resume(&over, second.elapsed_s, second.step_s);
    EXPECT(run_clock_is_over(&over), "it goes on behind its end");
}

static void jumps_do_not_count(void)
{
    struct run_clock c = {.total_s = 10000};
    int64_t now = SECOND;
    run_clock_begin_step(&c, 1, now);
    run_clock_end_step(&c, now += 2 * (int64_t)SECOND);
    run_clock_begin_step(&c, 2, now += 3600 * (int64_t)SECOND); /* the machine slept */
    EXPECT_NEAR(c.elapsed_s, 4, 1e-9);
    run_clock_end_step(&c, now - 50 * (int64_t)SECOND); /* back */
    EXPECT_NEAR(c.elapsed_s, 4, 1e-9);
    c.step_s = 7;
    run_clock_begin_step(
        &c, 3, now += 650 * (int64_t)SECOND); /* 700 s: as long as a hundred steps, so it may be true */
    EXPECT_NEAR(c.elapsed_s, 704, 1e-9);
    c.step_s = 1;
    run_clock_begin_step(&c, 4, now += 599 * (int64_t)SECOND); /* an evaluation may take minutes */
    EXPECT_NEAR(c.elapsed_s, 1303, 1e-9);
}

static void parts_are_of_steps_or_seconds(void)
{
    struct run_progress p = {.n_steps = 8};
    struct run_part part = run_progress_part(&p);
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
    runs_end_in_time();
    parts_rise_to_1();
    ranks_have_one_clock();
    resumed_runs_go_on();
    jumps_do_not_count();
    return 0;
}
