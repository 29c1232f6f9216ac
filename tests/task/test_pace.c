/* task/pace: one line after ten seconds, from what was measured after the first step. */
#include "task/pace.h"

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

int main(void)
{
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
