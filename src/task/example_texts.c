/* kiln classify: texts, or pairs of texts, and their labels. */
#include "task/example_task.h"

#include "core/log.h"
#include "data/class_score.h"
#include "serve/answer_json.h"

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

static struct status score_texts(void *self, struct score_list *scores, json_t *tables)
{
    const struct example_task *t = self;
    const struct encoded_texts *texts = &t->predict.texts.texts;
    return status_context(class_score(scores, tables, t->labels, texts->n, t->logits.values,
                                      (const int32_t *)(const void *)texts->labels.data),
                          "%s", t->predict.path);
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
