/* The timing of candidates on a device of this test's own, which does what makes short work hard to time:
 * each launch costs the host more than the work costs the device, and the device runs slowly until it has
 * been busy for a while. */
#include "test.h"

#include "ops/cuda/choice/choice_timing.h"

#include <math.h>

/* Microseconds. */
static const double OF_LAUNCH = 5, OF_REPLAY = 10, CLOCKS_RISE = 20e3, SLOW = 5;

static struct {
    double host, device, busy; /* the clocks, and how long the device has worked */
    double marks[CHOICE_TIMING_RUNS + 1];
    bool records, refuses_records;
    double recorded;
    int n_recordings;
} gpu;

/* The device begins when it is told and done with what was before. */
static void give(double work)
{
    double begin = fmax(gpu.host, gpu.device), took = work * (gpu.busy < CLOCKS_RISE ? SLOW : 1);
    gpu.device = begin + took;
    gpu.busy += took;
}

static bool mark(void *self, int i)
{
    (void)self;
    gpu.host += 1;
    gpu.marks[i] = fmax(gpu.host, gpu.device);
    return true;
}

static bool wait(void *self)
{
    (void)self;
    gpu.host = fmax(gpu.host, gpu.device);
    return true;
}

static double elapsed(void *self, int from, int to)
{
    (void)self;
    return gpu.marks[to] - gpu.marks[from];
}

static bool record_begin(void *self)
{
    (void)self;
    gpu.records = true;
    gpu.recorded = 0;
    return true;
}

static void *record_end(void *self)
{
    (void)self;
    gpu.records = false;
    gpu.n_recordings += !gpu.refuses_records;
    return gpu.refuses_records ? NULL : &gpu.recorded;
}

static bool replay(void *self, void *recording)
{
    (void)self;
    gpu.host += OF_REPLAY;
    give(*(double *)recording);
    return true;
}

static void forget(void *self, void *recording)
{
    (void)self, (void)recording;
    gpu.n_recordings--;
}

/* A candidate: what it takes the device; negative: it is refused. */
static bool run(void *candidate)
{
    double work = *(const double *)candidate;
    if (work >= 0 && gpu.records) {
        gpu.recorded += work;
    } else if (work >= 0) {
        gpu.host += OF_LAUNCH;
        give(work);
    }
    return work >= 0;
}

static struct choice_stream stream_of_idle_device(void)
{
    memset(&gpu, 0, sizeof gpu);
    return (struct choice_stream){mark, wait, elapsed, record_begin, record_end, replay, forget, NULL, false};
}

static void expect_near(double micros, double wanted)
{
    EXPECT(fabs(micros - wanted) < 0.05 * wanted, "%g us, which takes %g", micros, wanted);
}

int main(void)
{
    struct choice_stream s = stream_of_idle_device();
    double shorter = 2, longer = 3, long_work = 900, refused = -1;
    /* both are shorter than a launch: by marks around launches they would be alike, and the first five times
     * as long */
    expect_near(choice_timing_run(&s, run, &longer), longer);
    expect_near(choice_timing_run(&s, run, &shorter), shorter);
    EXPECT(gpu.n_recordings == 0, "%d recordings are left", gpu.n_recordings);
    expect_near(choice_timing_run(&s, run, &long_work), long_work);
    EXPECT(isinf(choice_timing_run(&s, run, &refused)), "a candidate that is refused has a time");
    expect_near(choice_timing_run(&s, run, &shorter), shorter);

    s = stream_of_idle_device(); /* long work is slow too where clocks are low */
    expect_near(choice_timing_run(&s, run, &long_work), long_work);

    s = stream_of_idle_device();
    gpu.refuses_records = true;
    EXPECT(isinf(choice_timing_run(&s, run, &shorter)), "what cannot be recorded has a time");
    s = stream_of_idle_device();
    EXPECT(isinf(choice_timing_run(&s, run, &refused)), "a refused candidate warms up for ever");
    printf("test_choice_timing: short work is timed without its launches, after the clocks have risen\n");
    return 0;
}
