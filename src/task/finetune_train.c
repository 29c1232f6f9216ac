#include "task/finetune_job.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/log.h"

#include <math.h>

static void heldout_fini(struct finetune_heldout *h)
{
    batch_step_fini(&h->one);
    sorted_batches_fini(&h->batches);
    *h = (struct finetune_heldout){0};
}

/* Batches of these examples, whose limits must be within the trainer's. */
static struct status heldout_init(struct finetune_heldout *h, const struct example_source *source,
                                  int64_t batch_size, const struct batch_layout *layout, int32_t pad_id)
{
    struct batch_limits limits = text_batch_limits(batch_size, source->max_length, 0);
    *h = (struct finetune_heldout){0};
    TRY(sorted_batches_init(&h->batches, source, limits, pad_id));
    struct status s = batch_step_init(&h->one, 1, layout, limits);
    if (failed(s)) {
        heldout_fini(h);
    }
    return s;
}

/* The sums of all examples, without dropout. */
static struct status heldout_run(struct finetune_heldout *h, struct trainer *t, struct trainer_result *result)
{
    *result = (struct trainer_result){0};
    for (int64_t i = 0; i < h->batches.n; i++) {
        struct trainer_result r;
        sorted_batches_fill(&h->batches, i, &h->one.micro[0]);
        batch_step_count(&h->one);
        TRY(trainer_evaluate(t, &h->one, &r));
        result->n_sums = r.n_sums;
        for (int k = 0; k < r.n_sums; k++) {
            result->sums[k].of = r.sums[k].of;
            result->sums[k].sum += r.sums[k].sum;
            result->sums[k].count += r.sums[k].count;
        }
    }
    return status_ok();
}

struct status finetune_train_limits(struct finetune_job *j)
{
    const struct run_settings *s = &j->options->run;
    TRY(example_batches_init(&j->batches, &j->open.train.source, s->batch.train_batch_size,
                             s->batch.gradient_accumulation_steps, (uint64_t)s->seed,
                             tokenizer_tail_id(&j->open.model.tokenizer)));
    j->limits = example_batches_limits(&j->batches);
    return status_ok();
}

int64_t finetune_train_steps(const struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    int64_t batch = o->run.batch.train_batch_size, per_epoch = (j->open.train.source.n + batch - 1) / batch;
    return o->max_steps > 0 ? (int64_t)o->max_steps : per_epoch * (int64_t)o->num_train_epochs;
}

/* Steps of the schedule.  In the replaced script for questions their number counts examples, not features, so
 * the last few steps run at rate 0 (docs/quirks.md). */
static int64_t schedule_steps(const struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    const struct finetune_data *data = &j->open.train;
    if (o->max_steps > 0 || !data->counts_examples) {
        return finetune_train_steps(j);
    }
    int64_t steps = data->n_examples / o->run.batch.train_batch_size * (int64_t)o->num_train_epochs;
    return steps < 1 ? 1 : steps;
}

static struct status hash_file(unsigned long long *hash, const char *path)
{
    struct file_map m;
    TRY(file_map_open(&m, path));
    *hash = hash_fnv1a(m.data, m.n);
    file_map_close(&m);
    return status_ok();
}

/* Held-out data is part of what a run does where it decides when the run ends. */
static struct status name_data(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    unsigned long long hash;
    TRY(hash_file(&hash, o->train_file));
    int n = snprintf(j->data_id, sizeof j->data_id, "file %016llx", hash);
    if (o->run.early.patience > 0) {
        TRY(hash_file(&hash, o->eval_file));
        snprintf(j->data_id + n, sizeof j->data_id - (size_t)n, ", held out %016llx", hash);
    }
    j->run.loop.state.data = j->data_id;
    struct same_run same = {0};
    same_run_add(&same, "the content of --train_file", j->data_id);
    return same_run_check(&same, &j->run.loop.ranks.world, STATUS_DATA);
}

/* A short run has curves too, unless a flag or a log of the replaced scripts says how often it logs. */
static int64_t log_interval(const struct finetune_job *j)
{
    enum { LEAST_LINES = 40 };
    const struct run_settings *s = &j->options->run;
    int64_t every = j->run.loop.last_step / LEAST_LINES;
    if (s->log_freq_given || s->json_summary != NULL || every >= s->log_freq) {
        return s->log_freq;
    }
    return every < 1 ? 1 : every;
}

