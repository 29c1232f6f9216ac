#include "task/example_tasks.h"

#include "core/log.h"
#include "data/class_examples.h"
#include "data/class_score.h"
#include "data/sorted_batches.h"
#include "data/squad_score.h"
#include "data/tag_file.h"
#include "io/file.h"
#include "serve/answer_json.h"
#include "serve/squad_predict.h"
#include "serve/tag_words.h"
#include "task/eval_script.h"
#include "task/pair_loss.h"
#include "task/pair_step.h"
#include "text/excerpt.h"

#include <stdlib.h>
#include <string.h>

/* A file of one of the three kinds; the other kinds stay zeroed. */
struct example_file {
    const char *path;
    struct class_examples texts;
    struct tag_examples words;
    struct squad_examples questions;
    struct squad_features windows; /* of the questions' contexts */
};

/* What the tasks keep while they run. */
struct example_task {
    const struct example_options *options;
    const struct tokenizer *tokenizer;
    const struct model_labels *labels; /* of the model */
    struct label_names new_labels;
    struct example_file train, heldout, predict;
    struct class_logits logits;     /* of texts and words */
    struct class_reading *readings; /* [labels->n] of a text */
    struct squad_answers answers;
    struct squad_prediction prediction;
    struct pair_step pairs;
    struct pair_source pair_source;
    int64_t n_pairs; /* of a global batch */
    struct predicted_vectors {
        float *values; /* [2 n_pairs, width] */
        int64_t width;
        int64_t *order; /* of the request: the longest first */
    } vectors;
};

/* How a kind of examples is read. */
struct example_kind {
    struct finetune_data data; /* but for the numbers */
    enum model_task task;
    /* Reads the file, and the names of its labels; NULL: `encode` reads the file, and it has none. */
    struct status (*open)(struct example_file *e, const struct example_options *o);
    struct status (*names)(const struct example_file *e, enum label_problem problem,
                           struct label_names *names);
    enum label_problem (*problem)(const struct example_file *e);
    /* Makes sequences, logs them and sets the data's numbers. */
    struct status (*encode)(struct example_task *t, struct example_file *e, struct finetune_data *data,
                            struct tokenizer_scratch *scratch, const struct label_kind *labels);
};

static void example_file_fini(struct example_file *e)
{
    class_examples_fini(&e->texts);
    tag_examples_fini(&e->words);
    squad_features_fini(&e->windows);
    squad_examples_fini(&e->questions);
}

/* ---- labels ---- */

/* Sets *problem to the one that --problem_type names; "auto" leaves it. */
static struct status choose_problem(enum label_problem *problem, const char *name)
{
    return name == NULL || label_problem_find(problem, name) || strcmp(name, "auto") == 0
               ? status_ok()
               : status_error(STATUS_USAGE, "--problem_type is \"%s\", but must be auto, %s, %s or %s", name,
                              label_problem_name(PROBLEM_SINGLE_LABEL),
                              label_problem_name(PROBLEM_MULTI_LABEL),
                              label_problem_name(PROBLEM_REGRESSION));
}

/* Each word has one label, or one number. */
static struct status check_labels_of_words(const struct model_labels *labels)
{
    bool is_wrong =
        labels->problem == PROBLEM_MULTI_LABEL || (labels->problem == PROBLEM_REGRESSION && labels->n != 1);
    return is_wrong ? status_error(STATUS_USAGE,
                                   "words have one label or one number each, not those of a %s with %lld",
                                   label_problem_name(labels->problem), (long long)labels->n)
                    : status_ok();
}

