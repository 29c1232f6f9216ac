#include "task/tag.h"

#include "core/log.h"
#include "data/class_score.h"
#include "data/tag_file.h"
#include "io/file.h"
#include "serve/tag_words.h"
#include "task/classifier.h"
#include "text/excerpt.h"

#include <stdlib.h>
#include <string.h>

struct tag_task {
    const struct tag_options *options;
    const struct model_labels *labels; /* of the model */
    struct label_names new_labels;
    struct tag_examples train, heldout, predict;
    struct class_logits logits;
};

/* The labels of the model or, if it has no head, those of the training data. */
static struct status find_labels(struct tag_task *t, struct finetune *f)
{
    bool has;
    t->labels = model_dir_labels(&f->model);
    TRY(classifier_find(f, MODEL_TASK_TOKEN_CLASSIFICATION, &has));
    if (has || !f->options->do_train) {
        return status_ok();
    }
    TRY(tag_examples_names(&t->train, &t->new_labels));
    classifier_set_labels(f, &t->new_labels, PROBLEM_SINGLE_LABEL);
    return status_ok();
}

static struct status encode(struct tag_task *t, const struct finetune *f, struct tag_examples *e,
                            struct finetune_data *data, bool with_labels)
{
    int64_t longest = f->options->run.max_seq_length;
    struct tokenizer_scratch scratch;
    struct status s = tokenizer_scratch_init(&scratch, &f->model.tokenizer);
    s = failed(s) ? s : tag_examples_encode(e, &scratch, longest, t->labels, with_labels);
    tokenizer_scratch_fini(&scratch);
    TRY(s);
    const struct tag_word *first = tag_examples_word(e, 0);
    struct buf about = {0};
    excerpt_append(&about, e->text.data + first->text, first->n, 60);
    buf_puts(&about, first->has_label ? ", label " : "");
    excerpt_append(&about, e->text.data + first->label,
                   first->has_label ? strlen(e->text.data + first->label) : 0, 40);
    log_info("%s: %lld sentences, %lld words: %s; the first is %s", e->path, (long long)e->n,
             (long long)e->n_words, buf_text(&e->columns), buf_text(&about));
    buf_fini(&about);
    if (e->n_cut > 0) {
        log_warning("%s: %lld sentences have more than the %lld tokens of --max_seq_length, and are split",
                    e->path, (long long)e->n_cut, (long long)longest);
    }
    data->n_examples = e->n;
    data->source = labelled_texts_source(&e->texts, "sentences");
    return status_ok();
}

static struct status read(void *self, struct finetune *f)
{
    struct tag_task *t = self;
    const struct finetune_options *o = f->options;
    const struct conll_columns columns = {t->options->text_column_name, t->options->label_column_name,
                                          o->encoding};
    f->train = f->heldout = f->predict =
        (struct finetune_data){.task = "token classification", .unit = "texts"};
    if (o->do_train) {
        TRY(tag_file_read(&t->train, o->train_file, &columns));
    }
    if (o->eval_file != NULL) {
        TRY(tag_file_read(&t->heldout, o->eval_file, &columns));
    }
    if (o->do_predict) {
        TRY(tag_file_read(&t->predict, o->predict_file, &columns));
    }
    TRY(find_labels(t, f));
    if (o->do_train) {
        TRY(encode(t, f, &t->train, &f->train, true));
    }
    if (o->eval_file != NULL) {
        TRY(encode(t, f, &t->heldout, &f->heldout, true));
    }
    if (o->do_predict) {
        TRY(encode(t, f, &t->predict, &f->predict, o->do_eval));
        TRY(class_logits_init(&t->logits, &t->predict.texts, t->labels->n));
    }
    return status_ok();
}

static void set_optimizer(const void *self, struct optimizer *o)
{
    const struct tag_task *t = self;
    classifier_set_optimizer(o, t->options->weight_decay);
}

static struct request prediction(void *self)
{
    struct tag_task *t = self;
    return class_logits_request(&t->logits);
}

static const char *label_of(const struct tag_task *t, const struct tag_word *w)
{
    const float *logits = tag_words_logits(&t->logits, w);
    return label_names_get(t->labels->names, class_score_best(logits, t->labels->n));
}

/* Appends a word and what separates it from the next, if anything does; what would break the line is escaped,
 * as in C. */
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

/* The columns of conlleval: word, label if there is one, prediction. */
static struct status write(void *self, struct buf *names)
{
    const struct tag_task *t = self;
    const struct tag_examples *e = &t->predict;
    char path[MODEL_DIR_PATH_BYTES];
    struct buf text = {0};
    TRY(finetune_output_path(path, &t->options->run, "predictions.conll"));
    for (int64_t s = 0; s < e->n; s++) {
        for (int64_t i = tag_examples_first(e, s); i < tag_examples_first(e, s + 1); i++) {
            const struct tag_word *w = tag_examples_word(e, i);
            put_column(&text, e->text.data + w->text, '\t');
            put_column(&text, w->has_label ? e->text.data + w->label : "", w->has_label ? '\t' : '\0');
            buf_printf(&text, "%s\n", label_of(t, w));
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

static void count_entities(const struct tag_task *t, struct tag_counts *counts, const char **truth,
                           const char **said)
{
    const struct tag_examples *e = &t->predict;
    for (int64_t s = 0; s < e->n; s++) {
        int64_t first = tag_examples_first(e, s), n = tag_examples_first(e, s + 1) - first;
        for (int64_t i = 0; i < n; i++) {
            const struct tag_word *w = tag_examples_word(e, first + i);
            truth[i] = label_names_get(t->labels->names, w->model_label);
            said[i] = label_of(t, w);
        }
        tag_score_add(counts, truth, said, n);
    }
}

static struct status score(void *self, struct score_list *scores, json_t *tables)
{
    const struct tag_task *t = self;
    struct tag_counts counts = {0};
    size_t most = (size_t)t->predict.n_words;
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

static void close_task(void *self)
{
    struct tag_task *t = self;
    class_logits_fini(&t->logits);
    tag_examples_fini(&t->predict);
    tag_examples_fini(&t->heldout);
    tag_examples_fini(&t->train);
    label_names_fini(&t->new_labels);
}

const struct finetune_task tag_task = {
    .command = "tag",
    .options_bytes = sizeof(struct tag_options),
    .self_bytes = sizeof(struct tag_task),
    .eval_predicts = true,
    .predictions = "predictions.conll",
    .task = MODEL_TASK_TOKEN_CLASSIFICATION,
    .may_be_new = 1U << NAMES_CLASSIFIER,
    .read = read,
    .set_optimizer = set_optimizer,
    .prediction = prediction,
    .write = write,
    .score = score,
    .close = close_task,
};
