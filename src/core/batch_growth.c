#include "core/batch_growth.h"

/* Steps of one size, from those that begin when `before` samples were taken. */
struct level {
    int64_t before, batch;
    int64_t n_steps; /* INT64_MAX: all that follow */
};

/* Samples of each size but the last. */
static double samples_of_a_size(const struct batch_growth *g)
{
    int64_t n_sizes = (g->batch - g->start) / g->increment;
    return (double)g->n_samples / (double)n_sizes;
}

static int64_t size_after(const struct batch_growth *g, int64_t taken)
{
    if (g->n_samples == 0 || taken > g->n_samples) {
        return g->batch;
    }
    return g->start + g->increment * (int64_t)((double)taken / samples_of_a_size(g));
}

static struct level level_at(const struct batch_growth *g, int64_t before)
{
    struct level l = {before, size_after(g, before), INT64_MAX};
    if (g->n_samples == 0 || before > g->n_samples) {
        return l;
    }
    int64_t n_before = (l.batch - g->start) / g->increment;
    double next = samples_of_a_size(g) * (double)(n_before + 1); /* within rounding */
    l.n_steps = (int64_t)((next - (double)before) / (double)l.batch);
    l.n_steps = l.n_steps < 1 ? 1 : l.n_steps;
    while (l.n_steps > 1 && size_after(g, before + (l.n_steps - 1) * l.batch) != l.batch) {
        l.n_steps--;
    }
    while (before + l.n_steps * l.batch <= g->n_samples &&
           size_after(g, before + l.n_steps * l.batch) == l.batch) {
        l.n_steps++;
    }
    return l;
}

struct batch_growth_step batch_growth_at(const struct batch_growth *g, int64_t step)
{
    struct level l = level_at(g, 0);
    int64_t left = step - 1;
    while (left >= l.n_steps) {
        left -= l.n_steps;
        l = level_at(g, l.before + l.n_steps * l.batch);
    }
    return (struct batch_growth_step){l.before + left * l.batch, l.batch};
}

int64_t batch_growth_steps(const struct batch_growth *g, int64_t n)
{
    struct level l = level_at(g, 0);
    int64_t n_steps = 0;
    while (l.n_steps <= (n - l.before) / l.batch) {
        n_steps += l.n_steps;
        l = level_at(g, l.before + l.n_steps * l.batch);
    }
    return n_steps + (n - l.before) / l.batch;
}