/* The model's labels are those of its head or, if it has none, those of the training data. */
static struct status find_labels(struct example_task *t, const struct example_kind *kind, struct finetune *f)
{
    const struct model_dir *m = &f->model;
    struct model_labels *labels = model_dir_labels(&f->model);
    enum model_task held = (enum model_task)m->task;
    enum label_problem problem;
    bool of_words = kind->task == MODEL_TASK_TOKEN_CLASSIFICATION;
    t->labels = labels;
    if (held != kind->task && model_task_has_labels(held)) {
        return status_error(STATUS_DATA,
                            "%s is a %s, but this task trains a %s, whose labels are of another kind",
                            m->path, m->family->class_of(held), m->family->class_of(kind->task));
    }
    if (held == kind->task || !f->options->do_train) {
        TRY(choose_problem(&labels->problem, t->options->problem_type));
        return of_words ? check_labels_of_words(labels) : status_ok();
    }
    problem = kind->problem(&t->train);
    TRY(choose_problem(&problem, t->options->problem_type));
    TRY(kind->names(&t->train, problem, &t->new_labels));
    struct buf names = {0};
    *labels = (struct model_labels){.n = t->new_labels.n, .problem = problem, .names = &t->new_labels};
    TRY(of_words ? check_labels_of_words(labels) : status_ok());
    if (!of_words && problem == PROBLEM_SINGLE_LABEL && labels->n < 2) {
        return status_error(STATUS_DATA, "%s has %lld labels in all, but classification needs two",
                            t->train.path, (long long)labels->n);
    }
    label_kind_list(&names, labels->names);
    log_info("a new classifier for %s: %lld labels: %s", label_problem_name(problem), (long long)labels->n,
             buf_text(&names));
    buf_fini(&names);
    return status_ok();
}

/* AdamW as `transformers` had it before its version 5: bias correction, eps 1e-8. */
static void set_optimizer(const void *self, struct optimizer *o)
{
    const struct example_task *t = self;
    o->weight_decay = t->options->weight_decay;
    o->eps = 1e-8;
}

static struct request predicted_logits(void *self)
{
    struct example_task *t = self;
    return class_logits_request(&t->logits);
}

/* ---- reading ---- */

/* A file that a run reads. */
struct example_use {
    bool is_used, is_labelled;
    const char *path;
    struct example_file *file;
    struct finetune_data *data;
};

static struct status encode(struct example_task *t, const struct example_kind *kind,
                            const struct example_use *use)
{
    struct label_names names = {0};
    struct label_kind labels = {.model = t->labels, .path = use->path};
    struct tokenizer_scratch scratch;
    struct status s = tokenizer_scratch_init(&scratch, t->tokenizer);
    if (!failed(s) && kind->names != NULL && use->is_labelled) {
        s = kind->names(use->file, t->labels->problem, &names);
        label_kind_read(&labels, &names);
    }
    s = failed(s) ? s : kind->encode(t, use->file, use->data, &scratch, &labels);
    label_kind_fini(&labels);
    tokenizer_scratch_fini(&scratch);
    return s;
}

static struct status read(struct example_task *t, const struct example_kind *kind, struct finetune *f)
{
    const struct finetune_options *o = f->options;
    const struct example_use uses[] = {
        {o->do_train, true, o->train_file, &t->train, &f->train},
        {o->eval_file != NULL, true, o->eval_file, &t->heldout, &f->heldout},
        {o->do_predict, o->do_eval, o->predict_file, &t->predict, &f->predict}};
    enum { N_USES = sizeof uses / sizeof uses[0] };
    t->tokenizer = &f->model.tokenizer;
    for (int i = 0; i < N_USES; i++) {
        *uses[i].data = kind->data;
        uses[i].file->path = uses[i].path;
        if (uses[i].is_used && kind->open != NULL) {
            TRY(kind->open(uses[i].file, t->options));
        }
    }
    if (kind->problem != NULL) {
        TRY(find_labels(t, kind, f));
    }
    for (int i = 0; i < N_USES; i++) {
        TRY(uses[i].is_used ? encode(t, kind, &uses[i]) : status_ok());
    }
    return status_ok();
}

static void close_task(void *self)
{
    struct example_task *t = self;
    free(t->readings);
    free(t->vectors.values);
    free(t->vectors.order);
    squad_predict_fini(&t->prediction);
    squad_answers_fini(&t->answers);
    class_logits_fini(&t->logits);
    example_file_fini(&t->predict);
    example_file_fini(&t->heldout);
    example_file_fini(&t->train);
    label_names_fini(&t->new_labels);
}

/* ---- questions ---- */

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
    struct squad_feature_options windows = {.max_seq_length = o->run.run.max_seq_length,
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
    if (predicts) {
        TRY(squad_answers_init(&t->answers, &e->questions, &e->windows, t->tokenizer, answers));
        TRY(squad_predict_init(&t->prediction, &t->answers));
    }
    return status_ok();
}

