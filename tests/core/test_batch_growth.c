/* Batches that grow: the published numbers of the 13B recipe (--rampup-batch-size 16 16 5_000_000, batches
 * of 1024, 300 M samples), and any step found directly as by counting. */
#include "test.h"

#include "core/batch_growth.h"

static const struct batch_growth recipe = {.start = 16, .increment = 16, .n_samples = 5000000, .batch = 1024};

static void the_recipe_has_its_published_steps(void)
{
    struct batch_growth_step first = batch_growth_at(&recipe, 1), last = batch_growth_at(&recipe, 23456),
                             after = batch_growth_at(&recipe, 23457);
    EXPECT(first.before == 0 && first.batch == 16, "the first batch is %lld", (long long)first.batch);
    EXPECT(last.batch == 1008, "the last that grows is %lld", (long long)last.batch);
    EXPECT(after.before == 5000528 && after.batch == 1024, "%lld samples before %lld",
           (long long)after.before, (long long)after.batch);
    EXPECT(batch_growth_steps(&recipe, 300000000) == 311541, "%lld steps",
           (long long)batch_growth_steps(&recipe, 300000000));
    int64_t n_sizes = 1;
    for (int64_t s = 2; s <= 23457; s++) {
        n_sizes += batch_growth_at(&recipe, s).batch > batch_growth_at(&recipe, s - 1).batch;
    }
    EXPECT(n_sizes == 64, "63 increments, not %lld", (long long)n_sizes - 1);
}

/* The definition, sample by sample. */
static void steps_are_those_of_counting(struct batch_growth g, int64_t n_steps)
{
    int64_t taken = 0;
    for (int64_t s = 1; s <= n_steps; s++) {
        bool grows = g.n_samples > 0 && taken <= g.n_samples;
        int64_t increments = grows ? (g.batch - g.start) / g.increment : 1;
        double each = (double)g.n_samples / (double)increments;
        int64_t size = grows ? g.start + g.increment * (int64_t)((double)taken / each) : g.batch;
        struct batch_growth_step at = batch_growth_at(&g, s);
        EXPECT(at.before == taken && at.batch == size, "step %lld: %lld + %lld, not %lld + %lld",
               (long long)s, (long long)at.before, (long long)at.batch, (long long)taken, (long long)size);
        taken += size;
        EXPECT(batch_growth_steps(&g, taken) == s && batch_growth_steps(&g, taken - 1) == s - 1,
               "%lld samples are %lld steps", (long long)taken, (long long)s);
    }
}

int main(void)
{
    the_recipe_has_its_published_steps();
    steps_are_those_of_counting(recipe, 24000);
    steps_are_those_of_counting((struct batch_growth){.batch = 8}, 20);
    steps_are_those_of_counting((struct batch_growth){2, 2, 10, 8}, 20);    /* sizes are left out */
    steps_are_those_of_counting((struct batch_growth){4, 4, 96, 12}, 40);   /* ends at a bound */
    steps_are_those_of_counting((struct batch_growth){2, 6, 1000, 8}, 300); /* one increment */
    return 0;
}
