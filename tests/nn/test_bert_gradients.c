/* The gradients of a small BERT with dropout, of either wiring, on the reference ops in fp64, against central
 * differences of its loss: within 1e-7 of the largest gradient, in sampled elements of every parameter. */
#include "bert_fixture.h"

static double loss_of(struct trainer *t, const struct batch_step *step)
{
    const struct model *m = t->config.net.model;
    const struct stage_numbers numbers = {.dropout_key = *t->net.x.dropout_key}; /* as for the gradients */
    double loss = 0;
    t->net.x.ops->fill(&t->net.x, t->sums, 0);
    for (int64_t i = 0; i < step->n_micro; i++) {
        stage_begin(&t->net.stage, &step->micro[i], &numbers);
        stage_forward(&t->net.stage, true);
        stage_measure(&t->net.stage, t->sums, true);
    }
    EXPECT_OK(t->net.x.status);
    for (int i = 0; i < m->n_sums; i++) {
        loss += m->sums[i].is_loss ? tensor_get(t->sums, i) / (double)step->n_labels[m->sums[i].labels] : 0;
    }
    return loss;
}

static double central_difference(struct trainer *t, const struct batch_step *step, tensor weight, int64_t i)
{
    double w = tensor_get(weight, i);
    double h = 1e-5 * fmax(1.0, fabs(w));
    tensor_set(weight, i, w + h);
    double above = loss_of(t, step);
    tensor_set(weight, i, w - h);
    double below = loss_of(t, step);
    tensor_set(weight, i, w);
    return (above - below) / (2 * h);
}

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

/* The model whose gradients are checked. */
struct gradient_case {
    enum model_task task;
    enum label_problem problem;
    int64_t n_layers;
    bool pre_ln;
    int64_t recompute;
};

static void check_gradients(const struct gradient_case *g)
{
    enum { SAMPLES = 2, SEQUENCES = 3, LONGEST = 12 };
    struct batch_step step;
    struct trainer t;
    struct trainer_config config =
        fixture_trainer(&ops_ref, DTYPE_F64, text_batch_limits(SEQUENCES, LONGEST, LONGEST));
    struct bert_model *bert = fixture_bert(&config);
    bert->task = g->task;
    bert->config.labels.n = 3;
    bert->config.labels.problem = g->problem;
    bert->config.num_hidden_layers = g->n_layers;
    bert->config.layer_norm_large_model = g->pre_ln;
    bert->config.classifier_dropout = 0.2;
    fixture_bert_changed(bert);
    config.net.recompute = g->recompute;
    fixture_step_of(&step, &config.net.model->layout, 1, SEQUENCES, LONGEST);
    if (model_task_has_labels(g->task)) {
        add_class_labels(step.micro);
        batch_step_count(&step);
    }
    EXPECT_OK(trainer_init(&t, &config));
    struct trainer_result r;
    EXPECT_OK(trainer_gradients(&t, &step, 1, false, &r));

    double largest = 0, worst = 0;
    for (int64_t i = 0; i < t.net.params.n_elements; i++) {
        largest = fmax(largest, fabs(tensor_get(t.grad, i)));
    }
    for (int p = 0; p < t.net.params.n; p++) {
        const struct param *param = &t.net.params.params[p];
        tensor weight = param_view(param, t.net.master), grad = param_view(param, t.grad);
        for (uint64_t s = 0; s < SAMPLES; s++) {
            int64_t i =
                (int64_t)rng_permute(9, (uint64_t)param_count(param), s % (uint64_t)param_count(param));
            double wanted = central_difference(&t, &step, weight, i);
            double error = fabs(tensor_get(grad, i) - wanted) / largest;
            EXPECT(error <= 1e-7, "%s[%lld]: gradient %.12g, difference quotient %.12g", param->name,
                   (long long)i, tensor_get(grad, i), wanted);
            worst = fmax(worst, error);
        }
    }
    printf("%s, %s-LN: %d parameters, %d samples each: worst error %.2g of the largest gradient %.3g\n",
           bert_task_class(g->task), g->pre_ln ? "pre" : "post", t.net.params.n, SAMPLES, worst, largest);
    EXPECT(largest > 0, "no gradient");
    trainer_fini(&t);
    batch_step_fini(&step);
}

int main(void)
{
    static const struct gradient_case cases[] = {
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 2, false, 0},
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 3, true, 0},
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 3, true,
         2}, /* a chunk takes its residual stream from the one below */
        {MODEL_TASK_PRETRAINING, PROBLEM_SINGLE_LABEL, 1, true, 0}, /* the first layer is the last */
        {MODEL_TASK_MASKED_LM, PROBLEM_SINGLE_LABEL, 2, false, 0},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 2, false, 0},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_MULTI_LABEL, 2, false, 0},
        {MODEL_TASK_SEQUENCE_CLASSIFICATION, PROBLEM_REGRESSION, 2, false, 0},
        {MODEL_TASK_TOKEN_CLASSIFICATION, PROBLEM_SINGLE_LABEL, 2, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_gradients(&cases[i]);
    }
    return 0;
}