static void log_step(struct finetune_job *j, int64_t n_sequences, double lr, const struct trainer_result *r)
{
    const struct finetune_options *o = j->options;
    if (r->skipped) {
        metrics_skipped(&j->run.metrics, j->run.loop.state.step, r);
        return;
    }
    double loss_of_step = j->open.train.prepare != NULL ? j->loss : trainer_result_loss(r);
    j->told_loss += loss_of_step;
    j->told_steps++;
    j->window_loss += loss_of_step;
    j->window_steps++;
    j->window_sequences += n_sequences;
    int64_t step = j->run.loop.state.step;
    bool is_last = step == j->run.loop.last_step, at_line = step % j->log_every == 0 || is_last,
         ends_told = step % o->run.log_freq == 0 || is_last;
    bool shows = metrics_line_is_due(&j->run.metrics, step);
    if (!at_line && !shows && !ends_told) {
        return;
    }
    double told = j->told_loss / (double)j->told_steps;
    double done = (double)(step - j->run.metrics.first_step + 1);
    double seconds = clock_since_s(j->start_ns);
    double rate = done * (double)o->run.batch.train_batch_size / seconds;
    struct progress_time left = progress_time(seconds / done * (double)(j->run.loop.last_step - step));
    if (shows) {
        char line[160];
        snprintf(line, sizeof line, "step %lld/%lld loss %.4f %.1f seq/s lr %.2e %s left", (long long)step,
                 (long long)j->run.loop.last_step, told, rate, lr, left.text);
        metrics_line(&j->run.metrics, line);
    }
    if (at_line) {
        double window_s = clock_since_s(j->window_start_ns);
        j->run.metrics.step = step;
        metrics_event(&j->run.metrics, "step",
                      json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)step, "step_loss",
                                j->window_loss / (double)j->window_steps, "learning_rate", lr, "grad_norm",
                                r->grad_norm, "sequences_per_second", (double)j->window_sequences / window_s,
                                "steps_per_second", (double)j->window_steps / window_s));
        j->window_start_ns = clock_ns();
        j->window_loss = 0;
        j->window_steps = j->window_sequences = 0;
    }
    if (ends_told) {
        j->result.final_loss = told;
        j->told_loss = 0;
        j->told_steps = 0;
    }
}

static struct status next_batch(void *self, int64_t step, const struct batch_step **batch)
{
    struct finetune_job *j = self;
    const struct finetune_data *data = &j->open.train;
    example_batches_step(&j->batches, step, &j->step);
    *batch = &j->step;
    return data->prepare == NULL ? status_ok()
                                 : data->prepare(data->self, &j->run.trainer, &j->step, step,
                                                 &j->run.loop.ranks.world, &j->loss);
}

static void on_result(void *self, const struct batch_step *batch, double lr, const struct trainer_result *r)
{
    struct finetune_job *j = self;
    j->result.n_skipped += r->skipped;
    if (++j->result.n_steps > j->options->throughput_warmup_steps) {
        j->n_sequences += (double)batch->n_sequences;
    } else {
        j->measured_ns = clock_ns();
    }
    log_step(j, batch->n_sequences, lr, r);
}

static struct status evaluate(void *self, double *loss)
{
    struct finetune_job *j = self;
    struct trainer_result r;
    char line[160] = "";
    size_t used = 0;
    profile_phase(&j->run.loop.profile, "evaluation");
    TRY(heldout_run(&j->heldout, &j->run.trainer, &r));
    profile_phase(&j->run.loop.profile, NULL);
    json_t *event = json_pack("{s:I}", "step", (json_int_t)j->run.loop.state.step);
    for (int i = 0; i < r.n_sums && used < sizeof line; i++) {
        double mean = trainer_sum_mean(&r.sums[i]);
        json_object_set_new(event, r.sums[i].of->name, json_real(mean));
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.4f", i == 0 ? "" : ", ",
                                 r.sums[i].of->text, mean);
    }
    log_info("step %lld held-out: %s", (long long)j->run.loop.state.step, line);
    metrics_event(&j->run.metrics, "evaluation", event);
    *loss = trainer_result_loss(&r);
    j->result.heldout_loss = *loss;
    return status_ok();
}

