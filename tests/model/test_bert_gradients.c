/* The gradients of a 2-layer BERT with dropout, on the reference ops in fp64, against central differences of
 * its loss: within 1e-7 of the largest gradient, in sampled elements of every parameter. */
#include "bert_fixture.h"

static double loss_of(struct trainer *t, const struct batch_step *step)
{
    const struct stage_numbers numbers = {.dropout_key = *t->x.dropout_key}; /* as for the gradients */
    t->x.ops->fill(&t->x, t->sums, 0);
    for (int64_t i = 0; i < step->n_micro; i++) {
        stage_begin(&t->stage, &step->micro[i], &numbers);
        stage_forward(&t->stage, true);
        stage_loss(&t->stage, t->sums);
    }
    EXPECT_OK(t->x.status);
    return tensor_get(t->sums, BERT_MLM_LOSS) / (double)step->n_labels[BERT_MASKED_LABELS] +
           tensor_get(t->sums, BERT_NSP_LOSS) / (double)step->n_labels[BERT_NSP_LABELS];
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

int main(void)
{
    enum { SAMPLES = 4 };
    struct batch_step step;
    struct trainer t;
    fixture_step(&step, 1, 3, 12);
    struct trainer_config config = fixture_trainer(&ops_ref, DTYPE_F64, step.micro[0].limits);
    EXPECT_OK(trainer_init(&t, &config));
    struct trainer_result r;
    EXPECT_OK(trainer_gradients(&t, &step, 1, false, &r));

    double largest = 0, worst = 0;
    for (int64_t i = 0; i < t.params.n_elements; i++) {
        largest = fmax(largest, fabs(tensor_get(t.grad, i)));
    }
    for (int p = 0; p < t.params.n; p++) {
        const struct param *param = &t.params.params[p];
        tensor weight = param_view(param, t.master), grad = param_view(param, t.grad);
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
    printf("%d parameters, %d samples each: worst error %.2g of the largest gradient %.3g\n", t.params.n,
           SAMPLES, worst, largest);
    trainer_fini(&t);
    batch_step_fini(&step);
    return 0;
}
