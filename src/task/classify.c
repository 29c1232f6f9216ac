#include "task/classify.h"

#include "core/log.h"
#include "data/class_examples.h"
#include "data/class_score.h"
#include "io/file.h"
#include "serve/answer_json.h"
#include "task/classifier.h"

#include <stdlib.h>
#include <string.h>

struct classify_task {
    const struct classify_options *options;
    const struct model_labels *labels; /* of the model */
    struct label_names new_labels;
    struct class_examples train, heldout, predict;
    struct class_logits logits;
    struct class_reading *readings; /* [num_labels] of the text under way */
};

static struct status open_tables(struct classify_task *c)
{
    const struct classify_options *o = c->options;
    struct class_columns columns = {.text = o->text_column_name,
                                    .pair = o->text_pair_column_name,
                                    .label = o->label_column_name,
                                    .separator = o->label_separator == NULL ? ',' : *o->label_separator,
                                    .encoding = o->run.encoding,
                                    .no_header = o->no_header};
    if (o->label_separator != NULL && strlen(o->label_separator) != 1) {
        return status_error(STATUS_USAGE, "--label_separator is \"%s\", but must be one byte",
                            o->label_separator);
    }
    if (o->run.do_train) {
        TRY(class_examples_open(&c->train, o->run.train_file, &columns));
    }
    if (o->run.eval_file != NULL) {
        TRY(class_examples_open(&c->heldout, o->run.eval_file, &columns));
    }
    return o->run.do_predict ? class_examples_open(&c->predict, o->run.predict_file, &columns) : status_ok();
}

/* Sets *problem to the one that --problem_type names; "auto" leaves it. */
static struct status choose_problem(enum label_problem *problem, const char *name)
{
    return label_problem_find(problem, name) || strcmp(name, "auto") == 0
               ? status_ok()
               : status_error(STATUS_USAGE, "--problem_type is \"%s\", but must be auto, %s, %s or %s", name,
                              label_problem_name(PROBLEM_SINGLE_LABEL),
                              label_problem_name(PROBLEM_MULTI_LABEL),
                              label_problem_name(PROBLEM_REGRESSION));
}

/* The labels of the model or, if it has no head, those of the training data. */
static struct status find_labels(struct classify_task *c, struct finetune *f)
{
    const struct classify_options *o = c->options;
    bool has;
    struct model_labels *labels = model_dir_labels(&f->model);
    c->labels = labels;
    TRY(classifier_find(f, MODEL_TASK_SEQUENCE_CLASSIFICATION, &has));
    if (has || !o->run.do_train) {
        return choose_problem(&labels->problem, o->problem_type);
    }
    enum label_problem problem = class_examples_problem(&c->train);
    TRY(choose_problem(&problem, o->problem_type));
    TRY(class_examples_names(&c->train, problem, &c->new_labels));
    if (problem == PROBLEM_SINGLE_LABEL && c->new_labels.n < 2) {
        return status_error(STATUS_DATA, "%s has %lld labels in all, but classification needs two",
                            o->run.train_file, (long long)c->new_labels.n);
    }
    classifier_set_labels(f, &c->new_labels, problem);
    return status_ok();
}

static struct status encode(struct classify_task *c, const struct finetune *f, struct class_examples *e,
                            struct finetune_data *data, bool with_labels)
{
    int64_t longest = f->options->run.max_seq_length;
    TRY(class_examples_encode(e, &f->model.tokenizer, longest, c->labels, with_labels));
    struct buf about = {0};
    class_examples_describe(&about, e);
    log_info("%s: %lld texts: %s", e->table.path, (long long)e->texts.n, buf_text(&about));
    buf_fini(&about);
    if (e->n_cut > 0) {
        log_warning("%s: %lld texts have more than the %lld tokens of --max_seq_length, and are cut",
                    e->table.path, (long long)e->n_cut, (long long)longest);
    }
    data->n_examples = e->texts.n;
    data->source = labelled_texts_source(&e->texts, "texts");
    return status_ok();
}

static struct status read(void *self, struct finetune *f)
{
    struct classify_task *c = self;
    const struct finetune_options *o = f->options;
    f->train = f->heldout = f->predict =
        (struct finetune_data){.task = "text classification", .unit = "texts"};
    TRY(open_tables(c));
    TRY(find_labels(c, f));
    if (o->do_train) {
        TRY(encode(c, f, &c->train, &f->train, true));
    }
    if (o->eval_file != NULL) {
        TRY(encode(c, f, &c->heldout, &f->heldout, true));
    }
    if (o->do_predict) {
        TRY(encode(c, f, &c->predict, &f->predict, o->do_eval));
        TRY(class_logits_init(&c->logits, &c->predict.texts, c->labels->n));
    }
    return status_ok();
}

static void set_optimizer(const void *self, struct optimizer *o)
{
    const struct classify_task *c = self;
    classifier_set_optimizer(o, c->options->weight_decay);
}

static struct request prediction(void *self)
{
    struct classify_task *c = self;
    return class_logits_request(&c->logits);
}

/* ---- predictions.jsonl ---- */

static struct status put_line(struct file_writer *w, struct buf *line, const struct classify_task *c,
                              int64_t i)
{
    class_logits_read(c->readings, class_logits_get(&c->logits, i), c->labels);
    struct table_cell id = table_file_cell(&c->predict.table, i, c->predict.id);
    buf_clear(line);
    TRY(answer_json_append(line, answer_json_labels(id.is_there ? json_text(id.text) : json_integer(i),
                                                    c->readings, c->labels)));
    file_writer_put(w, line->data, line->n);
    return status_ok();
}

static struct status write(void *self, struct buf *names)
{
    struct classify_task *c = self;
    char path[MODEL_DIR_PATH_BYTES];
    struct file_writer w;
    struct buf line = {0};
    TRY(finetune_output_path(path, &c->options->run, "predictions.jsonl"));
    c->readings = calloc((size_t)c->labels->n, sizeof *c->readings);
    if (c->readings == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for a prediction");
    }
    TRY(file_writer_open(&w, path));
    struct status s = status_ok();
    for (int64_t i = 0; i < c->predict.texts.n && !failed(s); i++) {
        s = put_line(&w, &line, c, i);
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

static struct status score(void *self, struct score_list *scores, json_t *tables)
{
    const struct classify_task *c = self;
    const struct labelled_texts *texts = &c->predict.texts;
    return status_context(class_score(scores, tables, c->labels, texts->n, c->logits.values,
                                      (const int32_t *)(const void *)texts->labels.data),
                          "%s", c->predict.table.path);
}

static void close_task(void *self)
{
    struct classify_task *c = self;
    class_logits_fini(&c->logits);
    free(c->readings);
    class_examples_fini(&c->predict);
    class_examples_fini(&c->heldout);
    class_examples_fini(&c->train);
    label_names_fini(&c->new_labels);
}

const struct finetune_task classify_task = {
    .command = "classify",
    .options_bytes = sizeof(struct classify_options),
    .self_bytes = sizeof(struct classify_task),
    .eval_predicts = true,
    .predictions = "predictions.jsonl",
    .task = MODEL_TASK_SEQUENCE_CLASSIFICATION,
    .may_be_new = 1U << NAMES_CLASSIFIER | 1U << NAMES_POOLER,
    .read = read,
    .set_optimizer = set_optimizer,
    .prediction = prediction,
    .write = write,
    .score = score,
    .close = close_task,
};
