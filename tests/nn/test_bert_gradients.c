/* The gradients of a small BERT with dropout, of either wiring, on the reference ops in fp64, against
 * central differences of its loss: within 1e-7 of the largest gradient, in sampled elements of every
 * parameter. */
#include "bert_fixture.h"
#include "gradient_check.h"

/* Labels of a classifier: classes, or targets of which every fifth is none. */
static void add_class_labels(struct batch *b)
{
    const struct batch_field *f = &b->layout->fields[TEXT_CLASS_LABELS];
    struct rng_stream r = rng_stream(rng_key(4, 4));
    int64_t n = batch_real_rows(b, f->rows) * f->width;
    for (int64_t i = 0; i < n; i++) {
        float target = (float)rng_below(&r, 2);
        int32_t *label = &b->fields[TEXT_CLASS_LABELS][i];
        *label = i % 5 == 3 ? f->nothing : (int32_t)rng_below(&r, 3);
        if (f->dtype == DTYPE_F32 && i % 5 != 3) {
            memcpy(label, &target, sizeof target);
        }
    }
}

/* The place of an answer in each sequence: its first two tokens. */
static void add_span_labels(struct batch *b)
{
    for (int64_t i = 0; i < 2 * b->n_sequences; i++) {
        b->fields[TEXT_SPAN_LABELS][i] = (int32_t)(i % 2);
    }
}

/* The model whose gradients are checked. */
struct gradient_case {
    enum model_task task;
    enum label_problem problem;
    int64_t n_layers;
    bool pre_ln;
    int64_t recompute;
    const struct bert_kind *kind; /* NULL: BERT */
};

static void check_gradients(const struct gradient_case *g)
{
    enum { SEQUENCES = 3, LONGEST = 12 };
    struct batch_step step;
    struct trainer t;
    struct trainer_config config =
        fixture_trainer(&ops_ref, DTYPE_F64, text_batch_limits(SEQUENCES, LONGEST, LONGEST));
    struct bert_model *bert = fixture_bert(&config);
    *bert = bert_model(&bert->config, g->task);
    bert->config.labels.n = 3;
    bert->config.labels.problem = g->problem;
    bert->config.num_hidden_layers = g->n_layers;
    bert->config.layer_norm_large_model = g->pre_ln;
    bert->config.classifier_dropout = 0.2;
    bert->config.kind = g->kind;
    bert->config.first_position = bert_config_kind(&bert->config)->counts_behind_padding ? 2 : 0;
    bert->config.answer_dropout = g->kind == &distilbert_kind ? 0.3 : 0;
    fixture_bert_changed(bert);
    config.net.recompute = g->recompute;
    fixture_step_of(&step, &config.net.model->layout, 1, SEQUENCES, LONGEST);
    if (model_task_has_labels(g->task)) {
        add_class_labels(step.micro);
    }
    if (model_task_has(g->task, MODEL_SPAN_LOGITS)) {
        add_span_labels(step.micro);
    }
    batch_step_count(&step);
    EXPECT_OK(trainer_init(&t, &config));
    char what[64];
    snprintf(what, sizeof what, "%s, %s-LN", bert_config_kind(&bert->config)->classes[g->task],
             g->pre_ln ? "pre" : "post");
    gradient_check(&t, &step, what);
    trainer_fini(&t);
    batch_step_fini(&step);
}

/* The loss of numbers of words is that of torch: the mean of (number - target)^2 over the words that have a
 * target, in fp64. */
static void check_mean_square(void)
{
    enum { SEQUENCES = 3, LONGEST = 12 };
    struct batch_step step;
    struct trainer t;
    struct trainer_result r;
    struct trainer_config config =
        fixture_trainer(&ops_ref, DTYPE_F64, text_batch_limits(SEQUENCES, LONGEST, LONGEST));
    struct bert_model *bert = fixture_bert(&config);
    *bert = bert_model(&bert->config, MODEL_TASK_TOKEN_CLASSIFICATION);
    bert->config.labels = (struct model_labels){.n = 1, .problem = PROBLEM_REGRESSION};
    fixture_bert_changed(bert);
    fixture_step_of(&step, &config.net.model->layout, 1, SEQUENCES, LONGEST);
    add_class_labels(step.micro);
    batch_step_count(&step);
    EXPECT_OK(trainer_init(&t, &config));
    stage_infer(&t.net.stage, step.micro);
    EXPECT_OK(t.net.x.status);
    tensor numbers = stage_head_output(&t.net.stage, MODEL_TOKEN_LOGITS);
    double sum = 0, n = 0;
    for (int64_t i = 0; i < step.micro->n_real_tokens; i++) {
        float target;
        memcpy(&target, &step.micro->fields[TEXT_CLASS_LABELS][i], sizeof target);
        double error = tensor_get(numbers, i) - (double)target;
        sum += isnan(target) ? 0 : error * error;
        n += !isnan(target);
    }
    EXPECT(n > 10 && (int64_t)n < step.micro->n_real_tokens, "%g words with a target", n);
    EXPECT_OK(trainer_evaluate(&t, &step, &r));
    EXPECT_NEAR(trainer_result_loss(&r), sum / n, 1e-12 * sum / n);
    trainer_fini(&t);
    batch_step_fini(&step);
}

int main(void)
{
    static const struct gradient_case cases[] = {
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 2, false, 0, NULL},
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 3, true, 0, NULL},
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 3, true, 2,
         NULL}, /* a chunk takes its residual stream from the one below */
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 1, true, 0, NULL}, /* the first layer is the last */
        {MODEL_TASK_MASKED_LM, PROBLEM_SINGLE_LABEL, 2, false, 0, NULL},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 2, false, 0, NULL},
        {MODEL_TASK_MASKED_LM, PROBLEM_SINGLE_LABEL, 1, false, 0, &roberta_kind},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 1, false, 0, &roberta_kind},
        {MODEL_TASK_MASKED_LM, PROBLEM_SINGLE_LABEL, 1, false, 0, &distilbert_kind},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 1, false, 0, &distilbert_kind},
        {MODEL_TASK_TOKEN_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 1, false, 0, &distilbert_kind},
        {MODEL_TASK_QUESTION_ANSWERING, PROBLEM_SINGLE_LABEL, 1, false, 0, &distilbert_kind},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_MULTI_LABEL, 2, false, 0, NULL},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_REGRESSION, 2, false, 0, NULL},
        {MODEL_TASK_TOKEN_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 2, false, 0, NULL},
        {MODEL_TASK_TOKEN_CLASSIFICATION, PROBLEM_REGRESSION, 2, false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_gradients(&cases[i]);
    }
    check_mean_square();
    return 0;
}
