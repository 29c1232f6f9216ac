/* The gradients of a small BERT with dropout, of either wiring, and of a small ModernBERT, on the reference
 * ops in fp64, against central differences of its loss: within 1e-7 of the largest gradient, in sampled
 * elements of every parameter. */
#include "bert_fixture.h"
#include "gradient_check.h"

#include "nn/modernbert/modernbert_model.h"

enum { SEQUENCES = 3, LONGEST = 12 };

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

/* Trains config->net.model. */
static void check_model(const struct trainer_config *config, const char *what)
{
    const struct model *m = config->net.model;
    struct batch_step step;
    struct trainer t;
    fixture_step_of(&step, &m->layout, 1, SEQUENCES, LONGEST);
    if (model_task_has_labels(m->task)) {
        add_class_labels(step.micro);
    }
    if (model_task_has(m->task, MODEL_SPAN_LOGITS)) {
        add_span_labels(step.micro);
    }
    batch_step_count(&step);
    EXPECT_OK(trainer_init(&t, config));
    gradient_check(&t, &step, what);
    trainer_fini(&t);
    batch_step_fini(&step);
}

static void check_gradients(const struct gradient_case *g)
{
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
    char what[64];
    snprintf(what, sizeof what, "%s, %s-LN", bert_config_kind(&bert->config)->classes[g->task],
             g->pre_ln ? "pre" : "post");
    check_model(&config, what);
}

/* Layers 0 and 2 of three see all tokens, layer 1 those at most two places away. */
static void check_modernbert(enum model_task task, bool pools_mean, int64_t recompute)
{
    struct modernbert_config c = {.vocab_size = FIXTURE_VOCAB,
                                  .hidden_size = 16,
                                  .n_layers = 3,
                                  .n_heads = 2,
                                  .feed_forward_size = 24,
                                  .n_positions = 16,
                                  .local_attention = 4,
                                  .global_every = 2,
                                  .global_theta = 1000,
                                  .local_theta = 50,
                                  .embedding_dropout = 0.1,
                                  .classifier_dropout = 0.2,
                                  .initializer_range = 0.3,
                                  .norm_eps = 1e-5,
                                  .pools_mean = pools_mean,
                                  .labels = {.n = 3, .problem = PROBLEM_SINGLE_LABEL}};
    struct trainer_config config =
        fixture_trainer(&ops_ref, DTYPE_F64, text_batch_limits(SEQUENCES, LONGEST, LONGEST));
    struct model *model;
    char what[64];
    EXPECT_OK(modernbert_model_create(&model, &c, task));
    config.net.model = model;
    config.net.recompute = recompute;
    snprintf(what, sizeof what, "%s%s", modernbert_class(task), pools_mean ? " of means" : "");
    check_model(&config, what);
    free(model);
}

/* The loss of numbers of words is that of torch: the mean of (number - target)^2 over the words that have a
 * target, in fp64. */
static void check_mean_square(void)
{
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
    check_modernbert(MODEL_TASK_MASKED_LM, false, 0);
    check_modernbert(MODEL_TASK_MASKED_LM, false, 2); /* the last layer, with its norm, is computed again */
    check_modernbert(MODEL_TASK_SEQUENCE_CLASSIFICATION, false, 0);
    check_modernbert(MODEL_TASK_SEQUENCE_CLASSIFICATION, true, 0);
    check_modernbert(MODEL_TASK_TOKEN_CLASSIFICATION, false, 0);
    check_modernbert(MODEL_TASK_QUESTION_ANSWERING, false, 0);
    check_mean_square();
    return 0;
}
