#include "ops/cuda/choice/choice_timing.h"

#include <math.h>
#include <stddef.h>

/* Clocks rise within about ten milliseconds of work.  A launch costs the host a few microseconds, that of a
 * graph about ten: at most a twentieth of the time of what is timed together. */
static const double RISE_MICROS = 50e3, SHORT_MICROS = 200;

enum { WARM_UPS = 3, AT_ONCE = 16, MOST_WARM_UPS = 4096, MOST_RECORDED = 64 };

static bool repeat(bool (*run)(void *work), void *work, int n)
{
    bool fine = true;
    for (int i = 0; i < n && fine; i++) {
        fine = run(work);
    }
    return fine;
}

/* Keeps the device busy until its clocks have risen. */
static bool warm_up(struct choice_stream *s, bool (*run)(void *work), void *work)
{
    double micros = 0;
    bool fine = true;
    for (int i = 0; i < MOST_WARM_UPS && fine && micros < RISE_MICROS; i++) {
        fine = s->mark(s->self, 0) && repeat(run, work, AT_ONCE) && s->mark(s->self, 1);
        fine = s->wait(s->self) && fine;
        double took = fine ? s->elapsed(s->self, 0, 1) : -1;
        fine = took >= 0;
        micros += took;
    }
    return fine;
}

static double median(double v[CHOICE_TIMING_RUNS])
{
    for (int i = 1; i < CHOICE_TIMING_RUNS; i++) {
        for (int j = i; j > 0 && v[j] < v[j - 1]; j--) {
            double less = v[j];
            v[j] = v[j - 1];
            v[j - 1] = less;
        }
    }
    return v[CHOICE_TIMING_RUNS / 2];
}

/* Runs the work directly, or replays its recording. */
struct timed {
    struct choice_stream *s;
    bool (*run)(void *work);
    void *work, *recording;
};

static bool run_once(void *timed)
{
    const struct timed *t = timed;
    return t->recording != NULL ? t->s->replay(t->s->self, t->recording) : t->run(t->work);
}

/* The median time of a run, between consecutive marks; infinite if anything fails. */
static double time_runs(struct timed *t, int warm_ups)
{
    struct choice_stream *s = t->s;
    double micros[CHOICE_TIMING_RUNS];
    bool fine = repeat(run_once, t, warm_ups);
    for (int i = 0; i < CHOICE_TIMING_RUNS && fine; i++) {
        fine = s->mark(s->self, i) && run_once(t);
    }
    fine = fine && s->mark(s->self, CHOICE_TIMING_RUNS);
    fine = s->wait(s->self) && fine;
    for (int i = 0; i < CHOICE_TIMING_RUNS && fine; i++) {
        micros[i] = s->elapsed(s->self, i, i + 1);
        fine = micros[i] >= 0;
    }
    return fine ? median(micros) : (double)INFINITY;
}

/* Times n runs in a row as a replayed recording. */
static double time_recorded(struct timed *t, int n)
{
    struct choice_stream *s = t->s;
    double micros = (double)INFINITY;
    if (!s->record_begin(s->self)) {
        return micros;
    }
    bool fine = repeat(t->run, t->work, n);
    t->recording = s->record_end(s->self);
    if (fine && t->recording != NULL) {
        micros = time_runs(t, 1) / n;
    }
    if (t->recording != NULL) {
        s->forget(s->self, t->recording);
    }
    return micros;
}

double choice_timing_run(struct choice_stream *s, bool (*run)(void *work), void *work)
{
    struct timed t = {s, run, work, NULL};
    if (!s->is_warm && !warm_up(s, run, work)) {
        return (double)INFINITY;
    }
    s->is_warm = true;
    double micros = time_runs(&t, WARM_UPS);
    if (!isfinite(micros) || micros >= SHORT_MICROS) {
        return micros;
    }
    int n = (int)ceil(SHORT_MICROS / fmax(micros, 1)); /* the first timing includes the host's launches, so
                                                        * this is never too many */
    return time_recorded(&t, n < MOST_RECORDED ? n : MOST_RECORDED);
}
