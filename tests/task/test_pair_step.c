/* The gradients of a step over pairs, by way of the gradients of their vectors, are those of the loss over
 * the whole batch: against central differences of that loss, with dropout, on the reference ops in fp64
 * (vectors are fp32 between the passes); and the same whatever micro-batches the batch is cut into. */
#include "bert_fixture.h"

#include "data/encoded_texts.h"
#include "nn/vector_head.h"
#include "task/pair_step.h"

enum { PAIRS = 6, LONGEST = 9 };

static float scores[PAIRS];
static struct encoded_texts texts;

static void make_texts(void)
{
    struct rng_stream r = rng_stream(rng_key(5, 6));
    texts = (struct encoded_texts){.frame = input_frame_bert(1, 2)};
    for (int i = 0; i < 2 * PAIRS; i++) {
        struct token_range a = {(int64_t)texts.ids.n, 2 + (int64_t)rng_below(&r, LONGEST - 4)};
        for (int64_t k = 0; k < a.n; k++) {
            EXPECT(id_list_append(&texts.ids, 3 + (int32_t)rng_below(&r, 20)), "memory");
        }
        EXPECT_OK(encoded_texts_add_tokens(&texts, a, NULL));
        scores[i / 2] = (float)rng_below(&r, 3);
    }
}

static void fill(struct batch_step *step, const struct pair_source *source, int64_t n_micro)
{
    struct example_source of = pair_step_source(source);
    for (int64_t i = 0; i < PAIRS; i++) {
        struct batch *b = &step->micro[i / (PAIRS / n_micro)];
        of.add(of.self, i, (int32_t)i, b);
    }
    for (int64_t k = 0; k < n_micro; k++) {
        batch_finish(&step->micro[k], 0);
    }
}

static double loss_of(struct pair_step *p, struct trainer *t, struct batch_step *step)
{
    struct comm world = comm_self();
    EXPECT_OK(pair_step_prepare(p, t, step, 1, &world, PAIRS));
    return p->loss;
}

static void compare(struct pair_step *p, struct trainer *t, struct batch_step *step)
{
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < t->net.params.n_elements; i++) {
        largest = fmax(largest, fabs(tensor_get(t->grad, i)));
    }
    EXPECT(largest > 1e-3, "no gradient");
    for (int k = 0; k < t->net.params.n; k += 3) {
        const struct param *param = &t->net.params.params[k];
        tensor weight = param_view(param, t->net.master), grad = param_view(param, t->grad);
        int64_t i = (int64_t)rng_permute(9, (uint64_t)param_count(param), 0);
        double w = tensor_get(weight, i), h = 2e-3;
        tensor_set(weight, i, w + h);
        double above = loss_of(p, t, step);
        tensor_set(weight, i, w - h);
        double below = loss_of(p, t, step);
        tensor_set(weight, i, w);
        worst = fmax(worst, fabs(tensor_get(grad, i) - (above - below) / (2 * h)) / largest);
        EXPECT(worst < 2e-3, "%s[%lld]: gradient %.9g, difference quotient %.9g, largest %g", param->name,
               (long long)i, tensor_get(grad, i), (above - below) / (2 * h), largest);
    }
    printf("worst error %.2g of the largest gradient %.3g\n", worst, largest);
}

/* Returns the sum of the magnitudes of the gradients. */
static double check(struct pair_step p, int64_t n_micro, bool against_quotients)
{
    struct batch_step step;
    struct trainer t;
    struct trainer_result r;
    struct pair_source source = {&texts, scores};
    struct batch_limits limits = text_batch_limits(2 * PAIRS, LONGEST, 0);
    struct trainer_config config = fixture_trainer(&ops_ref, DTYPE_F64, limits);
    struct bert_model *bert = fixture_bert(&config);
    *bert = bert_model(&bert->config, MODEL_TASK_ENCODER);
    fixture_bert_changed(bert);
    EXPECT_OK(vector_head_add(&bert->blocks.model));
    EXPECT_OK(batch_step_init(&step, n_micro, &bert->blocks.model.layout, limits));
    fill(&step, &source, n_micro);
    EXPECT_OK(trainer_init(&t, &config));
    double loss = loss_of(&p, &t, &step), sum = 0;
    EXPECT(loss > 0.1, "loss %g", loss);
    EXPECT_OK(trainer_gradients(&t, &step, 1, &r));
    for (int64_t i = 0; i < t.net.params.n_elements; i++) {
        sum += fabs(tensor_get(t.grad, i));
    }
    if (against_quotients) {
        compare(&p, &t, &step);
    }
    trainer_fini(&t);
    batch_step_fini(&step);
    return sum + loss;
}

int main(void)
{
    static const struct pair_step kinds[] = {{.scale = 20, .pooling = SENTENCE_MEAN},
                                             {.scale = 20, .is_scored = true, .pooling = SENTENCE_MEAN},
                                             {.scale = 5, .pooling = SENTENCE_CLS}};
    make_texts();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        double whole = check(kinds[i], 1, true);
        EXPECT_NEAR(check(kinds[i], 3, i == 0), whole, 1e-6 * whole);
    }
    encoded_texts_fini(&texts);
    return 0;
}
