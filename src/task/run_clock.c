#include "task/run_clock.h"

#include "core/log.h"

static double at_most_1(double part)
{
    return part < 1 ? part : 1;
}

/* The seconds since the latest reading that count. */
static double counted(const struct run_clock *c, double since_s)
{
    if (since_s < 0) {
        log_warning("the clock went back by %.3g s; this counts as no time", -since_s);
        return 0;
    }
    bool jumped =
        since_s > RUN_CLOCK_LONGEST_S && c->step_s > 0 && since_s > RUN_CLOCK_MOST_STEPS * c->step_s;
    if (jumped) {
        log_warning("%.0f s passed between two readings of the clock, and a step takes %.3g s: the machine "
                    "slept or the process was stopped, so they do not count as training",
                    since_s, c->step_s);
    }
    return jumped ? c->step_s : since_s;
}

/* Adds a reading, and returns the seconds that count. */
static double read(struct run_clock *c, int64_t now_ns)
{
    double added = c->last_ns == 0 ? 0 : counted(c, 1e-9 * (double)(now_ns - c->last_ns));
    c->last_ns = now_ns;
    c->elapsed_s += added;
    c->part = at_most_1(c->elapsed_s / c->total_s);
    return added;
}

/* The next step's batch may be made from here on, so its part is what all ranks know by now. */
void run_clock_begin_step(struct run_clock *c, int64_t step, int64_t now_ns)
{
    c->part_of[(step + 1) % 2] = c->part;
    read(c, now_ns);
}

void run_clock_end_step(struct run_clock *c, int64_t now_ns)
{
    c->step_s = read(c, now_ns);
}

void run_clock_hear(struct run_clock *c, double elapsed_s, double step_s)
{
    c->elapsed_s = elapsed_s;
    c->step_s = step_s;
    c->part = at_most_1(elapsed_s / c->total_s);
}

void run_clock_resume(struct run_clock *c, double elapsed_s, double step_s)
{
    run_clock_hear(c, elapsed_s, step_s);
    c->part_of[0] = c->part_of[1] = c->part;
}

bool run_clock_is_over(const struct run_clock *c)
{
    return c->elapsed_s + c->step_s > c->total_s;
}

double run_clock_part_after_step(const struct run_clock *c)
{
    return at_most_1((c->elapsed_s + c->step_s) / c->total_s);
}

double run_clock_part(const struct run_clock *c, int64_t step)
{
    return c->part_of[step % 2];
}

static double part_before(const void *context, int64_t step)
{
    const struct run_progress *p = context;
    double part =
        p->clock.total_s > 0 ? run_clock_part(&p->clock, step) : (double)(step - 1) / (double)p->n_steps;
    return part < 1 ? part : 1;
}

struct run_part run_progress_part(const struct run_progress *p)
{
    return (struct run_part){part_before, p};
}
