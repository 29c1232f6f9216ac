#include "report/drop_in_logs.h"

#include <string.h>

/* Adjacent rows of the same event and form make one record; each parameter is a record of its own.  A row
 * without a key has the value true. */
struct dllog_name {
    const char *event, *key;
    enum dllog_form form;
    const char *name;
};

/* A row without a key is all sums of the model, by their names after the tag. */
struct tfevents_name {
    const char *event, *key, *tag;
    enum drop_in_stream stream;
};

/* Metrics of the event "score", which both logs call so. */
#define SCORES(X)                                                                                            \
    X("exact_match")                                                                                         \
    X("F1")                                                                                                  \
    X("accuracy")                                                                                            \
    X("precision")                                                                                           \
    X("recall")                                                                                              \
    X("f1") X("f1_micro") X("f1_macro") X("matthews_correlation") X("pearson") X("spearmanr") X("mse")
#define DLLOG_SCORE(KEY)    {"score", KEY, DLLOG_SUMMARY, KEY},
#define TFEVENTS_SCORE(KEY) {"score", KEY, KEY, STREAM_EVAL},

static const struct dllog_name pretraining_dllog_names[] = {
    {"start", "flags", DLLOG_PARAMETER, "Config"},
    {"start", "seed", DLLOG_PARAMETER, "SEED"},
    {"start", NULL, DLLOG_PARAMETER, "train_start"},
    {"start", "micro_batch_size", DLLOG_PARAMETER, "batch_size_per_pu"},
    {"start", "learning_rate", DLLOG_PARAMETER, "learning_rate"},
    {"saved", "global_step", DLLOG_PARAMETER, "checkpoint_step"},
    {"step", "loss", DLLOG_ITERATION, "average_loss"},
    {"step", "step_loss", DLLOG_ITERATION, "step_loss"},
    {"step", "learning_rate", DLLOG_ITERATION, "learning_rate"},
    {"step", "seconds_per_step", DLLOG_ITERATION, "average_training_time_step"},
    {"step", "sequences_per_second", DLLOG_ITERATION, "average_perf_per_step"},
    {"end", "final_loss", DLLOG_ITERATION, "final_loss"},
    {"end", "seconds_per_step", DLLOG_ITERATION, "average_training_time_step"},
    {"end", "sequences_per_second", DLLOG_ITERATION, "average_perf_per_step"},
    {"end", "process_seconds", DLLOG_SUMMARY, "e2e_train_time"},
    {"end", "sequences_per_second", DLLOG_SUMMARY, "training_sequences_per_second"},
    {"end", "final_loss", DLLOG_SUMMARY, "final_loss"},
    {"end", "training_seconds", DLLOG_SUMMARY, "raw_train_time"},
    {"end", "memory_usage", DLLOG_SUMMARY, "memory usage"},
    {NULL, NULL, DLLOG_SUMMARY, NULL},
};

static const struct dllog_name finetuning_dllog_names[] = {
    {"start", "flags", DLLOG_PARAMETER, "Config"},
    {"start", "seed", DLLOG_PARAMETER, "SEED"},
    {"start", NULL, DLLOG_PARAMETER, "loading_checkpoint"},
    {"start", NULL, DLLOG_PARAMETER, "loaded_checkpoint"},
    {"start", "parameters", DLLOG_PARAMETER, "model_weights_num"},
    {"training", NULL, DLLOG_PARAMETER, "train_start"},
    {"training", "questions", DLLOG_PARAMETER, "training_samples"},
    {"training", "texts", DLLOG_PARAMETER, "training_samples"},
    {"training", "features", DLLOG_PARAMETER, "training_features"},
    {"training", "micro_batch_size", DLLOG_PARAMETER, "train_batch_size"},
    {"training", "steps", DLLOG_PARAMETER, "steps"},
    {"predicting", NULL, DLLOG_PARAMETER, "infer_start"},
    {"predicting", "questions", DLLOG_PARAMETER, "eval_samples"},
    {"predicting", "texts", DLLOG_PARAMETER, "eval_samples"},
    {"predicting", "features", DLLOG_PARAMETER, "eval_features"},
    {"predicting", "batch_size", DLLOG_PARAMETER, "predict_batch_size"},
    {"predicting", NULL, DLLOG_PARAMETER, "eval_start"},
    {"saved", "global_step", DLLOG_PARAMETER, "checkpoint_step"},
    {"step", "step_loss", DLLOG_ITERATION, "step_loss"},
    {"step", "learning_rate", DLLOG_ITERATION, "learning_rate"},
    {"trained", "e2e_train_time", DLLOG_SUMMARY, "e2e_train_time"},
    {"trained", "training_sequences_per_second", DLLOG_SUMMARY, "training_sequences_per_second"},
    {"trained", "final_loss", DLLOG_SUMMARY, "final_loss"},
    {"trained", "memory_usage", DLLOG_SUMMARY, "memory usage"},
    {"predicted", "features", DLLOG_PARAMETER, "sample_number"},
    {"predicted", "e2e_inference_time", DLLOG_SUMMARY, "e2e_inference_time"},
    {"predicted", "inference_sequences_per_second", DLLOG_SUMMARY, "inference_sequences_per_second"},
    SCORES(DLLOG_SCORE){NULL, NULL, DLLOG_SUMMARY, NULL},
};

