/* task/pretrain_ramps: the part of a run that is done, by steps and by the clock; and the sizes that a ramp
 * sets. */
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

static struct pretrain_options options(void)
{
    return (struct pretrain_options){.schedule = "linear",
                                     .max_seq_length = 128,
                                     .train_batch_size = 32,
                                     .gradient_accumulation_steps = 1,
                                     .max_steps = 10};
}

/* What was not given follows from the ramp: its end is the batch, its beginning a micro-batch. */
static void ramps_set_sizes(void)
{
    const struct pretrain_ramps_given nothing = {0};
    struct pretrain_options o = options();
    o.batch_ramp = "4096:16384:0.5";
    EXPECT_OK(pretrain_ramps_read(&o, &nothing));
    EXPECT(o.train_batch_size == 128 && o.gradient_accumulation_steps == 4, "%lld in %lld",
           (long long)o.train_batch_size, (long long)o.gradient_accumulation_steps);
    EXPECT(o.n_micro.from == 1 && o.n_micro.to == 4 && o.n_micro.share == 0.5, "from %g to %g",
           o.n_micro.from, o.n_micro.to);
    o = options();
    o.batch_ramp = "4096:16384:0.5";
    o.gradient_accumulation_steps = 16;
    EXPECT_OK(pretrain_ramps_read(&o, &(struct pretrain_ramps_given){.gradient_accumulation_steps = true}));
    EXPECT(o.n_micro.from == 4 && o.n_micro.to == 16, "from %g to %g", o.n_micro.from, o.n_micro.to);
    o = options();
    o.length_schedule = "32:0.25,128:0.25,512:0.5";
    EXPECT_OK(pretrain_ramps_read(&o, &nothing));
    EXPECT(o.max_seq_length == 512 && o.n_shorter == 2 && o.shorter[0].max_seq_length == 32 &&
               o.shorter[1].max_seq_length == 128 && o.shorter[0].until == 0.25 && o.shorter[1].until == 0.5,
           "%d shorter lengths", o.n_shorter);
}

/* Words that are no numbers, too many, or numbers that no run has. */
static void other_words_are_refused(void)
{
    static const char *const ramps[] = {
        "",          "1",         "1:2",        "1:2:",        "1:2:0.5:", "1:2:0.5x",
        "nan:2:0.5", "1:inf:0.5", "1:1e300:.5", "-256:256:.5", "0:256:.5", "a:b:c"};
    static const char *const schedules[] = {"",
                                            "128",
                                            "128:",
                                            "128:x",
                                            "128:1,",
                                            "128:-1",
                                            "1.5:1",
                                            "1e9:1",
                                            "128:nan",
                                            "128:1:1",
                                            "128:inf,1",
                                            "32:0.5,32:0.5",
                                            "3:0.5,128:0.5",
                                            "8:.1,9:.1,10:.1,11:.1,12:.1,13:.1,14:.1,15:.1,16:.2"};
    const struct pretrain_ramps_given nothing = {0};
    for (size_t i = 0; i < sizeof ramps / sizeof ramps[0]; i++) {
        struct pretrain_options o = options();
        o.batch_ramp = ramps[i];
        EXPECT_ERROR(pretrain_ramps_read(&o, &nothing), STATUS_USAGE, "--batch_ramp");
    }
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        struct pretrain_options o = options();
        o.length_schedule = schedules[i];
        EXPECT_ERROR(pretrain_ramps_read(&o, &nothing), STATUS_USAGE, "--length_schedule");
    }
}

int main(void)
{
    parts_are_of_steps_or_seconds();
    ramps_set_sizes();
    other_words_are_refused();
    return 0;
}