static const struct loop_task fine_tuning = {.next_batch = next_batch, .on_result = on_result};
static const struct loop_task fine_tuning_evaluated = {
    .next_batch = next_batch, .on_result = on_result, .evaluate = evaluate};

static void start_log(struct finetune_job *j)
{
    const struct run_settings *s = &j->options->run;
    const struct finetune_data *data = &j->open.train;
    struct metrics_start start = run_start(&j->run);
    start.task = data->task;
    start.drop_in = DROP_IN_FINETUNING;
    start.steps_per_epoch = (double)example_batches_per_epoch(&j->batches);
    metrics_start(&j->run.metrics, &start);
    metrics_event(&j->run.metrics, "training",
                  json_pack("{s:I, s:I, s:I, s:I}", data->unit, (json_int_t)data->n_examples, "features",
                            (json_int_t)data->source.n, "micro_batch_size",
                            (json_int_t)(s->batch.train_batch_size / s->batch.gradient_accumulation_steps),
                            "steps", (json_int_t)j->run.loop.last_step));
}

static void set_loop(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    struct run_settings *s = &j->options->run;
    struct loop *l = &j->run.loop;
    int64_t n_steps = schedule_steps(j);
    s->keep_checkpoints = FINETUNE_KEPT;
    s->eval_steps = s->eval_steps > 0 ? s->eval_steps : example_batches_per_epoch(&j->batches);
    l->task = o->eval_file != NULL ? &fine_tuning_evaluated : &fine_tuning;
    l->schedule = (struct schedule){.kind = SCHEDULE_LINEAR,
                                    .base = s->learning_rate,
                                    .warmup = s->warmup_proportion,
                                    .n_steps = n_steps};
    l->state = run_state_begin(s, j->run.trainer.config.net.precision);
    l->state.optimizer = j->run.trainer.config.optimizer.kind->name;
    l->state.settings.max_steps = n_steps;
    l->state.update = j->run.trainer.config.optimizer;
    l->state.lr_schedule = "linear";
    l->state.freeze = o->freeze;
    l->state.layerwise_lr_decay = o->layerwise_lr_decay < 1 ? o->layerwise_lr_decay : 0;
    l->last_step = finetune_train_steps(j);
    j->log_every = log_interval(j);
    l->place.step = -1;
}

/* A run that resumed after its last evaluation repeats that evaluation. */
static struct status find_heldout_loss(struct finetune_job *j)
{
    const struct run_state *state = &j->run.loop.state;
    TRY(loop_take_best(&j->run.loop));
    if (j->options->run.early.patience > 0 && state->early.best_step > 0) {
        j->result.heldout_loss = state->early.best_loss;
        return status_ok();
    }
    double loss;
    return j->options->eval_file != NULL && j->result.n_steps == 0 ? evaluate(j, &loss) : status_ok();
}

struct status finetune_train_restore(struct finetune_job *j)
{
    const struct finetune_options *o = j->options;
    const struct batch_layout *layout = &j->run.model->layout;
    bool found;
    j->result = (struct finetune_trained){.heldout_loss = NAN};
    set_loop(j);
    TRY(batch_step_init_part(&j->step, o->run.batch.gradient_accumulation_steps, j->run.loop.ranks.world.rank,
                             j->run.loop.ranks.world.size, rank_options_in_turn(&o->run.ranks), layout,
                             example_batches_limits(&j->batches)));
    if (j->open.heldout.source.n > 0) {
        TRY(heldout_init(&j->heldout, &j->open.heldout.source, o->predict_batch_size, layout,
                         j->batches.pad_id));
    }
    TRY(name_data(j));
    return loop_restore(&j->run.loop, &found);
}

struct status finetune_train(struct finetune_job *j)
{
    TRY(loop_open(&j->run.loop));
    start_log(j);
    j->start_ns = j->measured_ns = j->window_start_ns = clock_ns();
    struct status s = loop_run(&j->run.loop);
    progress_end(&j->run.metrics.progress);
    j->result.seconds = clock_since_s(j->start_ns);
    j->result.sequences_per_second = j->n_sequences / clock_since_s(j->measured_ns);
    return failed(s) ? s : find_heldout_loss(j);
}

void finetune_train_close(struct finetune_job *j)
{
    heldout_fini(&j->heldout);
    batch_step_fini(&j->step);
}
