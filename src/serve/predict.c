#include "serve/predict.h"

#include "core/clock.h"
#include "dev/host_view.h"
#include "pass/culprit.h"
#include "watch/profile.h"

#include <stdlib.h>
#include <string.h>

/* A batch, and the examples that its sequences are. */
struct predicted_batch {
    struct batch batch;
    const int64_t *examples; /* [n_sequences] */
};

/* Memory of a prediction: the batch that runs, the one before or after it, and the logits of a batch. */
struct prediction {
    const struct predict_options *options;
    struct sorted_batches batches;
    struct predicted_batch turns[2]; /* batch i is in turns[i % 2] */
    float *logits;                   /* [rows of a batch, n_logits] */
};

static struct status prediction_init(struct prediction *p, const struct predict_options *o,
                                     const struct batch_layout *layout)
{
    int64_t n_rows = o->rows == BATCH_OF_TOKENS ? o->limits.n_tokens : o->limits.n_sequences;
    p->options = o;
    TRY(sorted_batches_init(&p->batches, &o->source, o->limits, o->pad_id));
    for (int i = 0; i < 2; i++) {
        TRY(batch_init(&p->turns[i].batch, layout, o->limits));
    }
    p->logits = malloc((size_t)(n_rows * o->n_logits) * sizeof *p->logits);
    if (p->logits == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the logits of %lld tokens",
                            (long long)o->limits.n_tokens);
    }
    return status_ok();
}

static void prediction_fini(struct prediction *p)
{
    for (int i = 0; i < 2; i++) {
        batch_fini(&p->turns[i].batch);
    }
    free(p->logits);
    sorted_batches_fini(&p->batches);
}

static void fill(struct prediction *p, int64_t i)
{
    struct predicted_batch *b = &p->turns[i % 2];
    b->examples = sorted_batches_fill(&p->batches, i, &b->batch);
}

/* Waits for the logits of batch i, the last one queued. */
static struct status fetch_logits(struct prediction *p, int64_t i, struct network *n)
{
    const struct predict_options *o = p->options;
    struct host_view view;
    int64_t n_rows = batch_all_rows(&p->turns[i % 2].batch, o->rows);
    TRY(host_view_open(&view, &n->x, stage_head_output(&n->stage, o->output)));
    memcpy(p->logits, view.host.data, (size_t)(n_rows * o->n_logits) * sizeof *p->logits);
    host_view_close(&view);
    return culprit_of_result(n, tensor_2d(p->logits, DTYPE_F32, n_rows, o->n_logits), o->what);
}

/* Passes on the logits of each sequence of a batch. */
static struct status take_logits(struct prediction *p, int64_t i)
{
    const struct predict_options *o = p->options;
    const struct predicted_batch *turn = &p->turns[i % 2];
    for (int64_t b = 0; b < turn->batch.n_sequences; b++) {
        bool tokens = o->rows == BATCH_OF_TOKENS;
        int64_t first = tokens ? turn->batch.cu_seqlens[b] : b;
        int64_t n = tokens ? turn->batch.cu_seqlens[b + 1] - first : 1;
        TRY(o->take(o->self, turn->examples[b], p->logits + first * o->n_logits, n));
    }
    return status_ok();
}

static void show(const struct prediction *p, int64_t done, int64_t start)
{
    struct progress *progress = p->options->progress;
    if (progress_due(progress)) {
        int64_t n = p->batches.firsts[done];
        double part = (double)n / (double)p->batches.source.n, seconds = clock_since_s(start);
        progress_show(progress, "predicting %.0f %%, %.1f sequences/s, %s left", 100 * part,
                      (double)n / seconds, progress_time(seconds / part * (1 - part)).text);
    }
}

/* While the device computes a batch, the host reads the logits of the previous one and assembles the next. */
static struct status run(struct prediction *p, struct network *n)
{
    int64_t n_batches = p->batches.n, start = clock_ns();
    for (int64_t i = 0; i <= n_batches; i++) { /* one more round, for the last logits */
        if (i < n_batches) {
            profile_micro_step(n->profile);
            profile_phase(n->profile, "batch");
            fill(p, i);
        }
        if (i > 0) {
            profile_phase(n->profile, "logits");
            TRY(fetch_logits(p, i - 1, n));
        }
        if (i < n_batches) {
            profile_phase(n->profile, "forward");
            stage_infer(&n->stage, &p->turns[i % 2].batch);
        }
        if (i > 0) {
            profile_phase(n->profile, "answers");
            TRY(take_logits(p, i - 1));
            show(p, i, start);
        }
        if (p->options->stopped != NULL && p->options->stopped()) {
            return status_error(STATUS_PREEMPTED,
                                "stopped by a signal while predicting; nothing was written");
        }
    }
    progress_end(p->options->progress);
    return status_ok();
}

struct status predict_run(struct network *n, const struct predict_options *o)
{
    struct prediction p = {0};
    struct status s = prediction_init(&p, o, &n->config.model->layout);
    if (!failed(s)) {
        s = run(&p, n);
    }
    prediction_fini(&p);
    return s;
}
