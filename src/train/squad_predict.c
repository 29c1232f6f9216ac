#include "train/squad_predict.h"

#include "core/clock.h"
#include "data/squad_batches.h"
#include "dev/host_view.h"
#include "train/stop.h"

#include <stdlib.h>

struct bert_batch_limits squad_predict_limits(const struct squad_features *features, int64_t batch_size)
{
    return bert_batch_limits(batch_size, features->max_length, 0);
}

/* Memory of a prediction: one batch, and the logits of one feature as starts and ends. */
struct prediction {
    struct squad_batches batches;
    struct bert_batch batch;
    int64_t *indices;   /* [batch_size] feature of each sequence */
    float *start, *end; /* [features->max_length] */
};

static struct status prediction_init(struct prediction *p, const struct squad_features *f, int64_t batch_size,
                                     int32_t pad_id)
{
    size_t longest = (size_t)f->max_length + 1;
    TRY(squad_batches_init_sorted(&p->batches, f, batch_size, pad_id));
    TRY(bert_batch_init(&p->batch, squad_predict_limits(f, batch_size)));
    p->indices = malloc((size_t)batch_size * sizeof *p->indices);
    p->start = malloc(longest * sizeof *p->start);
    p->end = malloc(longest * sizeof *p->end);
    if (p->indices == NULL || p->start == NULL || p->end == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the logits of a feature of %lld tokens",
                            (long long)f->max_length);
    }
    return status_ok();
}

static void prediction_fini(struct prediction *p)
{
    free(p->indices);
    free(p->start);
    free(p->end);
    bert_batch_fini(&p->batch);
    squad_batches_fini(&p->batches);
}

/* Hands the logits of each sequence of the batch to the answers. */
static struct status take_logits(struct prediction *p, const float *logits, struct squad_answers *answers)
{
    for (int64_t b = 0; b < p->batch.n_sequences; b++) {
        int64_t first = p->batch.cu_seqlens[b], n = p->batch.cu_seqlens[b + 1] - first;
        for (int64_t i = 0; i < n; i++) {
            p->start[i] = logits[2 * (first + i)];
            p->end[i] = logits[2 * (first + i) + 1];
        }
        TRY(squad_answers_add(answers, p->indices[b], p->start, p->end));
    }
    return status_ok();
}

static struct status run(struct prediction *p, struct trainer *t, struct squad_answers *answers,
                         struct progress *progress)
{
    int64_t n_batches = squad_batches_per_epoch(&p->batches), start = clock_ns();
    struct host_view logits;
    for (int64_t i = 0; i < n_batches; i++) {
        squad_batches_sorted(&p->batches, i, &p->batch, p->indices);
        stage_infer(&t->stage, &p->batch);
        TRY(host_view_open(&logits, &t->x, t->stage.slot.qa.logits));
        struct status s = take_logits(p, logits.host.data, answers);
        host_view_close(&logits);
        TRY(s);
        if (progress_due(progress)) {
            double done = (double)(i + 1) / (double)n_batches, seconds = clock_since_s(start);
            progress_show(progress, "predicting %.0f %%, %.1f sequences/s, %s left", 100 * done,
                          (double)((i + 1) * p->batches.batch_size) / seconds,
                          progress_time(seconds / done * (1 - done)).text);
        }
        if (stop_requested()) {
            return status_error(STATUS_PREEMPTED,
                                "stopped by a signal while predicting; nothing was written");
        }
    }
    progress_end(progress);
    return squad_answers_finish(answers);
}

struct status squad_predict(struct trainer *t, struct squad_answers *answers, int64_t batch_size,
                            int32_t pad_id, struct progress *progress)
{
    struct prediction p = {0};
    struct status s = prediction_init(&p, answers->features, batch_size, pad_id);
    if (!failed(s)) {
        s = run(&p, t, answers, progress);
    }
    prediction_fini(&p);
    return s;
}
