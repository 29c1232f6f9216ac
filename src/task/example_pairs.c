/* kiln embed-train: pairs of texts, for vectors that show which texts are similar. */
#include "task/example_task.h"

#include "core/log.h"
#include "data/class_score.h"
#include "data/sorted_batches.h"
#include "serve/answer_json.h"
#include "task/pair_loss.h"

#include <stdlib.h>
#include <string.h>

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

/* Chooses the kind of loss by the flags and the training data. */
static struct status choose_loss(struct example_task *t, const struct example_file *e)
{
    const struct example_options *o = t->options;
    bool is_auto = strcmp(o->loss, "auto") == 0;
    t->pairs.is_scored = is_auto ? scores_of(e) != NULL : strcmp(o->loss, "cosent") == 0;
    t->pair_source = (struct pair_source){&e->texts.texts, t->pairs.is_scored ? scores_of(e) : NULL};
    FAIL_IF(t->pairs.is_scored && scores_of(e) == NULL, STATUS_DATA,
            "%s has no column of scores, which --loss cosent compares: name it "
            "by --label_column_name",
            e->path);
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
    (void)labels;
    TRY(class_examples_encode_pairs(&e->texts, scratch, t->options->run.run.batch.max_seq_length));
    example_texts_tell(t, e, "pairs");
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
                                              .open = example_texts_open,
                                              .encode = encode_pairs};
    struct example_task *t = self;
    const struct example_options *o = t->options;
    FAIL_IF(o->run.eval_file != NULL, STATUS_USAGE,
            "--eval_file has no loss of its own here, since a loss is over the "
            "pairs of a batch: give it as --predict_file, with --do_eval");
    t->pairs.pooling = sentence_pooling_find(o->pooling);
    t->pairs.scale = o->scale;
    t->n_pairs = f->options->run.batch.train_batch_size;
    struct model *model;
    TRY(f->model.family->create(&model, f->model.config, MODEL_TASK_ENCODER));
    t->vectors.width = model->hidden_size;
    free(model);
    return example_task_read(self, &pairs, f);
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
    return answer_json_append(
        line, json_pack("{s:o, s:f}", "id", example_task_id(t, i), "cosine", cosine_of(t, i)));
}

static struct status write_pairs(void *self, struct buf *names)
{
    struct example_task *t = self;
    return example_task_write(t, names, put_cosine);
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
    return sentence_model_write(path, t->pairs.pooling, t->vectors.width,
                                t->options->run.run.batch.max_seq_length);
}

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
    .set_optimizer = example_task_set_optimizer,
    .prediction = predicted_vectors,
    .write = write_pairs,
    .score = score_pairs,
};
