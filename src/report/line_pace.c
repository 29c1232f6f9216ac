#include "report/line_pace.h"

static const int64_t SECOND_NS = 1000000000;

static bool tell(struct line_pace *p, bool due, int64_t now_ns)
{
    p->last_ns = due ? now_ns : p->last_ns;
    return due;
}

bool line_pace_after_step(struct line_pace *p, int64_t step, bool is_end, int64_t now_ns)
{
    bool by_flag = p->every > 0 && step % p->every == 0;
    bool by_clock = p->every == 0 && now_ns - p->last_ns >= LINE_PACE_SECONDS * SECOND_NS;
    return tell(p, is_end || by_flag || by_clock, now_ns);
}

bool line_pace_in_step(struct line_pace *p, int64_t begin_ns, int64_t now_ns)
{
    bool is_long = now_ns - begin_ns >= LINE_PACE_SECONDS * SECOND_NS;
    bool was_silent = p->last_ns == 0 || now_ns - p->last_ns >= LINE_PACE_STEP_SECONDS * SECOND_NS;
    return tell(p, is_long && was_silent, now_ns);
}