/* 'Loss', 'performance' and the start are the replaced script's; the others are kiln's own. */
static const struct tfevents_name pretraining_tfevents_names[] = {
    {"start", "time", "_hparams_/session_start_info", STREAM_TRAIN},
    {"step", "loss", "Loss", STREAM_TRAIN},
    {"step", "sequences_per_second", "performance", STREAM_TRAIN},
    {"step", "learning_rate", "learning_rate", STREAM_TRAIN},
    {"step", "grad_norm", "grad_norm", STREAM_TRAIN},
    {"step", NULL, "train/", STREAM_TRAIN},
    {"step", "tokens_per_second", "tokens_per_second", STREAM_TRAIN},
    {"evaluation", NULL, "heldout/", STREAM_TRAIN},
    {NULL, NULL, NULL, STREAM_TRAIN},
};

static const struct tfevents_name finetuning_tfevents_names[] = {
    {"step", "step_loss", "Loss", STREAM_TRAIN},
    {"step", "steps_per_second", "iters_per_sec", STREAM_TRAIN},
    {"step", "learning_rate", "learning_rate", STREAM_TRAIN},
    {"step", "grad_norm", "grad_norm", STREAM_TRAIN},
    SCORES(TFEVENTS_SCORE){NULL, NULL, NULL, STREAM_TRAIN},
};

void drop_in_logs_open(struct drop_in_logs *l, const struct drop_in_options *o)
{
    bool pretraining = o->task == DROP_IN_PRETRAINING;
    *l = (struct drop_in_logs){
        .dllog_names = pretraining ? pretraining_dllog_names : finetuning_dllog_names,
        .tfevents_names = pretraining ? pretraining_tfevents_names : finetuning_tfevents_names,
        .model = o->model,
        .first_step = o->global_step + 1,
    };
    dllog_warn(dllog_open(&l->dllog, o->dllogger_file, o->append, o->dllogger_file != NULL));
    if (o->tensorboard_in != NULL) {
        snprintf(l->directory, sizeof l->directory, "%s/worker_0", o->tensorboard_in);
    }
    if (o->deepspeed != NULL) {
        deepspeed_log_open(&l->deepspeed, o->deepspeed, l->dllog.print, o->step);
    }
    if (o->megatron != NULL) {
        megatron_log_open(&l->megatron, o->megatron, o->step);
    }
}

void drop_in_logs_close(struct drop_in_logs *l)
{
    dllog_close(&l->dllog);
    deepspeed_log_close(&l->deepspeed);
    megatron_log_close(&l->megatron);
    for (int i = 0; i < N_STREAMS; i++) {
        tfevents_close(&l->streams[i]);
    }
}

/* The value as the table wants it: borrowed for "true" and for fields, new for the list of flags. */
static json_t *dllog_value(const struct dllog_name *n, const json_t *fields)
{
    json_t *value = n->key == NULL ? json_true() : json_object_get(fields, n->key);
    if (!json_is_object(value)) {
        return json_incref(value);
    }
    struct buf text = {0};
    dllog_append_namespace(&text, value);
    value = failed(buf_status(&text)) ? NULL : json_pack("[s]", buf_text(&text));
    buf_fini(&text);
    return value;
}

