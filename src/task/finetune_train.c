#include "task/finetune_train.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/sorted_batches.h"
#include "dist/same_run.h"
#include "task/loop.h"

#include <math.h>

/* Labelled examples that are not trained on, for their loss. */
struct heldout {
    struct sorted_batches batches;
    struct batch_step one; /* a batch at a time, so that memory does not depend on their number */
};

static void heldout_fini(struct heldout *h)
{
    batch_step_fini(&h->one);
    sorted_batches_fini(&h->batches);
    *h = (struct heldout){0};
}

/* Batches of these examples, whose limits must be within the trainer's. */
static struct status heldout_init(struct heldout *h, const struct example_source *source, int64_t batch_size,
                                  const struct batch_layout *layout, int32_t pad_id)
{
    struct batch_limits limits = text_batch_limits(batch_size, source->max_length, 0);
    *h = (struct heldout){0};
    TRY(sorted_batches_init(&h->batches, source, limits, pad_id));
    struct status s = batch_step_init(&h->one, 1, layout, limits);
    if (failed(s)) {
        heldout_fini(h);
    }
    return s;
}

/* The sums of all examples, without dropout. */
static struct status heldout_run(struct heldout *h, struct trainer *t, struct trainer_result *result)
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

/* The state of a running fine-tuning. */
struct tuning {
    struct trainer *trainer;
    const struct finetune_options *options;
    const struct tokenizer *tokenizer;
    struct example_batches batches;
    struct batch_step step; /* this rank's part */
    struct comm world;
    struct loop loop;
    struct heldout heldout;
    char data_id[80]; /* run_state's */
    struct metrics *log;
    struct finetune_trained *result;
    const struct finetune_data *data;
    double window_loss; /* sum since the last line */
    int64_t window_steps, window_sequences, window_start_ns;
    double n_sequences; /* after the warm-up of the throughput */
    int64_t start_ns, measured_ns;
};

static struct status init_batches(struct example_batches *b, const struct finetune_data *data,
                                  const struct finetune_options *o, int32_t pad_id)
{
    return example_batches_init(b, &data->source, o->train_batch_size, o->gradient_accumulation_steps,
                                (uint64_t)o->seed, pad_id);
}

struct status finetune_train_limits(const struct finetune_data *data, const struct finetune_options *o,
                                    struct batch_limits *limits)
{
    struct example_batches b;
    TRY(init_batches(&b, data, o, 0));
    *limits = example_batches_limits(&b);
    return status_ok();
}

size_t finetune_train_batch_bytes(const struct finetune_options *o, const struct batch_layout *layout,
                                  struct batch_limits limits)
{
    int64_t n_ranks = rank_options_world(&o->ranks).size;
    int64_t n = (o->gradient_accumulation_steps + n_ranks - 1) / n_ranks + (o->eval_file != NULL);
    return (size_t)n * batch_bytes(layout, limits);
}

int64_t finetune_train_steps(const struct finetune_data *data, const struct finetune_options *o)
{
    int64_t per_epoch = (data->source.n + o->train_batch_size - 1) / o->train_batch_size;
    return o->max_steps > 0 ? (int64_t)o->max_steps : per_epoch * (int64_t)o->num_train_epochs;
}

/* In the replaced script for questions the schedule's length counts examples, not features, so the last few
 * steps run at rate 0 (docs/quirks.md). */
static int64_t schedule_steps(const struct finetune_options *o, const struct finetune_data *data)
{
    if (o->max_steps > 0 || !data->counts_examples) {
        return finetune_train_steps(data, o);
    }
    int64_t steps = data->n_examples / o->train_batch_size * (int64_t)o->num_train_epochs;
    return steps < 1 ? 1 : steps;
}

