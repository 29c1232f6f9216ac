/* kiln classify: texts, or pairs of texts, and their labels. */
#include "task/example_task.h"

#include "core/log.h"
#include "data/class_score.h"
#include "serve/answer_json.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

struct status example_texts_open(struct example_file *e, const struct example_options *o)
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

void example_texts_tell(const struct example_task *t, const struct example_file *e, const char *unit)
{
    struct buf about = {0};
    class_examples_describe(&about, &e->texts);
    log_info("%s: %lld %s: %s", e->path, (long long)e->texts.table.n_rows, unit, buf_text(&about));
    buf_fini(&about);
    if (e->texts.texts.n_cut > 0) {
        log_warning("%s: %lld texts have more than the %lld tokens of --max_seq_length, and are cut", e->path,
                    (long long)e->texts.texts.n_cut, (long long)t->options->run.run.batch.max_seq_length);
    }
}

static struct status encode_texts(struct example_task *t, struct example_file *e, struct finetune_data *data,
                                  struct tokenizer_scratch *scratch, const struct label_kind *labels)
{
    TRY(class_examples_encode(&e->texts, scratch, t->options->run.run.batch.max_seq_length, labels));
    example_texts_tell(t, e, "texts");
    data->n_examples = e->texts.texts.n;
    data->source = encoded_texts_source(&e->texts.texts, "texts");
    return e == &t->predict ? class_logits_init(&t->logits, &e->texts.texts, t->labels->n) : status_ok();
}

static struct status read_texts(void *self, struct finetune *f)
{
    static const struct example_kind texts = {.data = {.task = "text classification", .unit = "texts"},
                                              .task = MODEL_TASK_SEQUENCE_CLASSIFICATION,
                                              .open = example_texts_open,
                                              .names = names_of_texts,
                                              .problem = problem_of_texts,
                                              .encode = encode_texts};
    return example_task_read(self, &texts, f);
}

static struct status put_labels(struct buf *line, const struct example_task *t, int64_t i)
{
    class_logits_read(t->readings, class_logits_get(&t->logits, i), t->labels);
    return answer_json_append(line, answer_json_labels(example_task_id(t, i), t->readings, t->labels));
}

static struct status write_texts(void *self, struct buf *names)
{
    struct example_task *t = self;
    t->readings = calloc((size_t)t->labels->n, sizeof *t->readings);
    return t->readings != NULL ? example_task_write(t, names, put_labels)
                               : status_error(STATUS_MEMORY, "out of memory for a prediction");
}

/* ---- the texts that have a wrong label, for the page ---- */

enum { MOST_WRONG = 50, SHOWN_BYTES = 200 };

struct mistake {
    int64_t row, truth, said;
    double score; /* probability of `said` */
};

/* The most certain first. */
static int by_score(const void *a, const void *b)
{
    const struct mistake *x = a, *y = b;
    return x->score > y->score || x->score < y->score ? (x->score < y->score) - (x->score > y->score)
                                                      : (x->row > y->row) - (x->row < y->row);
}

static int64_t find_mistakes(struct mistake *out, const struct example_task *t, const int32_t *truth)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->predict.texts.texts.n; i++) {
        const float *logits = class_logits_get(&t->logits, i);
        int64_t said = class_score_best(logits, t->labels->n);
        if (truth[i] >= 0 && truth[i] != said) {
            class_logits_read(t->readings, logits, t->labels);
            out[n++] = (struct mistake){i, truth[i], said, t->readings[said].score};
        }
    }
    qsort(out, (size_t)n, sizeof *out, by_score);
    return n;
}

static json_t *shown_cell(const struct class_examples *e, int64_t row, int64_t column)
{
    struct table_cell cell = table_file_cell(&e->table, row, column);
    struct buf shown = {0};
    if (cell.is_there) {
        utf8_append_excerpt(&shown, cell.text, cell.n, SHOWN_BYTES);
    }
    json_t *value = json_text(shown.n > 0 ? buf_text(&shown) : "");
    buf_fini(&shown);
    return value;
}

static json_t *mistake_row(const struct example_task *t, const struct mistake *m)
{
    const struct class_examples *e = &t->predict.texts;
    json_t *row = json_pack("[o]", shown_cell(e, m->row, e->text));
    if (e->pair >= 0) {
        json_array_append_new(row, shown_cell(e, m->row, e->pair));
    }
    json_t *rest = json_pack("[o, o, f, I]", json_text(label_names_get(t->labels->names, m->truth)),
                             json_text(label_names_get(t->labels->names, m->said)), m->score,
                             (json_int_t)table_file_line(&e->table, m->row));
    json_array_extend(row, rest);
    json_decref(rest);
    return row;
}

static void add_mistakes(json_t *tables, const struct example_task *t, const struct mistake *list, int64_t n)
{
    int64_t n_shown = n < MOST_WRONG ? n : MOST_WRONG;
    json_t *rows = json_array();
    char note[80];
    for (int64_t i = 0; i < n_shown; i++) {
        json_array_append_new(rows, mistake_row(t, &list[i]));
    }
    json_t *columns =
        t->predict.texts.pair >= 0 ? json_pack("[s, s]", "text", "second text") : json_pack("[s]", "text");
    json_t *rest = json_pack("[s, s, s, s]", "true label", "predicted label", "score", "line");
    json_array_extend(columns, rest);
    json_decref(rest);
    snprintf(note, sizeof note, "%lld of %lld, the most certain first", (long long)n_shown, (long long)n);
    json_array_append_new(tables, json_pack("{s:s, s:s, s:o, s:o}", "title", "Texts with a wrong label",
                                            "note", note, "columns", columns, "rows", rows));
}

static struct status tell_mistakes(json_t *tables, const struct example_task *t, const int32_t *truth)
{
    int64_t n = t->predict.texts.texts.n;
    struct mistake *list = calloc((size_t)n + 1, sizeof *list);
    FAIL_IF(list == NULL, STATUS_MEMORY, "out of memory for %lld wrong labels", (long long)n);
    int64_t n_wrong = find_mistakes(list, t, truth);
    if (n_wrong > 0) {
        add_mistakes(tables, t, list, n_wrong);
    }
    free(list);
    return status_ok();
}

static struct status score_texts(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    const struct encoded_texts *texts = &t->predict.texts.texts;
    const int32_t *truth = (const int32_t *)(const void *)texts->labels.data;
    TRY(status_context(class_score(scores, tables, t->labels, texts->n, t->logits.values, truth), "%s",
                       t->predict.path));
    return t->labels->problem == PROBLEM_SINGLE_LABEL ? tell_mistakes(tables, t, truth) : status_ok();
}

const struct finetune_task classify_task = {
    EXAMPLE_TASK,
    .command = "classify",
    .eval_predicts = true,
    .predictions = "predictions.jsonl",
    .task = MODEL_TASK_SEQUENCE_CLASSIFICATION,
    .may_be_new = 1U << NAMES_CLASSIFIER | 1U << NAMES_POOLER,
    .read = read_texts,
    .set_optimizer = example_task_set_optimizer,
    .prediction = example_task_logits,
    .write = write_texts,
    .score = score_texts,
};