static struct status read_questions(void *self, struct finetune *f)
{
    static const struct example_kind questions = {
        .data = {.task = "question answering", .unit = "questions", .counts_examples = true},
        .task = MODEL_TASK_QUESTION_ANSWERING,
        .encode = encode_questions};
    return read(self, &questions, f);
}

/* The replaced script's: no decay, no bias correction (docs/quirks.md). */
static void set_script_optimizer(const void *self, struct optimizer *o)
{
    (void)self;
    o->weight_decay = 0;
    o->bias_correction = false;
}

static struct request predicted_spans(void *self)
{
    struct example_task *t = self;
    return squad_predict_request(&t->prediction);
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

static struct status score_answers(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    const struct example_options *o = t->options;
    char predictions[MODEL_DIR_PATH_BYTES];
    struct squad_scores score;
    TRY(finetune_output_path(predictions, &o->run, "predictions.json"));
    if (o->eval_script != NULL) {
        return eval_script_run(scores, o->eval_script, o->run.predict_file, predictions);
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

/* ---- texts ---- */

static struct status open_texts(struct example_file *e, const struct example_options *o)
{
    struct class_columns columns = {.text = o->text_column_name,
                                    .pair = o->text_pair_column_name,
                                    .label = o->label_column_name,
                                    .separator = o->label_separator == NULL ? ',' : *o->label_separator,
                                    .encoding = o->run.encoding,
                                    .no_header = o->no_header};
    return o->label_separator == NULL || strlen(o->label_separator) == 1
               ? class_examples_open(&e->texts, e->path, &columns)
               : status_error(STATUS_USAGE, "--label_separator is \"%s\", but must be one byte",
                              o->label_separator);
}

static struct status names_of_texts(const struct example_file *e, enum label_problem problem,
                                    struct label_names *names)
{
    return class_examples_names(&e->texts, problem, names);
}

static enum label_problem problem_of_texts(const struct example_file *e)
{
    return class_examples_problem(&e->texts);
}

static struct status encode_texts(struct example_task *t, struct example_file *e, struct finetune_data *data,
                                  struct tokenizer_scratch *scratch, const struct label_kind *labels)
{
    int64_t longest = t->options->run.run.max_seq_length;
    struct buf about = {0};
    TRY(class_examples_encode(&e->texts, scratch, longest, labels));
    class_examples_describe(&about, &e->texts);
    log_info("%s: %lld texts: %s", e->path, (long long)e->texts.texts.n, buf_text(&about));
    buf_fini(&about);
    if (e->texts.texts.n_cut > 0) {
        log_warning("%s: %lld texts have more than the %lld tokens of --max_seq_length, and are cut", e->path,
                    (long long)e->texts.texts.n_cut, (long long)longest);
    }
    data->n_examples = e->texts.texts.n;
    data->source = encoded_texts_source(&e->texts.texts, "texts");
    return e == &t->predict ? class_logits_init(&t->logits, &e->texts.texts, t->labels->n) : status_ok();
}

static struct status read_texts(void *self, struct finetune *f)
{
    static const struct example_kind texts = {.data = {.task = "text classification", .unit = "texts"},
                                              .task = MODEL_TASK_SEQUENCE_CLASSIFICATION,
                                              .open = open_texts,
                                              .names = names_of_texts,
                                              .problem = problem_of_texts,
                                              .encode = encode_texts};
    return read(self, &texts, f);
}

static json_t *id_of(const struct example_task *t, int64_t i)
{
    const struct class_examples *e = &t->predict.texts;
    struct table_cell id = table_file_cell(&e->table, i, e->id);
    return id.is_there ? json_text(id.text) : json_integer(i);
}

/* predictions.jsonl, a line of each row. */
static struct status write_lines(struct example_task *t, struct buf *names,
                                 struct status (*put)(struct buf *line, const struct example_task *t,
                                                      int64_t i))
{
    char path[MODEL_DIR_PATH_BYTES];
    struct file_writer w;
    struct buf line = {0};
    TRY(finetune_output_path(path, &t->options->run, "predictions.jsonl"));
    TRY(file_writer_open(&w, path));
    struct status s = status_ok();
    for (int64_t i = 0; i < t->predict.texts.table.n_rows && !failed(s); i++) {
        buf_clear(&line);
        s = put(&line, t, i);
        file_writer_put(&w, line.data, line.n);
    }
    buf_fini(&line);
    if (failed(s)) {
        file_writer_abandon(&w);
        return s;
    }
    TRY(file_writer_commit(&w));
    buf_puts(names, path);
    return buf_status(names);
}

static struct status put_labels(struct buf *line, const struct example_task *t, int64_t i)
{
    class_logits_read(t->readings, class_logits_get(&t->logits, i), t->labels);
    return answer_json_append(line, answer_json_labels(id_of(t, i), t->readings, t->labels));
}

static struct status write_texts(void *self, struct buf *names)
{
    struct example_task *t = self;
    t->readings = calloc((size_t)t->labels->n, sizeof *t->readings);
    return t->readings != NULL ? write_lines(t, names, put_labels)
                               : status_error(STATUS_MEMORY, "out of memory for a prediction");
}

static struct status score_texts(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    const struct encoded_texts *texts = &t->predict.texts.texts;
    return status_context(class_score(scores, tables, t->labels, texts->n, t->logits.values,
                                      (const int32_t *)(const void *)texts->labels.data),
                          "%s", t->predict.path);
}

/* ---- words ---- */

static struct status open_words(struct example_file *e, const struct example_options *o)
{
    return tag_file_read(&e->words, e->path,
                         &(struct conll_columns){o->text_column_name, o->label_column_name, o->run.encoding});
}

static struct status names_of_words(const struct example_file *e, enum label_problem problem,
                                    struct label_names *names)
{
    return tag_examples_names(&e->words, problem, names);
}

static enum label_problem problem_of_words(const struct example_file *e)
{
    return tag_examples_problem(&e->words);
}

static void tell_words(const struct tag_examples *e, int64_t longest)
{
    const struct tag_word *first = tag_examples_word(e, 0);
    const char *label = e->text.data + first->label;
    struct buf about = {0};
    excerpt_append(&about, e->text.data + first->text, first->n, 60);
    buf_puts(&about, first->has_label ? ", label " : "");
    excerpt_append(&about, label, first->has_label ? strlen(label) : 0, 40);
    log_info("%s: %lld sentences, %lld words: %s; the first is %s", e->path, (long long)e->n,
             (long long)e->n_words, buf_text(&e->columns), buf_text(&about));
    buf_fini(&about);
    if (e->texts.n_cut > 0) {
        log_warning("%s: %lld sentences have more than the %lld tokens of --max_seq_length, and are split",
                    e->path, (long long)e->texts.n_cut, (long long)longest);
    }
}

static struct status encode_words(struct example_task *t, struct example_file *e, struct finetune_data *data,
                                  struct tokenizer_scratch *scratch, const struct label_kind *labels)
{
    int64_t longest = t->options->run.run.max_seq_length;
    TRY(tag_examples_encode(&e->words, scratch, longest, labels));
    tell_words(&e->words, longest);
    data->n_examples = e->words.n;
    data->source = encoded_texts_source(&e->words.texts, "sentences");
    return e == &t->predict ? class_logits_init(&t->logits, &e->words.texts, t->labels->n) : status_ok();
}

static struct status read_words(void *self, struct finetune *f)
{
    static const struct example_kind words = {.data = {.task = "token classification", .unit = "texts"},
                                              .task = MODEL_TASK_TOKEN_CLASSIFICATION,
                                              .open = open_words,
                                              .names = names_of_words,
                                              .problem = problem_of_words,
                                              .encode = encode_words};
    return read(self, &words, f);
}

static const char *label_of(const struct example_task *t, const struct tag_word *w)
{
    const float *logits = tag_words_logits(&t->logits, w);
    return label_names_get(t->labels->names, class_score_best(logits, t->labels->n));
}

/* Appends a word and what separates it from the next, if anything does; what would break the line is
 * escaped, as in C. */
static void put_column(struct buf *out, const char *text, char separator)
{
    static const char breaks[] = "\n\r\t\v\f", letters[] = "nrtvf";
    for (; *text != '\0'; text++) {
        const char *found = strchr(breaks, *text);
        if (found != NULL) {
            buf_printf(out, "\\%c", letters[found - breaks]);
        } else {
            buf_putc(out, *text);
        }
    }
    if (separator != '\0') {
        buf_putc(out, separator);
    }
}

static void put_prediction(struct buf *out, const struct example_task *t, const struct tag_word *w)
{
    if (t->labels->problem == PROBLEM_REGRESSION) {
        buf_printf(out, "%.9g\n", (double)*tag_words_logits(&t->logits, w));
    } else {
        buf_printf(out, "%s\n", label_of(t, w));
    }
}

/* The columns of conlleval: word, label if there is one, prediction. */
static struct status write_words(void *self, struct buf *names)
{
    const struct example_task *t = self;
    const struct tag_examples *e = &t->predict.words;
    char path[MODEL_DIR_PATH_BYTES];
    struct buf text = {0};
    TRY(finetune_output_path(path, &t->options->run, "predictions.conll"));
    for (int64_t s = 0; s < e->n; s++) {
        for (int64_t i = tag_examples_first(e, s); i < tag_examples_first(e, s + 1); i++) {
            const struct tag_word *w = tag_examples_word(e, i);
            put_column(&text, e->text.data + w->text, '\t');
            put_column(&text, w->has_label ? e->text.data + w->label : "", w->has_label ? '\t' : '\0');
            put_prediction(&text, t, w);
        }
        buf_putc(&text, '\n');
    }
    struct status s = buf_status(&text);
    s = failed(s) ? s : file_write_atomic(path, text.data, text.n);
    buf_fini(&text);
    TRY(s);
    buf_puts(names, path);
    return buf_status(names);
}

static void count_entities(const struct example_task *t, struct tag_counts *counts, const char **truth,
                           const char **said)
{
    const struct tag_examples *e = &t->predict.words;
    for (int64_t s = 0; s < e->n; s++) {
        int64_t first = tag_examples_first(e, s), n = tag_examples_first(e, s + 1) - first;
        for (int64_t i = 0; i < n; i++) {
            const struct tag_word *w = tag_examples_word(e, first + i);
            truth[i] = label_names_get(t->labels->names, *tag_examples_labels(e, w));
            said[i] = label_of(t, w);
        }
        tag_score_add(counts, truth, said, n);
    }
}

static struct status score_labels_of_words(const struct example_task *t, struct score_list *scores,
                                           json_t *tables)
{
    struct tag_counts counts = {0};
    size_t most = (size_t)t->predict.words.n_words;
    const char **truth = calloc(most, sizeof *truth), **said = calloc(most, sizeof *said);
    bool room = truth != NULL && said != NULL;
    if (room) {
        count_entities(t, &counts, truth, said);
        *scores = tag_score(&counts);
    }
    struct status s = room ? tag_score_tables(tables, &counts)
                           : status_error(STATUS_MEMORY, "out of memory for the labels of %zu words", most);
    tag_counts_fini(&counts);
    free(truth);
    free(said);
    return s;
}

static struct status score_numbers_of_words(const struct example_task *t, struct score_list *scores,
                                            json_t *tables)
{
    const struct tag_examples *e = &t->predict.words;
    size_t n = (size_t)e->n_words;
    float *said = malloc(n * sizeof *said);
    int32_t *truth = malloc(n * sizeof *truth);
    struct status s = status_error(STATUS_MEMORY, "out of memory for the numbers of %zu words", n);
    if (said != NULL && truth != NULL) {
        for (int64_t i = 0; i < e->n_words; i++) {
            const struct tag_word *w = tag_examples_word(e, i);
            said[i] = *tag_words_logits(&t->logits, w);
            truth[i] = *tag_examples_labels(e, w);
        }
        s = status_context(class_score(scores, tables, t->labels, e->n_words, said, truth), "%s", e->path);
    }
    free(said);
    free(truth);
    return s;
}

static struct status score_words(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    return (t->labels->problem == PROBLEM_REGRESSION ? score_numbers_of_words
                                                     : score_labels_of_words)(t, scores, tables);
}

/* ---- pairs for vectors of texts ---- */

static struct status prepare_pairs(void *self, struct trainer *trainer, struct batch_step *batch,
                                   int64_t step, const struct comm *world, double *loss)
{
    struct example_task *t = self;
    TRY(pair_step_prepare(&t->pairs, trainer, batch, step, world, t->n_pairs));
    *loss = t->pairs.loss;
    return status_ok();
}

static const float *scores_of(const struct example_file *e)
{
    return e->texts.label >= 0 ? (const float *)(const void *)e->texts.scores.data : NULL;
}

/* What the flags say, and the kind of loss by the training data. */
static struct status choose_loss(struct example_task *t, const struct example_file *e)
{
    const struct example_options *o = t->options;
    bool is_auto = strcmp(o->loss, "auto") == 0;
    t->pairs.is_scored = is_auto ? scores_of(e) != NULL : strcmp(o->loss, "cosent") == 0;
    t->pair_source = (struct pair_source){&e->texts.texts, t->pairs.is_scored ? scores_of(e) : NULL};
    if (t->pairs.is_scored && scores_of(e) == NULL) {
        return status_error(STATUS_DATA,
                            "%s has no column of scores, which --loss cosent compares: name it "
                            "by --label_column_name",
                            e->path);
    }
    log_info("loss: %s, cosines times %g", t->pairs.is_scored ? "CoSENT" : "in-batch negatives", o->scale);
    return status_ok();
}

static struct status plan_vectors(struct example_task *t, const struct example_file *e)
{
    struct example_source source = encoded_texts_source(&e->texts.texts, "texts");
    t->vectors.values = calloc((size_t)source.n * (size_t)t->vectors.width, sizeof(float));
    return t->vectors.values != NULL
               ? sorted_batches_order(&t->vectors.order, &source)
               : status_error(STATUS_MEMORY, "out of memory for the vectors of %lld texts",
                              (long long)source.n);
}

static struct status encode_pairs(struct example_task *t, struct example_file *e, struct finetune_data *data,
                                  struct tokenizer_scratch *scratch, const struct label_kind *labels)
{
    int64_t longest = t->options->run.run.max_seq_length;
    struct buf about = {0};
    (void)labels;
    TRY(class_examples_encode_pairs(&e->texts, scratch, longest));
    class_examples_describe(&about, &e->texts);
    log_info("%s: %lld pairs: %s", e->path, (long long)e->texts.table.n_rows, buf_text(&about));
    buf_fini(&about);
    if (e->texts.texts.n_cut > 0) {
        log_warning("%s: %lld texts have more than the %lld tokens of --max_seq_length, and are cut", e->path,
                    (long long)e->texts.texts.n_cut, (long long)longest);
    }
    data->n_examples = e->texts.table.n_rows;
    if (e == &t->predict) {
        data->source = encoded_texts_source(&e->texts.texts, "texts");
        return plan_vectors(t, e);
    }
    TRY(choose_loss(t, e));
    data->source = pair_step_source(&t->pair_source);
    data->prepare = prepare_pairs;
    data->self = t;
    return status_ok();
}

static struct status read_pairs(void *self, struct finetune *f)
{
    static const struct example_kind pairs = {.data = {.task = "sentence vectors", .unit = "pairs"},
                                              .task = MODEL_TASK_ENCODER,
                                              .open = open_texts,
                                              .encode = encode_pairs};
    struct example_task *t = self;
    const struct example_options *o = t->options;
    if (o->run.eval_file != NULL) {
        return status_error(STATUS_USAGE, "--eval_file has no loss of its own here, since a loss is over the "
                                          "pairs of a batch: give it as --predict_file, with --do_eval");
    }
    t->pairs.pooling = sentence_pooling_find(o->pooling);
    t->pairs.scale = o->scale;
    t->n_pairs = f->options->run.train_batch_size;
    struct model *model;
    TRY(f->model.family->create(&model, f->model.config, MODEL_TASK_ENCODER));
    t->vectors.width = model->hidden_size;
    model->type->destroy(model);
    return read(self, &pairs, f);
}

static struct status take_vector(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    const struct example_task *t = self;
    pair_step_pool(t->vectors.values + i * t->vectors.width, outputs[MODEL_HIDDEN], t->pairs.pooling);
    return status_ok();
}

static struct request predicted_vectors(void *self)
{
    struct example_task *t = self;
    return (struct request){.source = encoded_texts_source(&t->predict.texts.texts, "texts"),
                            .order = t->vectors.order,
                            .outputs = 1U << MODEL_HIDDEN,
                            .take = take_vector,
                            .self = t};
}

static double cosine_of(const struct example_task *t, int64_t pair)
{
    const float *a = t->vectors.values + 2 * pair * t->vectors.width;
    return pair_loss_cosine(a, a + t->vectors.width, t->vectors.width);
}

static struct status put_cosine(struct buf *line, const struct example_task *t, int64_t i)
{
    return answer_json_append(line, json_pack("{s:o, s:f}", "id", id_of(t, i), "cosine", cosine_of(t, i)));
}

static struct status write_pairs(void *self, struct buf *names)
{
    struct example_task *t = self;
    return write_lines(t, names, put_cosine);
}

static struct status score_pairs(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    const struct example_file *e = &t->predict;
    size_t n = (size_t)e->texts.table.n_rows;
    struct model_labels labels = {.n = 1, .problem = PROBLEM_REGRESSION};
    float *cosines = malloc(n * sizeof *cosines);
    if (cosines == NULL || scores_of(e) == NULL) {
        free(cosines);
        return cosines == NULL
                   ? status_error(STATUS_MEMORY, "out of memory for the cosines of %zu pairs", n)
                   : status_error(STATUS_DATA, "%s has no column of scores to compare with", e->path);
    }
    for (size_t i = 0; i < n; i++) {
        cosines[i] = (float)cosine_of(t, (int64_t)i);
    }
    struct status s = class_score(scores, tables, &labels, (int64_t)n, cosines,
                                  (const int32_t *)(const void *)e->texts.scores.data);
    free(cosines);
    return s;
}

/* The model is one of sentence-transformers. */
static struct status add_sentence_files(void *self, const char *path)
{
    const struct example_task *t = self;
    return sentence_model_write(path, t->pairs.pooling, t->vectors.width, t->options->run.run.max_seq_length);
}

/* ---- the rows ---- */

#define EXAMPLE_TASK                                                                                         \
    .options_bytes = sizeof(struct example_options), .self_bytes = sizeof(struct example_task),              \
    .close = close_task

const struct finetune_task squad_task = {
    EXAMPLE_TASK,
    .command = "squad",
    .predictions = "predictions.json",
    .task = MODEL_TASK_QUESTION_ANSWERING,
    .may_be_new = 1U << NAMES_QA,
    .predicts_untrained = true, /* as the replaced script does (docs/quirks.md) */
    .find_missing = find_missing_script,
    .read = read_questions,
    .set_optimizer = set_script_optimizer,
    .prediction = predicted_spans,
    .write = write_answers,
    .score = score_answers,
};

const struct finetune_task classify_task = {
    EXAMPLE_TASK,
    .command = "classify",
    .eval_predicts = true,
    .predictions = "predictions.jsonl",
    .task = MODEL_TASK_SEQUENCE_CLASSIFICATION,
    .may_be_new = 1U << NAMES_CLASSIFIER | 1U << NAMES_POOLER,
    .read = read_texts,
    .set_optimizer = set_optimizer,
    .prediction = predicted_logits,
    .write = write_texts,
    .score = score_texts,
};

const struct finetune_task tag_task = {
    EXAMPLE_TASK,
    .command = "tag",
    .eval_predicts = true,
    .predictions = "predictions.conll",
    .task = MODEL_TASK_TOKEN_CLASSIFICATION,
    .may_be_new = 1U << NAMES_CLASSIFIER,
    .read = read_words,
    .set_optimizer = set_optimizer,
    .prediction = predicted_logits,
    .write = write_words,
    .score = score_words,
};

const struct finetune_task embed_train_task = {
    EXAMPLE_TASK,
    .command = "embed-train",
    .eval_predicts = true,
    .predictions = "predictions.jsonl",
    .task = MODEL_TASK_ENCODER,
    .may_be_new = 1U << NAMES_POOLER,
    .predicts_untrained = true, /* nothing reads the pooler */
    .learns_vectors = true,
    .read = read_pairs,
    .add_files = add_sentence_files,
    .set_optimizer = set_optimizer,
    .prediction = predicted_vectors,
    .write = write_pairs,
    .score = score_pairs,
};