static struct run_state state_of(const struct finetune_options *o, const struct trainer_config *config,
                                 int64_t n_steps)
{
    return (struct run_state){
        .command = o->command,
        .phase = 1,
        .seed = o->seed,
        .dtype = precision_name(config->net.precision),
        .optimizer = config->optimizer.kind->name,
        .max_seq_length = o->max_seq_length,
        .max_predictions_per_seq = 0,
        .train_batch_size = o->train_batch_size,
        .gradient_accumulation_steps = o->gradient_accumulation_steps,
        .max_steps = n_steps,
        .learning_rate = o->learning_rate,
        .warmup_proportion = o->warmup_proportion,
        .update = config->optimizer,
        .lr_schedule = "linear",
        .freeze = o->freeze,
        .layerwise_lr_decay = o->layerwise_lr_decay < 1 ? o->layerwise_lr_decay : 0,
    };
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
static struct status name_data(struct tuning *t)
{
    const struct finetune_options *o = t->options;
    unsigned long long hash;
    TRY(hash_file(&hash, o->train_file));
    int n = snprintf(t->data_id, sizeof t->data_id, "file %016llx", hash);
    if (o->early.patience > 0) {
        TRY(hash_file(&hash, o->eval_file));
        snprintf(t->data_id + n, sizeof t->data_id - (size_t)n, ", held out %016llx", hash);
    }
    t->loop.state.data = t->data_id;
    struct same_run same = {0};
    same_run_add(&same, "the content of --train_file", t->data_id);
    return same_run_check(&same, &t->world, STATUS_DATA);
}

static void log_step(struct tuning *t, int64_t n_sequences, double lr, const struct trainer_result *r)
{
    const struct finetune_options *o = t->options;
    if (r->skipped) {
        metrics_skipped(t->log, t->loop.state.step, r);
        return;
    }
    t->window_loss += trainer_result_loss(r);
    t->window_steps++;
    t->window_sequences += n_sequences;
    bool at_line = t->loop.state.step % o->log_freq == 0 || t->loop.state.step == t->loop.last_step;
    bool shows = metrics_line_is_due(t->log, t->loop.state.step);
    if (!at_line && !shows) {
        return;
    }
    double loss = t->window_loss / (double)t->window_steps;
    double done = (double)(t->loop.state.step - t->log->first_step + 1);
    double seconds = clock_since_s(t->start_ns);
    double rate = done * (double)o->train_batch_size / seconds;
    struct progress_time left =
        progress_time(seconds / done * (double)(t->loop.last_step - t->loop.state.step));
    if (shows) {
        char line[160];
        snprintf(line, sizeof line, "step %lld/%lld loss %.4f %.1f seq/s lr %.2e %s left",
                 (long long)t->loop.state.step, (long long)t->loop.last_step, loss, rate, lr, left.text);
        metrics_line(t->log, line);
    }
    if (at_line) {
        double window_s = clock_since_s(t->window_start_ns);
        metrics_at(t->log, t->loop.state.step);
        metrics_event(t->log, "step",
                      json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "step", (json_int_t)t->loop.state.step,
                                "step_loss", loss, "learning_rate", lr, "grad_norm", r->grad_norm,
                                "sequences_per_second", (double)t->window_sequences / window_s,
                                "steps_per_second", (double)t->window_steps / window_s));
        t->result->final_loss = loss;
        t->window_start_ns = clock_ns();
        t->window_loss = 0;
        t->window_steps = t->window_sequences = 0;
    }
}

static struct status next_batch(void *self, int64_t step, const struct batch_step **batch)
{
    struct tuning *t = self;
    example_batches_step(&t->batches, step, &t->step);
    *batch = &t->step;
    return status_ok();
}

static void on_result(void *self, const struct batch_step *batch, double lr, const struct trainer_result *r)
{
    struct tuning *t = self;
    t->result->n_skipped += r->skipped;
    if (++t->result->n_steps > t->options->throughput_warmup_steps) {
        t->n_sequences += (double)batch->n_sequences;
    } else {
        t->measured_ns = clock_ns();
    }
    log_step(t, batch->n_sequences, lr, r);
}

static struct status evaluate(void *self, double *loss)
{
    struct tuning *t = self;
    struct trainer_result r;
    char line[160] = "";
    size_t used = 0;
    profile_phase(&t->loop.profile, "evaluation");
    TRY(heldout_run(&t->heldout, t->trainer, &r));
    profile_phase(&t->loop.profile, NULL);
    json_t *event = json_pack("{s:I}", "step", (json_int_t)t->loop.state.step);
    for (int i = 0; i < r.n_sums && used < sizeof line; i++) {
        double mean = trainer_sum_mean(&r.sums[i]);
        json_object_set_new(event, r.sums[i].of->name, json_real(mean));
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %.4f", i == 0 ? "" : ", ",
                                 r.sums[i].of->text, mean);
    }
    log_info("step %lld held-out: %s", (long long)t->loop.state.step, line);
    metrics_event(t->log, "evaluation", event);
    *loss = trainer_result_loss(&r);
    t->result->heldout_loss = *loss;
    return status_ok();
}

static const struct loop_task fine_tuning = {.next_batch = next_batch, .on_result = on_result};
static const struct loop_task fine_tuning_evaluated = {
    .next_batch = next_batch, .on_result = on_result, .evaluate = evaluate};

