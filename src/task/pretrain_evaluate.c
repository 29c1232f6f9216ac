/* Held-out data of a run of pre-training: its loss at each evaluation, and that of counts of n-grams. */
#include "task/pretrain_run.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/signals.h"
#include "nn/model_measures.h"
#include "task/samples.h"
#include "task/together.h"

#include <math.h>
#include <stdio.h>

/* ---- samples of which each evaluation takes those that follow the last one's ---- */

static struct status init_validation(struct validation *v, const struct batch_source *source)
{
    *v = (struct validation){.source = source};
    return batch_step_init(&v->room, 1, source->layout, source->limits);
}

/* Evaluates this rank's micro-batches, every size-th; counts[] gets their labels.  After the last they begin
 * again. */
static struct status add_batches(struct validation *v, struct trainer *t, const struct comm *data,
                                 int64_t first, int64_t end, struct batch_step *counts)
{
    int64_t n = v->source->heldout_batches(v->source->self, INT64_MAX);
    for (int64_t i = first + data->rank; i < end; i += data->size) {
        TRY(v->source->heldout(v->source->self, INT64_MAX, i % n, v->room.micro));
        batch_step_count(&v->room);
        trainer_evaluate_batch(t, v->room.micro);
        exec_synchronize(&t->net.x); /* before `room` is filled again */
        for (int k = 0; k < BATCH_MOST_FIELDS; k++) {
            counts->n_labels[k] += v->room.n_labels[k];
        }
    }
    return status_ok();
}

/* Sums over all ranks; those with parts of one model have the same. */
static struct status sum_results(const struct comm *data, struct status so_far, struct trainer_result *r)
{
    double numbers[2 * MODEL_MOST_SUMS] = {0};
    for (int i = 0; i < r->n_sums; i++) {
        numbers[2 * i] = r->sums[i].sum;
        numbers[2 * i + 1] = (double)r->sums[i].count;
    }
    TRY(together_sum(data, so_far, numbers, 2 * MODEL_MOST_SUMS));
    for (int i = 0; i < r->n_sums; i++) {
        r->sums[i].sum = numbers[2 * i];
        r->sums[i].count = (int64_t)numbers[2 * i + 1];
    }
    return status_ok();
}

static struct status run_validation(struct validation *v, struct trainer *t, const struct comm *data,
                                    int64_t first, int64_t n, int64_t micro, struct trainer_result *result)
{
    struct batch_step counts = {0};
    *result = (struct trainer_result){0};
    trainer_evaluate_begin(t);
    struct status s = add_batches(v, t, data, first / micro, (first + n) / micro, &counts);
    struct status read = trainer_evaluate_end(t, &counts, result);
    return sum_results(data, failed(s) ? s : read, result);
}

/* ---- counts of n-grams ---- */

static void *count(void *argument)
{
    struct ngram_beside *b = argument;
    b->status = b->options->kind->count_ngrams(&b->score, b->in, b->n_samples, b->options);
    atomic_store(&b->done, true);
    return NULL;
}

static void begin_counting(struct ngram_beside *b, const struct pretrain_inputs *in, int64_t n_samples,
                           const struct pretrain_options *o)
{
    sigset_t before;
    if (o->kind->count_ngrams == NULL) {
        return;
    }
    b->in = in;
    b->options = o;
    b->n_samples = n_samples;
    signals_block(&before);
    b->running = pthread_create(&b->thread, NULL, count, b) == 0;
    signals_restore(&before);
    if (!b->running) {
        log_warning("no counts of n-grams: a thread for them cannot be started");
    }
}

/* True once, when b->score is there; with `wait` it is waited for. */
static bool take_count(struct ngram_beside *b, bool wait)
{
    if (!b->running || (!wait && !atomic_load(&b->done))) {
        return false;
    }
    pthread_join(b->thread, NULL);
    b->running = false;
    if (failed(b->status)) {
        log_warning("no counts of n-grams: %s", b->status.message);
        b->score.n_samples = 0;
    }
    return b->score.n_samples > 0;
}

/* ---- what a run does with them ---- */

void pretrain_tell_ngrams(struct pretrain_run *r, bool wait)
{
    if (take_count(&r->ngram, wait)) {
        metrics_ngram(&r->run.metrics, &r->ngram.score);
    }
}

/* Samples [first, first + n) of held-out data; `of` says where the run is. */
static struct status validate(struct pretrain_run *r, struct validation *v, int64_t first, int64_t n,
                              const char *of, double *loss)
{
    struct trainer_result result;
    int64_t start = clock_ns();
    int64_t micro =
        r->options->run.batch.train_batch_size / r->options->run.batch.gradient_accumulation_steps;
    profile_phase(&r->run.loop.profile, "evaluation");
    TRY(run_validation(v, &r->run.trainer, &r->run.loop.ranks.data, first, n, micro, &result));
    profile_phase(&r->run.loop.profile, NULL);
    metrics_validation(&r->run.metrics, r->run.loop.state.step, &result, of, n, v == &r->validation,
                       clock_ns() - start);
    *loss = trainer_result_loss(&result);
    return status_ok();
}

/* With eval_iters: evaluates batches of the size of the step's batch, after those of the evaluation before.
 * At the end of training one more, and the test. */
