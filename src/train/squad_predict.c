#include "train/squad_predict.h"

#include "core/clock.h"
#include "data/squad_batches.h"
#include "dev/host_view.h"
#include "nn/bert_model.h"
#include "train/diagnose.h"
#include "train/profile.h"

#include <stdlib.h>
#include <string.h>

struct batch_limits squad_predict_limits(const struct squad_features *features, int64_t batch_size)
{
    return bert_batch_limits(batch_size, features->max_length, 0);
}

/* A batch, and which features its sequences are. */
struct predicted_batch {
    struct batch batch;
    int64_t *indices; /* [batch_size] */
};

/* Memory of a prediction: the batch that is computed and the one before or after it, the logits of a batch, and those
 * of one feature as starts and ends. */
struct prediction {
    struct squad_batches batches;
    struct predicted_batch turns[2]; /* batch i is in turns[i % 2] */
    float *logits;                   /* [tokens of a batch, 2] */
    float *start, *end;              /* [features->max_length] */
};

static struct status prediction_init(struct prediction *p, const struct squad_features *f, int64_t batch_size,
                                     int32_t pad_id)
{
    size_t longest = (size_t)f->max_length + 1;
    struct batch_limits limits = squad_predict_limits(f, batch_size);
    TRY(squad_batches_init_sorted(&p->batches, f, batch_size, pad_id));
    for (int i = 0; i < 2; i++) {
        TRY(bert_batch_init(&p->turns[i].batch, limits));
        p->turns[i].indices = malloc((size_t)batch_size * sizeof *p->turns[i].indices);
    }
    p->logits = malloc(2 * (size_t)limits.n_tokens * sizeof *p->logits);
    p->start = malloc(longest * sizeof *p->start);
    p->end = malloc(longest * sizeof *p->end);
    if (p->turns[0].indices == NULL || p->turns[1].indices == NULL || p->logits == NULL || p->start == NULL ||
        p->end == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the logits of %lld tokens",
                            (long long)limits.n_tokens);
    }
    return status_ok();
}

static void prediction_fini(struct prediction *p)
{
    for (int i = 0; i < 2; i++) {
        free(p->turns[i].indices);
        batch_fini(&p->turns[i].batch);
    }
    free(p->logits);
    free(p->start);
    free(p->end);
    squad_batches_fini(&p->batches);
}

static void fill(struct prediction *p, int64_t i)
{
    struct predicted_batch *b = &p->turns[i % 2];
    squad_batches_sorted(&p->batches, i, &b->batch, b->indices);
}

/* Waits for the logits of batch i, which was computed last. */
static struct status fetch_logits(struct prediction *p, int64_t i, struct trainer *t)
{
    struct host_view view;
    const struct batch *batch = &p->turns[i % 2].batch;
    TRY(host_view_open(&view, &t->x, stage_head_output(&t->stage, BERT_SPAN_LOGITS)));
    memcpy(p->logits, view.host.data, 2 * (size_t)batch->n_tokens * sizeof *p->logits);
    host_view_close(&view);
    return diagnose_result(t, tensor_2d(p->logits, DTYPE_F32, batch->n_tokens, 2),
                           "the scores of the answers");
}

/* Hands the logits of each sequence of a batch to the answers. */
static struct status take_logits(struct prediction *p, int64_t i, struct squad_answers *answers)
{
    const struct predicted_batch *turn = &p->turns[i % 2];
    for (int64_t b = 0; b < turn->batch.n_sequences; b++) {
        int64_t first = turn->batch.cu_seqlens[b], n = turn->batch.cu_seqlens[b + 1] - first;
        for (int64_t k = 0; k < n; k++) {
            p->start[k] = p->logits[2 * (first + k)];
            p->end[k] = p->logits[2 * (first + k) + 1];
        }
        TRY(squad_answers_add(answers, turn->indices[b], p->start, p->end));
    }
    return status_ok();
}

static void show(struct progress *progress, const struct prediction *p, int64_t done, int64_t n,
                 int64_t start)
{
    if (progress_due(progress)) {
        double part = (double)done / (double)n, seconds = clock_since_s(start);
        progress_show(progress, "predicting %.0f %%, %.1f sequences/s, %s left", 100 * part,
                      (double)(done * p->batches.batch_size) / seconds,
                      progress_time(seconds / part * (1 - part)).text);
    }
}

/* While the device computes a batch, the answers of the one before are found and the one behind it is put together. */
static struct status run(struct prediction *p, struct trainer *t, struct squad_answers *answers,
                         struct progress *progress, bool (*stopped)(void))
{
    int64_t n_batches = squad_batches_per_epoch(&p->batches), start = clock_ns();
    for (int64_t i = 0; i <= n_batches; i++) { /* one round more, for the last answers */
        if (i < n_batches) {
            profile_micro_step(t->profile);
            profile_phase(t->profile, "batch");
            fill(p, i);
        }
        if (i > 0) {
            profile_phase(t->profile, "logits");
            TRY(fetch_logits(p, i - 1, t));
        }
        if (i < n_batches) {
            profile_phase(t->profile, "forward");
            stage_infer(&t->stage, &p->turns[i % 2].batch);
        }
        if (i > 0) {
            profile_phase(t->profile, "answers");
            TRY(take_logits(p, i - 1, answers));
            show(progress, p, i, n_batches, start);
        }
        if (stopped != NULL && stopped()) {
            return status_error(STATUS_PREEMPTED,
                                "stopped by a signal while predicting; nothing was written");
        }
    }
    progress_end(progress);
    return squad_answers_finish(answers);
}

struct status squad_predict(struct trainer *t, struct squad_answers *answers, int64_t batch_size,
                            int32_t pad_id, struct progress *progress, bool (*stopped)(void))
{
    struct prediction p = {0};
    struct status s = prediction_init(&p, answers->features, batch_size, pad_id);
    if (!failed(s)) {
        s = run(&p, t, answers, progress, stopped);
    }
    prediction_fini(&p);
    return s;
}
