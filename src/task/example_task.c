#include "task/example_task.h"

#include "core/log.h"
#include "io/file.h"

#include <stdlib.h>
#include <string.h>

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
    FAIL_IF(held != kind->task && model_task_has_labels(held), STATUS_DATA,
            "%s is a %s, but this task trains a %s, whose labels are of another kind", m->path,
            m->family->class_of(held), m->family->class_of(kind->task));
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
    FAIL_IF(!of_words && problem == PROBLEM_SINGLE_LABEL && labels->n < 2, STATUS_DATA,
            "%s has %lld labels in all, but classification needs two", t->train.path, (long long)labels->n);
    label_kind_list(&names, labels->names);
    log_info("a new classifier for %s: %lld labels: %s", label_problem_name(problem), (long long)labels->n,
             buf_text(&names));
    buf_fini(&names);
    return status_ok();
}

/* AdamW as `transformers` had it before its version 5: bias correction, eps 1e-8. */
void example_task_set_optimizer(const void *self, struct optimizer *o)
{
    const struct example_task *t = self;
    o->weight_decay = t->options->weight_decay;
    o->eps = 1e-8;
}

struct request example_task_logits(void *self)
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

struct status example_task_read(struct example_task *t, const struct example_kind *kind, struct finetune *f)
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

void example_task_close(void *self)
{
    struct example_task *t = self;
    free(t->readings);
    free(t->vectors.values);
    free(t->vectors.order);
    squad_answers_fini(&t->answers);
    class_logits_fini(&t->logits);
    example_file_fini(&t->predict);
    example_file_fini(&t->heldout);
    example_file_fini(&t->train);
    label_names_fini(&t->new_labels);
}

json_t *example_task_id(const struct example_task *t, int64_t i)
{
    const struct class_examples *e = &t->predict.texts;
    struct table_cell id = table_file_cell(&e->table, i, e->id);
    return id.is_there ? json_text(id.text) : json_integer(i);
}

/* predictions.jsonl, a line of each row. */
struct status example_task_write(struct example_task *t, struct buf *names,
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
