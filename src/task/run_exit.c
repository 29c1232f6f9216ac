#include "task/run_exit.h"

#include "core/clock.h"
#include "core/log.h"
#include "io/file.h"
#include "task/together.h"

bool run_exit_is_switched(const struct run_exit *e)
{
    return e->kill_switch != NULL && file_exists(e->kill_switch);
}

/* Ranks may see time and files a little apart, so one of them is enough. */
struct status run_exit_is_due(const struct run_exit *e, const struct comm *world, int64_t step, bool *due)
{
    bool by_step = e->interval > 0 && step % e->interval == 0, by_time = false, by_file = false;
    *due = by_step;
    if (e->minutes > 0) {
        TRY(together_any(world, clock_since_s(e->start_ns) >= 60 * e->minutes, &by_time));
    }
    if (e->kill_switch != NULL) {
        TRY(together_any(world, run_exit_is_switched(e), &by_file));
    }
    *due = by_step || by_time || by_file;
    if (*due && together_is_first(world)) {
        log_info("the run ends at step %lld, as %s asks", (long long)step,
                 by_file   ? "the file of the kill switch"
                 : by_time ? "the limit of its time"
                           : "the interval of exits");
    }
    return status_ok();
}