static void start_log(struct tuning *t)
{
    const struct finetune_options *o = t->options;
    struct metrics_start start = {
        .task = t->data->task,
        .drop_in = DROP_IN_FINETUNING,
        .phase = 1,
        .step = t->loop.state.step,
        .global_step = t->loop.state.step,
        .last_step = t->loop.last_step,
        .steps_per_epoch = (double)example_batches_per_epoch(&t->batches),
        .trainer = t->trainer,
        .n_ranks = t->world.size,
        .flags = o->flags,
    };
    metrics_start(t->log, &start);
    metrics_event(t->log, "training",
                  json_pack("{s:I, s:I, s:I, s:I}", t->data->unit, (json_int_t)t->data->n_examples,
                            "features", (json_int_t)t->data->source.n, "micro_batch_size",
                            (json_int_t)(o->train_batch_size / o->gradient_accumulation_steps), "steps",
                            (json_int_t)t->loop.last_step));
}

static struct loop loop_of(struct tuning *t)
{
    const struct finetune_options *o = t->options;
    int64_t n_steps = schedule_steps(o, t->data);
    return (struct loop){
        .task = o->eval_file != NULL ? &fine_tuning_evaluated : &fine_tuning,
        .self = t,
        .trainer = t->trainer,
        .ranks = rank_options_mesh(&o->ranks),
        .replica_check_steps = o->ranks.replica_check_steps,
        .log = t->log,
        .directory = o->output_dir,
        .data_flag = "--train_file",
        .output_flag = "--output_dir",
        .resume_flag = "--resume_from_checkpoint",
        .tokenizer = t->tokenizer,
        .schedule = {SCHEDULE_LINEAR, o->learning_rate, o->warmup_proportion, 0, n_steps},
        .state = state_of(o, &t->trainer->config, n_steps),
        .last_step = finetune_train_steps(t->data, o),
        .save_steps = o->num_steps_per_checkpoint,
        .eval_steps = o->eval_steps > 0 ? o->eval_steps : example_batches_per_epoch(&t->batches),
        .early = o->early,
        .keep_last = FINETUNE_TRAIN_KEPT,
        .place = {.step = -1},
        .resume = o->resume_from_checkpoint,
        .allow_other_data = o->allow_other_data,
        .saves = !o->skip_checkpoint,
        .profile_options = &o->profile,
        .tensor_log_options = &o->tensor_log,
    };
}

/* A run that resumed behind its last evaluation makes that again. */
static struct status find_heldout_loss(struct tuning *t)
{
    const struct run_state *state = &t->loop.state;
    TRY(loop_take_best(&t->loop));
    if (t->options->early.patience > 0 && state->early.best_step > 0) {
        t->result->heldout_loss = state->early.best_loss;
        return status_ok();
    }
    double loss;
    return t->options->eval_file != NULL && t->result->n_steps == 0 ? evaluate(t, &loss) : status_ok();
}

static struct status run(struct tuning *t)
{
    bool found;
    TRY(name_data(t));
    TRY(loop_restore(&t->loop, &found));
    TRY(loop_open(&t->loop));
    start_log(t);
    t->start_ns = t->measured_ns = t->window_start_ns = clock_ns();
    struct status s = loop_run(&t->loop);
    progress_end(&t->log->progress);
    t->result->seconds = clock_since_s(t->start_ns);
    t->result->sequences_per_second = t->n_sequences / clock_since_s(t->measured_ns);
    return failed(s) ? s : find_heldout_loss(t);
}

struct status finetune_train(struct trainer *trainer, const struct finetune_data *data,
                             const struct finetune_data *heldout, const struct tokenizer *tokenizer,
                             const struct finetune_options *o, struct metrics *log,
                             struct finetune_trained *result)
{
    *result = (struct finetune_trained){.heldout_loss = NAN};
    struct tuning t = {.trainer = trainer,
                       .world = rank_options_world(&o->ranks),
                       .options = o,
                       .tokenizer = tokenizer,
                       .log = log,
                       .result = result,
                       .data = data};
    TRY(init_batches(&t.batches, data, o, tokenizer_tail_id(tokenizer)));
    t.loop = loop_of(&t);
    struct status s = batch_step_init_part(
        &t.step, o->gradient_accumulation_steps, t.world.rank, t.world.size, rank_options_in_turn(&o->ranks),
        &trainer->config.net.model->layout, example_batches_limits(&t.batches));
    if (!failed(s) && heldout->source.n > 0) {
        s = heldout_init(&t.heldout, &heldout->source, o->predict_batch_size,
                         &trainer->config.net.model->layout, tokenizer_tail_id(tokenizer));
    }
    if (!failed(s)) {
        s = run(&t);
    }
    loop_close(&t.loop);
    heldout_fini(&t.heldout);
    batch_step_fini(&t.step);
    return s;
}
