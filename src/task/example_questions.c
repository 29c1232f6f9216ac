/* kiln squad: questions whose answers are spans of a text. */
#include "task/example_task.h"

#include "core/json.h"
#include "core/log.h"
#include "data/squad_score.h"
#include "serve/predict.h"

#include <stdlib.h>
#include <string.h>

/* The answers of what is predicted are read for their score alone. */
static struct status encode_questions(struct example_task *t, struct example_file *e,
                                      struct finetune_data *data, struct tokenizer_scratch *scratch,
                                      const struct label_kind *labels)
{
    const struct example_options *o = t->options;
    bool predicts = e == &t->predict;
    struct squad_answer_options answers = {.n_best = o->n_best_size,
                                           .max_answer_length = o->max_answer_length,
                                           .version_2 = o->version_2_with_negative,
                                           .null_score_diff_threshold = o->null_score_diff_threshold};
    struct squad_feature_options windows = {.max_length = o->run.run.batch.max_seq_length,
                                            .doc_stride = o->doc_stride,
                                            .max_query_length = o->max_query_length,
                                            .training = !predicts};
    (void)labels;
    TRY(squad_examples_open(
        &e->questions, e->path,
        (struct squad_read_options){!predicts, o->version_2_with_negative, o->run.encoding}));
    TRY(squad_features_encode(&e->windows, &e->questions, scratch, windows));
    data->n_examples = e->questions.n;
    data->source = squad_features_source(&e->windows);
    log_info("%s: %s: %lld questions, %lld features",
             predicts           ? "prediction"
             : e == &t->heldout ? "held out"
                                : "training",
             e->path, (long long)e->questions.n, (long long)e->windows.n);
    return predicts ? squad_answers_init(&t->answers, &e->questions, &e->windows, t->tokenizer, answers)
                    : status_ok();
}

static struct status read_questions(void *self, struct finetune *f)
{
    static const struct example_kind questions = {
        .data = {.task = "question answering", .unit = "questions", .counts_examples = true},
        .task = MODEL_TASK_QUESTION_ANSWERING,
        .encode = encode_questions};
    return example_task_read(self, &questions, f);
}

/* Sets the optimizer of the replaced script: no decay, no bias correction (docs/quirks.md). */
static void set_script_optimizer(const void *self, struct optimizer *o)
{
    (void)self;
    o->weight_decay = 0;
    o->bias_correction = false;
}

static struct request predicted_spans(void *self)
{
    struct example_task *t = self;
    return predict_answers_request(&t->answers);
}

static struct status write_answers(void *self, struct buf *names)
{
    struct example_task *t = self;
    char predictions[MODEL_DIR_PATH_BYTES], nbest[MODEL_DIR_PATH_BYTES];
    TRY(finetune_output_path(predictions, &t->options->run, "predictions.json"));
    TRY(finetune_output_path(nbest, &t->options->run, "nbest_predictions.json"));
    TRY(squad_answers_finish(&t->answers));
    TRY(squad_answers_write(&t->answers, predictions, nbest));
    buf_printf(names, "%s and %s", predictions, nbest);
    return buf_status(names);
}

/* ---- scores ---- */

struct printed_scores {
    double exact_match, f1;
    int n; /* number of objects with both */
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
        json_error_t error; /* also has the number of bytes that were read */
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
        if (!log_has_sink()) {
            fwrite(part, 1, n, stdout);
        }
        buf_append(printed, part, n);
    }
    return pclose(out) == 0 && !printed->failed;
}

/* Runs `python3 script data predictions` and takes the scores that it prints as JSON; the user sees what it
 * prints. */
static struct status run_script(struct score_list *scores, const char *script, const char *data,
                                const char *predictions)
{
    char command[4 * FILE_PATH_BYTES];
    struct buf printed = {0};
    FAIL_IF(strpbrk(script, "'\\") != NULL || strpbrk(data, "'\\") != NULL ||
                strpbrk(predictions, "'\\") != NULL,
            STATUS_USAGE, "--eval_script cannot be run with quotes or backslashes in a path");
    int n = snprintf(command, sizeof command, "python3 '%s' '%s' '%s'", script, data, predictions);
    bool ran = n < (int)sizeof command && run_command(&printed, command);
    struct printed_scores found = ran ? find_scores(buf_text(&printed)) : (struct printed_scores){0};
    if (found.n > 0) {
        score_list_add(scores, "exact_match", found.exact_match);
        score_list_add(scores, "F1", found.f1);
    }
    if (found.n > 1) {
        log_warning("--eval_script %s printed %d objects with scores: the last one counts", script, found.n);
    }
    if (ran && found.n == 0) {
        log_warning("--eval_script %s printed no \"exact_match\" and \"f1\" as JSON: logs and the report "
                    "have no score",
                    script);
    }
    buf_fini(&printed);
    return ran ? status_ok() : status_error(STATUS_DATA, "--eval_script %s failed", script);
}

static struct status score_answers(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    const struct example_options *o = t->options;
    char predictions[MODEL_DIR_PATH_BYTES];
    struct squad_scores score;
    TRY(finetune_output_path(predictions, &o->run, "predictions.json"));
    if (o->eval_script != NULL) {
        return run_script(scores, o->eval_script, o->run.predict_file, predictions);
    }
    TRY(squad_score_files(&score, o->run.predict_file, o->run.encoding, predictions));
    score_list_add(scores, "exact_match", score.exact_match);
    score_list_add(scores, "F1", score.f1);
    squad_score_tables(tables, &score);
    return status_ok();
}

static void find_missing_script(const void *options, struct missing *missing)
{
    const struct example_options *o = options;
    missing_path(missing, "eval_script", o->eval_script, "leave it out, since kiln scores without it");
}

const struct finetune_task squad_task = {
    EXAMPLE_TASK,
    .command = "squad",
    .predictions = "predictions.json",
    .task = MODEL_TASK_QUESTION_ANSWERING,
    .may_be_new = 1U << NAMES_QA | 1U << NAMES_CLASSIFIER | 1U << NAMES_POOLER,
    .predicts_untrained = true, /* like the replaced script (docs/quirks.md) */
    .find_missing = find_missing_script,
    .read = read_questions,
    .set_optimizer = set_script_optimizer,
    .prediction = predicted_spans,
    .write = write_answers,
    .score = score_answers,
};
