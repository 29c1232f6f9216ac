/* core/slow_work: a phase that takes long is told once, a short one is not, nor is what comes after the
 * end. */
#include "core/clock.h"
#include "core/log.h"
#include "core/slow_work.h"

#include "test.h"

#include <time.h>
#include <unistd.h>

static const char TOLD[] = "test_slow_work.err";
enum { AFTER_MS = 50 };

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); /* time: took_ms excuses what is late */
}

/* How often the text is in what was told until now. */
static int count(const char *part)
{
    char text[1024] = "";
    int n = 0;
    FILE *f = fopen(TOLD, "r");
    if (f != NULL) {
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
    }
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

/* Waits until the phase is told, however busy the machine is, and a while longer, in which it could be told
 * again. */
static bool is_told_once(const char *phase)
{
    while (count(phase) == 0) {
        wait_ms(2);
    }
    wait_ms(2 * AFTER_MS);
    return count(phase) == 1;
}

/* Whether it is the test that took long: another process had the processor. */
static bool took_ms(int64_t start, double ms)
{
    return clock_since_s(start) * 1e3 >= ms; /* time: an excuse, not a bound */
}

static const char *of_long_phases(void)
{
    struct slow_work w = {.after_ns = AFTER_MS * INT64_C(1000000)}, none = {0};
    int64_t start = clock_ns();
    slow_work_phase(&w, "counting to %d", 3);
    slow_work_phase(&w, "reading %s", "a file");
    bool was_long = took_ms(start, AFTER_MS), is_read = is_told_once("still reading a file after ");
    slow_work_phase(&w, NULL);
    wait_ms(2 * AFTER_MS);
    slow_work_phase(&w, "drawing weights");
    bool is_drawn = is_told_once("still drawing weights after ");
    slow_work_end(&w);
    slow_work_end(&w);
    slow_work_end(&none);
    return count("counting") > 0 && !was_long  ? "a short phase was told"
           : !is_read || count("reading") != 1 ? "reading was not told once"
           : !is_drawn                         ? "drawing was not told once"
                                               : NULL;
}

static const char *of_a_short_phase(void)
{
    struct slow_work quick = {0};
    int64_t start = clock_ns();
    slow_work_phase(&quick, "what is soon over");
    wait_ms(100);
    slow_work_end(&quick);
    return count("soon over") > 0 && !took_ms(start, 1e3 * SLOW_WORK_SECONDS) ? "a short phase was told"
                                                                              : NULL;
}

int main(void)
{
    log_set_level(LOG_INFO);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    EXPECT(saved >= 0 && freopen(TOLD, "w", stderr) != NULL, "cannot write %s", TOLD);
    setvbuf(stderr, NULL, _IONBF, 0);
    const char *wrong = of_long_phases();
    wrong = wrong == NULL ? of_a_short_phase() : wrong;
    EXPECT(dup2(saved, STDERR_FILENO) >= 0, "standard error is lost");
    EXPECT(wrong == NULL, "%s", wrong);
    unlink(TOLD);
    return 0;
}
