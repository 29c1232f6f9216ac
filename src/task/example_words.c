/* kiln tag: sentences with a label or a number for each word. */
#include "task/example_task.h"

#include "core/log.h"
#include "data/class_score.h"
#include "data/tag_examples.h"
#include "io/file.h"
#include "serve/tag_words.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

static struct status open_words(struct example_file *e, const struct example_options *o)
{
    return tag_examples_read(
        &e->words, e->path,
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
    utf8_append_excerpt(&about, e->text.data + first->text, first->n, 60);
    buf_puts(&about, first->has_label ? ", label " : "");
    utf8_append_excerpt(&about, label, first->has_label ? strlen(label) : 0, 40);
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
    int64_t longest = t->options->run.run.batch.max_seq_length;
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
    return example_task_read(self, &words, f);
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

const struct finetune_task tag_task = {
    EXAMPLE_TASK,
    .command = "tag",
    .eval_predicts = true,
    .predictions = "predictions.conll",
    .task = MODEL_TASK_TOKEN_CLASSIFICATION,
    .may_be_new = 1U << NAMES_CLASSIFIER | 1U << NAMES_POOLER,
    .read = read_words,
    .set_optimizer = example_task_set_optimizer,
    .prediction = example_task_logits,
    .write = write_words,
    .score = score_words,
};
