#include "task/squad.h"

#include "core/buf.h"
#include "core/json.h"
#include "core/log.h"
#include "data/squad_batches.h"
#include "data/squad_score.h"
#include "task/finetune.h"
#include "task/missing.h"
#include "serve/squad_predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Questions and their features, for training or for prediction. */
struct questions {
    struct squad_examples examples;
    struct squad_features features;
};

struct squad_task {
    const struct squad_options *options;
    const struct tokenizer *tokenizer;
    struct questions train, heldout, predict;
    struct squad_answers answers;
    struct squad_prediction prediction;
};

static struct squad_feature_options feature_options(const struct squad_task *q, bool training)
{
    const struct squad_options *o = q->options;
    return (struct squad_feature_options){
        .max_seq_length = o->run.run.max_seq_length,
        .doc_stride = o->doc_stride,
        .max_query_length = o->max_query_length,
        .training = training,
    };
}

static struct finetune_data data_of(const struct questions *q)
{
    return (struct finetune_data){.task = "question answering",
                                  .unit = "questions",
                                  .n_examples = q->examples.n,
                                  .counts_examples = true,
                                  .source = squad_batches_source(&q->features)};
}

static struct status read_training(struct squad_task *q)
{
    const struct squad_options *o = q->options;
    struct squad_read_options training = {true, o->version_2_with_negative, o->run.encoding};
    TRY(squad_examples_open(&q->train.examples, o->run.train_file, training));
    TRY(squad_features_build(&q->train.features, &q->train.examples, q->tokenizer, feature_options(q, true)));
    log_info("training: %s: %lld questions, %lld features", o->run.train_file, (long long)q->train.examples.n,
             (long long)q->train.features.n);
    return status_ok();
}

static struct status read_heldout(struct squad_task *q)
{
    const struct squad_options *o = q->options;
    struct squad_read_options training = {true, o->version_2_with_negative, o->run.encoding};
    TRY(squad_examples_open(&q->heldout.examples, o->run.eval_file, training));
    TRY(squad_features_build(&q->heldout.features, &q->heldout.examples, q->tokenizer,
                             feature_options(q, true)));
    log_info("held out: %s: %lld questions, %lld features", o->run.eval_file,
             (long long)q->heldout.examples.n, (long long)q->heldout.features.n);
    return status_ok();
}

static struct status read_prediction(struct squad_task *q)
{
    const struct squad_options *o = q->options;
    struct squad_read_options predicting = {false, o->version_2_with_negative, o->run.encoding};
    struct squad_answer_options ao = {
        .n_best = o->n_best_size,
        .max_answer_length = o->max_answer_length,
        .version_2 = o->version_2_with_negative,
        .null_score_diff_threshold = o->null_score_diff_threshold,
    };
    TRY(squad_examples_open(&q->predict.examples, o->run.predict_file, predicting));
    TRY(squad_features_build(&q->predict.features, &q->predict.examples, q->tokenizer,
                             feature_options(q, false)));
    log_info("prediction: %s: %lld questions, %lld features", o->run.predict_file,
             (long long)q->predict.examples.n, (long long)q->predict.features.n);
    TRY(squad_answers_init(&q->answers, &q->predict.examples, &q->predict.features, q->tokenizer, ao));
    return squad_predict_init(&q->prediction, &q->answers);
}

static struct status read(void *self, struct finetune *f)
{
    struct squad_task *q = self;
    q->tokenizer = &f->model.tokenizer;
    if (f->options->do_train) {
        TRY(read_training(q));
        f->train = data_of(&q->train);
    }
    if (f->options->eval_file != NULL) {
        TRY(read_heldout(q));
        f->heldout = data_of(&q->heldout);
    }
    if (f->options->do_predict) {
        TRY(read_prediction(q));
    }
    f->predict = data_of(&q->predict);
    return status_ok();
}

/* The replaced script's: no decay, no bias correction (docs/quirks.md). */
static void set_optimizer(const void *self, struct optimizer *o)
{
    (void)self;
    o->weight_decay = 0;
    o->bias_correction = false;
}

static struct request prediction(void *self)
{
    struct squad_task *q = self;
    return squad_predict_request(&q->prediction);
}

static struct status write(void *self, struct buf *names)
{
    struct squad_task *q = self;
    char predictions[MODEL_DIR_PATH_BYTES], nbest[MODEL_DIR_PATH_BYTES];
    TRY(finetune_output_path(predictions, &q->options->run, "predictions.json"));
    TRY(finetune_output_path(nbest, &q->options->run, "nbest_predictions.json"));
    TRY(squad_answers_finish(&q->answers));
    TRY(squad_answers_write(&q->answers, predictions, nbest));
    buf_printf(names, "%s and %s", predictions, nbest);
    return buf_status(names);
}

struct printed_scores {
    double exact_match, f1;
    int n; /* objects with both */
};

