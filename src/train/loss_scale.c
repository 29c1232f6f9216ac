#include "train/loss_scale.h"

struct loss_scale loss_scale_of(struct loss_scale_rule r)
{
    r.first = r.first > 0 ? r.first : LOSS_SCALE_FIRST;
    r.least = r.least > 0 ? r.least : LOSS_SCALE_LEAST;
    r.most = r.most > 0 ? r.most : LOSS_SCALE_MOST;
    r.window = r.window > 0 ? r.window : LOSS_SCALE_WINDOW;
    r.hysteresis = r.hysteresis > 0 ? r.hysteresis : 1;
    return (struct loss_scale){
        .rule = r, .value = r.fixed > 0 ? r.fixed : r.first, .dynamic = !(r.fixed > 0)};
}

void loss_scale_raise(struct loss_scale *s)
{
    s->n_kept = s->rule.forgets ? 0 : s->n_kept;
    if (!s->dynamic || ++s->n_good < s->rule.window) {
        return;
    }
    s->n_good = s->n_kept = 0;
    if (2 * s->value <= s->rule.most) {
        s->value *= 2;
    }
}

bool loss_scale_lower(struct loss_scale *s)
{
    bool is_kept = s->n_kept + 1 < s->rule.hysteresis;
    if (!s->dynamic || (!is_kept && s->value <= s->rule.least)) {
        return false;
    }
    s->n_good = 0;
    if (is_kept) {
        s->n_kept++;
        return true;
    }
    s->value = s->value / 2 < s->rule.least ? s->rule.least : s->value / 2;
    return true;
}
