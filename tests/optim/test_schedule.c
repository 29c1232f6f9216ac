/* The learning rates of the replaced recipes. */
#include "test.h"

#include "optim/schedule.h"

static void poly_schedule_has_its_published_rates(void)
{
    struct schedule phase1 = {
        .kind = SCHEDULE_POLY, .base = 6e-3, .warmup = 0.2843, .degree = 0.5, .n_steps = 7038};
    EXPECT_NEAR(schedule_rate(&phase1, 2000), 0.0059973, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase1, 2001), 0.0050759, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase1, 7038), 0, 0);
    struct schedule phase2 = {
        .kind = SCHEDULE_POLY, .base = 4e-3, .warmup = 0.128, .degree = 0.5, .n_steps = 1563};
    EXPECT_NEAR(schedule_rate(&phase2, 200), 0.0039987, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase2, 201), 0.0037340, 5e-8);
}

static void linear_schedule_is_continuous(void)
{
    struct schedule s = {.kind = SCHEDULE_LINEAR, .base = 1.0, .warmup = 0.1, .n_steps = 100};
    EXPECT_NEAR(schedule_rate(&s, 5), 0.5, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 10), 1.0, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 55), 0.5, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 100), 0.0, 1e-12);
}

/* By the part of the run, for runs that end by the clock: that of the steps, without counting them. */
static void rates_of_parts_are_those_of_steps(void)
{
    const enum schedule_kind kinds[] = {SCHEDULE_POLY, SCHEDULE_LINEAR, SCHEDULE_CONSTANT,
                                        SCHEDULE_POLY_CONSTANT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct schedule s = {
            .kind = kinds[i], .base = 2.0, .warmup = 0.1, .constant = 0.2, .degree = 0.5, .n_steps = 64};
        for (int64_t k = 1; k <= 64; k++) {
            EXPECT_NEAR(schedule_rate_at(&s, (double)k / 64), schedule_rate(&s, k), 0);
        }
        s.n_steps = 0;
        EXPECT_NEAR(schedule_rate_at(&s, 0.05), 1, 1e-15);
    }
}

/* BERT-1.5B's: 7,750 steps of warm-up, constant to 46,500, then on a line to 0 at 155,000. */
static void constant_part_has_its_published_rates(void)
{
    struct schedule s = {.kind = SCHEDULE_POLY_CONSTANT,
                         .base = 1.5e-3,
                         .warmup = 0.05,
                         .constant = 0.25,
                         .degree = 1,
                         .n_steps = 155000};
    EXPECT_NEAR(schedule_rate(&s, 1), 1.5e-3 / 7750, 1e-15);
    EXPECT_NEAR(schedule_rate(&s, 3875), 7.5e-4, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 7750), 1.5e-3, 1e-15);
    EXPECT_NEAR(schedule_rate(&s, 46500), 1.5e-3, 1e-15);
    EXPECT_NEAR(schedule_rate(&s, 100000), 7.6037e-4, 5e-9);
    EXPECT_NEAR(schedule_rate(&s, 155000), 0, 0);
    s.degree = 0.5;
    EXPECT_NEAR(schedule_rate(&s, 100750), 1.5e-3 * sqrt(0.5), 1e-15);
    s.constant = 0; /* continuous, unlike the other script's */
    EXPECT_NEAR(schedule_rate(&s, 7751), 1.5e-3, 1e-8);
    s.constant = 0.95; /* nothing is left behind the constant part */
    EXPECT_NEAR(schedule_rate(&s, 155000), 1.5e-3, 0);
}

/* That of BERT-5B's first recipe, with W = 10,000, D = 2,000,000 and the rate 1e-4. */
static void warmup_counts_steps(void)
{
    struct schedule s = {
        .kind = SCHEDULE_WARMUP, .base = 3e-4, .max = 1e-4, .warmup_steps = 10000, .decay_steps = 2000000};
    EXPECT_NEAR(schedule_rate(&s, 1), 3e-4, 0);
    EXPECT_NEAR(schedule_rate(&s, 2), 0, 0);
    EXPECT_NEAR(schedule_rate(&s, 5002), 5e-5, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 10002), 1e-4, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 1005002), 5e-5, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 2000002), 0, 0);
    EXPECT_NEAR(schedule_rate(&s, 3000000), 0, 0);
    s.decay_steps = 10001; /* one step of decay: its first rate is the highest */
    EXPECT_NEAR(schedule_rate(&s, 10002), 1e-4, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 10003), 0, 0);
    s.decay_steps = 0;
    EXPECT_NEAR(schedule_rate(&s, 3000000), 1e-4, 1e-18);
    s.is_log = true;
    s.min = 1e-5;
    EXPECT_NEAR(schedule_rate(&s, 2), 1e-5, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 101), 1e-5 + 9e-5 * 0.5, 1e-15); /* log(100) / log(10,000) */
    EXPECT_NEAR(schedule_rate(&s, 10002), 1e-4, 1e-18);
}

/* The 13B recipe of Megatron-DeepSpeed: the rate of a step is that of the samples before it. */
static void annealing_counts_samples(void)
{
    struct schedule s = {.kind = SCHEDULE_ANNEAL,
                         .max = 1e-4,
                         .min = 1e-5,
                         .decay = SCHEDULE_DECAY_COSINE,
                         .warmup_samples = 216320,
                         .decay_samples = 126953125,
                         .growth = {16, 16, 5000000, 1024}};
    EXPECT_NEAR(schedule_rate(&s, 1), 0, 0);
    EXPECT_NEAR(schedule_rate(&s, 2), 7.396e-9, 1e-12); /* published in its log, at step 1 */
    s.growth = (struct batch_growth){.batch = 1000};
    s.warmup_samples = 10000;
    s.decay_samples = 110000;
    EXPECT_NEAR(schedule_rate(&s, 6), 5e-5, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 11), 1e-4, 1e-18);
    EXPECT_NEAR(schedule_rate(&s, 36), 1e-5 + 9e-5 * (1 + sqrt(0.5)) / 2, 1e-15);
    EXPECT_NEAR(schedule_rate(&s, 61), 5.5e-5, 1e-15);
    EXPECT_NEAR(schedule_rate(&s, 111), 1e-5, 1e-15);
    EXPECT_NEAR(schedule_rate(&s, 500), 1e-5, 0);
    s.decay = SCHEDULE_DECAY_LINEAR;
    EXPECT_NEAR(schedule_rate(&s, 36), 1e-5 + 9e-5 * 0.75, 1e-15);
    s.decay = SCHEDULE_DECAY_CONSTANT;
    EXPECT_NEAR(schedule_rate(&s, 500), 1e-4, 0);
    s.warmup_samples = 0;
    EXPECT_NEAR(schedule_rate(&s, 1), 1e-4, 0);
}

int main(void)
{
    poly_schedule_has_its_published_rates();
    linear_schedule_is_continuous();
    rates_of_parts_are_those_of_steps();
    constant_part_has_its_published_rates();
    warmup_counts_steps();
    annealing_counts_samples();
    return 0;
}