static struct status evaluate_next(struct pretrain_run *r, double *loss)
{
    const struct pretrain_options *o = r->options;
    int64_t step = r->run.loop.state.step, n = o->eval_iters * pretrain_samples_at(o, step).batch;
    char at[40];
    snprintf(at, sizeof at, "iteration %lld", (long long)step);
    if (r->validation.source != NULL && o->run.eval_steps > 0 && step % o->run.eval_steps == 0) {
        TRY(validate(r, &r->validation, pretrain_validated_before(o, step), n, at, loss));
    }
    if (step < o->run.max_steps) {
        return status_ok();
    }
    if (r->validation.source != NULL) {
        TRY(validate(r, &r->validation, pretrain_validated_before(o, step + 1), n,
                     "the end of training for val data", loss));
    }
    double of_test;
    return r->test.source == NULL
               ? status_ok()
               : validate(r, &r->test, 0, n, "the end of training for test data", &of_test);
}

static struct status evaluate_all(struct pretrain_run *r, double *loss)
{
    struct trainer_result result;
    if (r->evaluation.batches.n_micro == 0) {
        return status_ok();
    }
    profile_phase(&r->run.loop.profile, "evaluation");
    int64_t start = clock_ns();
    TRY(trainer_evaluate(&r->run.trainer, &r->evaluation.batches, &result));
    profile_phase(&r->run.loop.profile, NULL);
    metrics_evaluation(&r->run.metrics, r->run.loop.state.step, &result, &r->evaluation.unigram,
                       clock_ns() - start);
    plateau_watch(&r->plateau, r->run.loop.state.step, &result, &r->evaluation.unigram);
    *loss = trainer_result_loss(&result);
    return status_ok();
}

struct status pretrain_evaluate(void *self, double *loss)
{
    struct pretrain_run *r = self;
    *loss = NAN;
    pretrain_tell_ngrams(r, true);
    TRY(r->options->eval_iters > 0 ? evaluate_next(r, loss) : evaluate_all(r, loss));
    samples_draw(r);
    r->losses.after = *loss;
    return status_ok();
}

/* Names what the kind knows against the plateau. */
static void advise(struct pretrain_run *r)
{
    if (r->options->kind->advise != NULL) {
        r->options->kind->advise(r->advice, sizeof r->advice, r->options);
    }
    r->plateau.is_masked = r->options->kind->advise != NULL;
    r->plateau.advice = r->advice[0] != '\0' ? r->advice : NULL;
}

/* Begins the baseline of counts, which the first rank finds during the first steps. */
static void begin_ngrams(struct pretrain_run *r, int64_t n_samples)
{
    if (together_is_first(&r->run.loop.ranks.world)) {
        begin_counting(&r->ngram, &r->in, n_samples, r->options);
    }
}

/* Opens held-out data whose samples are drawn when they are needed. */
static struct status open_validation(struct pretrain_run *r)
{
    struct pretrain_inputs *in = &r->in;
    if (in->heldout.source.self != NULL) {
        const struct pretrain_options *o = r->options;
        TRY(init_validation(&r->validation, &in->heldout.source));
        begin_ngrams(r, o->eval_iters * pretrain_samples_at(o, o->run.eval_steps).batch);
    }
    return in->test.source.self == NULL ? status_ok() : init_validation(&r->test, &in->test.source);
}

/* Bytes of text for each token that a decoder predicts in held-out batches: what makes bits per byte of its
 * loss.  Special tokens have none.  0: the tokenizer does not know its bytes, or the model is no decoder. */
static double bytes_per_token(const struct pretrain_run *r)
{
    const struct tokenizer *t = &r->in.tokenizer;
    const struct model_sum *sum = &r->in.model->sums[0];
    const struct batch_step *batches = &r->evaluation.batches;
    struct buf text = {0};
    double n = 0;
    if (t->n == 0 || !t->kind->decodes_bytes || sum->name != model_measures[MEASURE_NEXT_TOKEN].loss) {
        return 0;
    }
    for (int64_t b = 0; b < batches->n_micro; b++) {
        const struct batch *batch = &batches->micro[b];
        const int32_t *labels = batch->fields[sum->labels];
        for (int64_t i = 0; i < batch_real_rows(batch, batch->layout->fields[sum->labels].rows); i++) {
            if (labels[i] >= 0 && labels[i] < t->n && !tokenizer_is_special(t, labels[i])) {
                buf_clear(&text);
                t->kind->decode(t, &text, &labels[i], 1);
                n += (double)text.n;
            }
        }
    }
    buf_fini(&text);
    return batches->n_labels[sum->labels] > 0 ? n / (double)batches->n_labels[sum->labels] : 0;
}

static struct status open_samples(struct pretrain_run *r)
{
    if (r->in.heldout.source.self == NULL) {
        return status_ok();
    }
    slow_work_phase(&r->run.loop.start, "drawing held-out samples, and counting the words of %s,",
                    r->options->input_dir);
    TRY(evaluation_init(&r->evaluation, &r->in.heldout.source, r->options->eval_samples, &r->in.train.source,
                        r->in.model->sums[0].labels, r->in.model->vocab_size));
    r->bytes_per_token = bytes_per_token(r);
    begin_ngrams(r, r->options->eval_samples);
    pretrain_inputs_release_heldout(&r->in);
    return status_ok();
}

struct status pretrain_open_evaluation(struct pretrain_run *r)
{
    advise(r);
    return r->options->eval_iters > 0 ? open_validation(r) : open_samples(r);
}

void pretrain_close_evaluation(struct pretrain_run *r)
{
    take_count(&r->ngram, true); /* the thread reads the inputs */
    evaluation_fini(&r->evaluation);
    batch_step_fini(&r->validation.room);
    batch_step_fini(&r->test.room);
}