static void tell_dllog(struct drop_in_logs *l, const char *event, const json_t *fields, int64_t epoch,
                       int64_t step)
{
    for (const struct dllog_name *n = l->dllog_names; n->event != NULL; n++) {
        if (strcmp(n->event, event) != 0) {
            continue;
        }
        json_t *record = json_object();
        const struct dllog_name *first = n;
        json_object_set_new(record, n->name, dllog_value(n, fields)); /* an absent value is not set */
        while (first->form != DLLOG_PARAMETER && n[1].event != NULL && strcmp(n[1].event, event) == 0 &&
               n[1].form == first->form) {
            n++;
            json_object_set_new(record, n->name, dllog_value(n, fields));
        }
        if (json_object_size(record) > 0) {
            dllog_warn(dllog_write(&l->dllog, (struct dllog_step){first->form, epoch, step}, record));
        }
        json_decref(record);
    }
}

/* A stream's file is created by its first event, so a run without evaluations leaves no empty file. */
static struct tfevents *open_stream(struct drop_in_logs *l, enum drop_in_stream stream)
{
    if (!l->stream_open[stream]) {
        char path[1056];
        snprintf(path, sizeof path, "%s%s", l->directory, stream == STREAM_EVAL ? "/eval" : "");
        l->stream_open[stream] = true;
        dllog_warn(tfevents_open(&l->streams[stream], path, l->first_step));
    }
    return &l->streams[stream];
}

enum { MOST_SCALARS = 16 };

struct scalars {
    struct tfevents_scalar scalars[MOST_SCALARS];
    char tags[MODEL_MOST_SUMS][80]; /* tags of the model's sums */
    size_t n;
};

static void add_scalar(struct scalars *s, const char *tag, const json_t *value)
{
    if (json_is_number(value)) {
        CHECK(s->n < MOST_SCALARS, "an event has more than %d scalars", MOST_SCALARS);
        s->scalars[s->n++] = (struct tfevents_scalar){tag, json_number_value(value)};
    }
}

static void add_row(struct scalars *s, const struct tfevents_name *t, const struct model *model,
                    const json_t *fields)
{
    if (t->key != NULL) {
        add_scalar(s, t->tag, json_object_get(fields, t->key));
        return;
    }
    for (int i = 0; i < model->n_sums; i++) {
        snprintf(s->tags[i], sizeof s->tags[i], "%s%s", t->tag, model->sums[i].name);
        add_scalar(s, s->tags[i], json_object_get(fields, model->sums[i].name));
    }
}

static void tell_tensorboard(struct drop_in_logs *l, const char *event, const json_t *fields, int64_t step)
{
    double wall_s = json_number_value(json_object_get(fields, "time"));
    for (int stream = 0; stream < N_STREAMS; stream++) {
        struct scalars s = {.n = 0};
        for (const struct tfevents_name *t = l->tfevents_names; t->event != NULL; t++) {
            if ((int)t->stream == stream && strcmp(t->event, event) == 0) {
                add_row(&s, t, l->model, fields);
            }
        }
        if (s.n > 0) {
            dllog_warn(
                tfevents_write(open_stream(l, (enum drop_in_stream)stream), step, wall_s, s.scalars, s.n));
        }
    }
}

void drop_in_logs_event(struct drop_in_logs *l, const char *event, const json_t *fields, int64_t epoch,
                        int64_t step, int64_t global_step)
{
    if (l->dllog.print || l->dllog.log.file != NULL) {
        tell_dllog(l, event, fields, epoch, step);
    }
    if (l->directory[0] != '\0') {
        tell_tensorboard(l, event, fields, global_step);
    }
    if (strcmp(event, "saved") == 0) {
        int64_t saved = json_integer_value(json_object_get(fields, "global_step"));
        deepspeed_log_saved(&l->deepspeed, saved);
        megatron_log_saved(&l->megatron, saved,
                           json_number_value(json_object_get(fields, "stall_seconds")) +
                               json_number_value(json_object_get(fields, "write_seconds")));
    }
}

void drop_in_logs_step(struct drop_in_logs *l, const struct logged_step *s)
{
    deepspeed_log_step(&l->deepspeed, s);
    megatron_log_step(&l->megatron, s);
}
