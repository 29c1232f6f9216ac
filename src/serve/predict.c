#include "serve/predict.h"

#include "core/clock.h"
#include "core/stop.h"

static void show(struct progress *progress, const struct request *r, int64_t start)
{
    if (progress != NULL && r->n_back > 0 && progress_due(progress)) {
        double part = (double)r->n_back / (double)r->source.n, seconds = clock_since_s(start);
        progress_show(progress, "predicting %.0f %%, %.1f sequences/s, %s left", 100 * part,
                      (double)r->n_back / seconds, progress_time(seconds / part * (1 - part)).text);
    }
}

struct status predict_run(struct packer *p, struct request *r, const struct predict_options *o)
{
    int64_t start = clock_ns();
    packer_add(p, r);
    for (bool more = true; more && !r->ended;) {
        TRY(packer_step(p, &more));
        show(o->progress, r, start);
        r->cancelled = !r->ended && o->stopped != NULL && o->stopped();
    }
    FAIL_IF(r->cancelled, STATUS_PREEMPTED, "stopped by %s while predicting; nothing was written",
            stop_cause());
    if (o->progress != NULL && !failed(r->status)) {
        progress_end(o->progress);
    }
    return packer_explain(p, r->status);
}

static struct status take(void *self, int64_t feature, const tensor outputs[MODEL_N_OUTPUTS])
{
    return squad_answers_add(self, feature, outputs[MODEL_SPAN_LOGITS].data);
}

struct request predict_answers_request(struct squad_answers *answers)
{
    return (struct request){.source = squad_features_source(answers->features),
                            .order = answers->order,
                            .outputs = 1U << MODEL_SPAN_LOGITS,
                            .take = take,
                            .self = answers};
}
