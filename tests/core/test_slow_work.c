/* core/slow_work: a phase that takes long is told once, a short one is not, nor is what comes after the
 * end. */
#include "core/log.h"
#include "core/slow_work.h"

#include "test.h"

#include <time.h>
#include <unistd.h>

static const char TOLD[] = "test_slow_work.err";

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void work(void)
{
    struct slow_work w = {.after_ns = 50 * INT64_C(1000000)}, none = {0};
    slow_work_phase(&w, "counting to %d", 3);
    slow_work_phase(&w, "reading %s", "a file");
    wait_ms(300);
    slow_work_phase(&w, NULL);
    wait_ms(100);
    slow_work_phase(&w, "drawing weights");
    wait_ms(200);
    slow_work_end(&w);
    slow_work_end(&w);
    slow_work_end(&none);
    struct slow_work quick = {0};
    slow_work_phase(&quick, "what is soon over");
    wait_ms(100);
    slow_work_end(&quick);
}

int main(void)
{
    char text[512] = "";
    log_set_level(LOG_INFO);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    EXPECT(saved >= 0 && freopen(TOLD, "w", stderr) != NULL, "cannot write %s", TOLD);
    work();
    fflush(stderr);
    EXPECT(dup2(saved, STDERR_FILENO) >= 0, "standard error is lost");
    FILE *f = fopen(TOLD, "r");
    EXPECT(f != NULL && fread(text, 1, sizeof text - 1, f) > 0, "nothing was told");
    fclose(f);
    unlink(TOLD);
    const char *read = strstr(text, "still reading a file after 0."),
               *draw = strstr(text, "still drawing weights after 0.");
    EXPECT(read == text && draw > read && strstr(draw, "\n")[1] == '\0', "told: %s", text);
    EXPECT(strstr(draw, "reading") == NULL, "told twice: %s", text);
    return 0;
}