/* Takes the scores of an object that has both: "exact_match" (SQuAD 1.1) or "exact" (2.0), and "f1". */
static bool take_object(struct printed_scores *scores, const json_t *object)
{
    const json_t *exact = json_object_get(object, "exact_match"), *f1 = json_object_get(object, "f1");
    exact = exact == NULL ? json_object_get(object, "exact") : exact;
    bool has = json_is_number(exact) && json_is_number(f1);
    if (has) {
        *scores = (struct printed_scores){json_number_value(exact), json_number_value(f1), scores->n + 1};
    }
    return has;
}

/* The scores of the last object of JSON that has any, whatever an evaluation script has printed around it. */
static struct printed_scores find_scores(const char *printed)
{
    struct printed_scores scores = {0};
    for (const char *at = printed; (at = strchr(at, '{')) != NULL;) {
        json_error_t error; /* also says how many bytes were read */
        json_t *object = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);
        at += object != NULL && take_object(&scores, object) ? error.position : 1;
        json_decref(object);
    }
    return scores;
}

/* Runs a command and appends what it prints, which the user sees too; whether it has succeeded. */
static bool run_command(struct buf *printed, const char *command)
{
    char part[512];
    FILE *out = popen(command, "r"); /* NOLINT(cert-env33-c): the user's own script */
    if (out == NULL) {
        return false;
    }
    for (size_t n; (n = fread(part, 1, sizeof part, out)) > 0;) {
        fwrite(part, 1, n, stdout);
        buf_append(printed, part, n);
    }
    return pclose(out) == 0 && !printed->failed;
}

/* Runs `python eval_script predict_file predictions.json`, as the replaced script does. */
static struct status run_eval_script(struct score_list *scores, const struct squad_task *q,
                                     const char *predictions)
{
    const struct squad_options *o = q->options;
    char command[4 * MODEL_DIR_PATH_BYTES];
    struct buf printed = {0};
    if (strpbrk(o->eval_script, "'\\") != NULL || strpbrk(o->run.predict_file, "'\\") != NULL ||
        strpbrk(predictions, "'\\") != NULL) {
        return status_error(STATUS_USAGE, "--eval_script cannot be run with quotes or backslashes in a path");
    }
    int n = snprintf(command, sizeof command, "python3 '%s' '%s' '%s'", o->eval_script, o->run.predict_file,
                     predictions);
    bool ran = n < (int)sizeof command && run_command(&printed, command);
    struct printed_scores found = ran ? find_scores(buf_text(&printed)) : (struct printed_scores){0};
    if (found.n > 0) {
        score_list_add(scores, "exact_match", found.exact_match);
        score_list_add(scores, "F1", found.f1);
    }
    if (found.n > 1) {
        log_warning("--eval_script %s printed %d objects with scores: the last one counts", o->eval_script,
                    found.n);
    }
    if (ran && found.n == 0) {
        log_warning("--eval_script %s printed no \"exact_match\" and \"f1\" as JSON: logs and the report "
                    "have no score",
                    o->eval_script);
    }
    buf_fini(&printed);
    return ran ? status_ok() : status_error(STATUS_DATA, "--eval_script %s failed", o->eval_script);
}

static struct status score(void *self, struct score_list *scores, json_t *tables)
{
    const struct squad_task *q = self;
    const struct squad_options *o = q->options;
    char predictions[MODEL_DIR_PATH_BYTES];
    struct squad_scores score;
    TRY(finetune_output_path(predictions, &o->run, "predictions.json"));
    if (o->eval_script != NULL) {
        return run_eval_script(scores, q, predictions);
    }
    TRY(squad_score_files(&score, o->run.predict_file, o->run.encoding, predictions));
    score_list_add(scores, "exact_match", score.exact_match);
    score_list_add(scores, "F1", score.f1);
    squad_score_tables(tables, &score);
    return status_ok();
}

static void questions_fini(struct questions *q)
{
    squad_features_fini(&q->features);
    squad_examples_fini(&q->examples);
}

static void find_missing(const void *options, struct missing *missing)
{
    const struct squad_options *o = options;
    missing_path(missing, "eval_script", o->eval_script, "leave it out, since kiln scores without it");
}

static void close_task(void *self)
{
    struct squad_task *q = self;
    squad_predict_fini(&q->prediction);
    squad_answers_fini(&q->answers);
    questions_fini(&q->predict);
    questions_fini(&q->heldout);
    questions_fini(&q->train);
}

const struct finetune_task squad_task = {
    .command = "squad",
    .options_bytes = sizeof(struct squad_options),
    .self_bytes = sizeof(struct squad_task),
    .predictions = "predictions.json",
    .task = MODEL_TASK_QUESTION_ANSWERING,
    .may_be_new = 1U << NAMES_QA,
    .predicts_untrained = true, /* as the replaced script does (docs/quirks.md) */
    .find_missing = find_missing,
    .read = read,
    .set_optimizer = set_optimizer,
    .prediction = prediction,
    .write = write,
    .score = score,
    .close = close_task,
};
