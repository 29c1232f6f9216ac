#include "task/pace.h"

#include "core/progress.h"

#include <stdio.h>

static void tell(const struct pace *p, double seconds, char *text, size_t size)
{
    double rate = p->n_tokens / seconds, micro = p->n_tokens / p->n_micro;
    bool by_clock = p->run.n_micro <= 0;
    double run_s = by_clock ? p->run.total_s : p->run.n_micro * micro / rate;
    double run_tokens = run_s * rate;
    int n = snprintf(text, size,
                     "%.0f tokens a second on this machine: the run takes about %s, for %.4g M tokens", rate,
                     progress_time(run_s).text, run_tokens / 1e6);
    if (p->run.micro_of_an_epoch > 0 && n > 0 && (size_t)n < size) {
        snprintf(text + n, size - (size_t)n, ", %.2g epochs",
                 run_tokens / (micro * p->run.micro_of_an_epoch));
    }
}

bool pace_step(struct pace *p, const struct batch_step *batch, int64_t now_ns, char *text, size_t size)
{
    if (p->told) {
        return false;
    }
    if (p->since_ns == 0) {
        p->since_ns = now_ns;
        return false;
    }
    double seconds = 1e-9 * (double)(now_ns - p->since_ns);
    p->n_tokens += (double)batch->n_tokens;
    p->n_micro += (double)batch->n_to_fill;
    p->told = seconds >= PACE_SECONDS && p->n_micro > 0;
    if (p->told) {
        tell(p, seconds, text, size);
    }
    return p->told;
}
