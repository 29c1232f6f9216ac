/* task/pace: one line after ten seconds, from what was measured after the first step; report/line_pace: lines
 * of steps that take milliseconds and minutes; task/within_step: how often ranks decide within a step. */
#include "report/line_pace.h"
#include "task/pace.h"
#include "task/within_step.h"

#include "test.h"

/* Short sequences: four times as many in a micro-batch as at the end of the run, which changes nothing. */
static const struct batch_step full = {.n_tokens = 1000, .n_sequences = 40, .n_to_fill = 2};

/* The step, from 0, after which the line comes; steps take a second, but the first a minute. */
static int told_after(struct pace *p, char *text, size_t size)
{
    int64_t now = 60 * INT64_C(1000000000);
    int told = -1;
    for (int i = 0; i < 40; i++, now += INT64_C(1000000000)) {
        if (pace_step(p, &full, now, text, size)) {
            EXPECT(told < 0, "told twice");
            told = i;
        }
    }
    return told;
}

static const int64_t MS = 1000000;

/* The lines of so many steps, each of n_micro micro-batches that take micro_ms: *within of them come within a
 * step. */
static int lines_of(struct line_pace p, int n_steps, int n_micro, int64_t micro_ms, int *within)
{
    int64_t now = 5000 * MS;
    int after = 0;
    *within = 0;
    for (int step = 1; step <= n_steps; step++) {
        int64_t begin = now;
        for (int i = 0; i < n_micro; i++, now += micro_ms * MS) {
            *within += i > 0 && line_pace_in_step(&p, begin, now);
        }
        after += line_pace_after_step(&p, step, step == 1 || step == n_steps, now);
    }
    return after;
}

static void lines_come_about_every_ten_seconds(void)
{
    static const struct {
        int64_t every, micro_ms;
        int n_steps, n_micro, after, within;
    } cases[] = {
        {0, 10, 6000, 1, 7, 0},   /* a minute of short steps: the first, the last and five between */
        {0, 4000, 10, 1, 4, 0},   /* every third */
        {0, 15000, 10, 1, 10, 0}, /* all */
        {0, 100, 5, 100, 5, 0},   /* of ten seconds */
        {0, 1000, 2, 100, 2, 6}, /* of 100 s: after 10, 40 and 70 s; then after 30, 60 and 90 of the second */
        {50, 10, 6000, 1, 121, 0}, /* as the flag says, with the first */
        {50, 1000, 2, 20, 2, 1},   /* which does not leave long steps in silence */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int within, after = lines_of((struct line_pace){.every = cases[i].every}, cases[i].n_steps,
                                     cases[i].n_micro, cases[i].micro_ms, &within);
        EXPECT(after == cases[i].after && within == cases[i].within,
               "case %zu: %d lines after steps, %d within", i, after, within);
    }
}

/* Ranks decide about once a second, and find that pace by twice as many rounds at a time. */
static void ranks_decide_once_a_second(void)
{
    int64_t stride = 1, round = 1;
    int n = 0;
    for (; round < 10000; round += stride, n++) { /* 100 s */
        stride = within_step_stride(stride, round, 0.01 * (double)round);
    }
    EXPECT(stride == 100 && n > 100 && n < 120, "%d decisions, the last after %lld rounds", n,
           (long long)stride);
    EXPECT(within_step_stride(100, 300, 3000) == 1, "rounds that have become slow");
    EXPECT(within_step_stride(4, 300, 0) == 8, "a clock that stands still");
}

int main(void)
{
    lines_come_about_every_ten_seconds();
    ranks_decide_once_a_second();
    char text[160];
    struct pace steps = {.run = {.n_micro = 7200, .micro_of_an_epoch = 3600}};
    EXPECT(told_after(&steps, text, sizeof text) == PACE_SECONDS, "too early or too late");
    EXPECT(strcmp(text, "1000 tokens a second on this machine: the run takes about 1:00:00, for 3.6 M "
                        "tokens, 2 epochs") == 0,
           "%s", text);
    struct pace seconds = {.run = {.total_s = 300}};
    told_after(&seconds, text, sizeof text);
    EXPECT(strcmp(text, "1000 tokens a second on this machine: the run takes about 5:00, for 0.3 M tokens") ==
               0,
           "%s", text);
    return 0;
}
