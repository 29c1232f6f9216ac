/* Training with products in fp8 on a device that keeps it in bf16: gradients lie beside those of bf16, the
 * loss falls as bf16's does, the bits do not depend on threads, histories are kept from step to step, changed
 * weights are rounded anew, and dims that no product in fp8 has are refused. */
#include "bert_fixture.h"
#include "result_mean.h"

#include <math.h>
#include <omp.h>

enum { LONGEST = 14, STEPS = 30, SEEDS = 8 };

static bool pre_ln; /* the wiring of all models here */

static struct trainer_config config_of(bool fp8, struct batch_limits limits)
{
    struct trainer_config c = fixture_trainer(ops_cpu(), DTYPE_BF16, limits);
    c.net.precision.fp8 = fp8;
    struct bert_model *bert = fixture_bert(&c);
    bert->config.hidden_size = 32;
    bert->config.intermediate_size = 64;
    bert->config.layer_norm_large_model = pre_ln;
    fixture_bert_changed(bert);
    c.optimizer = optimizer_defaults(&optimizer_adamw);
    return c;
}

static void init(struct trainer *t, bool fp8, const struct batch_step *step)
{
    struct trainer_config c = config_of(fp8, step->micro[0].limits);
    EXPECT_OK(trainer_init(t, &c));
}

static double distance(tensor a, tensor b)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double x = tensor_get(a, i), y = tensor_get(b, i);
        apart += (x - y) * (x - y);
        size += y * y;
    }
    return sqrt(apart / size);
}

/* e5m2 rounds by up to an eighth and e4m3 by up to a sixteenth, in each of the products between a weight and
 * the loss; in bf16 these gradients are a twentieth of their norm away from fp32's. */
static void test_gradients(const struct batch_step *step)
{
    struct trainer bf16, fp8;
    struct trainer_result r;
    init(&bf16, false, step);
    init(&fp8, true, step);
    EXPECT_OK(trainer_gradients(&bf16, step, 1, &r));
    double loss = result_mean(&r, "mlm_loss");
    EXPECT_OK(trainer_gradients(&fp8, step, 1, &r));
    double apart = distance(fp8.grad, bf16.grad);
    printf("gradients in fp8 are %.3f of their norm away from those in bf16, the loss %.2g of it\n", apart,
           fabs(result_mean(&r, "mlm_loss") - loss) / loss);
    EXPECT(apart > 0.05 && apart < 0.5, "gradients are %.3g of their norm apart", apart);
    EXPECT_NEAR(result_mean(&r, "mlm_loss"), loss, 0.02 * loss);
    trainer_fini(&bf16);
    trainer_fini(&fp8);
}

static double loss_after(bool fp8, const struct batch_step *step, uint64_t seed, int threads, double *first)
{
    struct trainer t;
    struct trainer_result r;
    struct trainer_config c = config_of(fp8, step->micro[0].limits);
    c.seed = seed;
    omp_set_num_threads(threads);
    EXPECT_OK(trainer_init(&t, &c));
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(&t, step, i, i, 5e-3, &r));
        *first = i == 1 ? result_mean(&r, "mlm_loss") : *first;
    }
    trainer_fini(&t);
    return result_mean(&r, "mlm_loss");
}

/* The losses of one seed lie an eighth apart as a rule and a third at most, to either side, and elsewhere in
 * each build and on each processor.  So the means of eight seeds lie about a twenty-fifth apart. */
static void test_learning(const struct batch_step *step)
{
    double bf16 = 0, fp8 = 0, first;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        double one = loss_after(true, step, seed, 1, &first), three = loss_after(true, step, seed, 3, &first);
        EXPECT(one == three, "3 threads give another loss, %.17g, than one, %.17g", three, one);
        EXPECT(one < 0.8 * first, "the loss falls from %g to %g", first, one);
        fp8 += one / SEEDS;
        bf16 += loss_after(false, step, seed, 1, &first) / SEEDS;
    }
    printf("after %d steps the mean loss of %d seeds is %.4f in bf16 and %.4f in fp8\n", STEPS, SEEDS, bf16,
           fp8);
    EXPECT(fp8 != bf16, "the same loss");
    EXPECT_NEAR(fp8, bf16, 0.2 * bf16);
}

static const float *histories_of(const struct trainer *t)
{
    return t->net.stage.histories.data;
}

/* Histories: a step notes the largest magnitudes and keeps them for the next; evaluations neither read nor
 * change them; recomputed layers and second looks at the same batch round alike; other scales, other bits. */
static void test_histories(const struct batch_step *step)
{
    struct trainer t, recomputing, forgetful;
    struct trainer_result r, of_recomputing, before, after;
    struct trainer_config c = config_of(true, step->micro[0].limits);
    EXPECT_OK(trainer_init(&t, &c));
    EXPECT_OK(trainer_init(&forgetful, &c));
    c.net.recompute = 1;
    EXPECT_OK(trainer_init(&recomputing, &c));
    int64_t n = tensor_count(t.net.stage.histories);
    EXPECT(n == 2 * LAYER_N_FACTORS * t.net.config.model->n_layers, "%lld numbers", (long long)n);
    for (int64_t i = 1; i <= 4; i++) {
        EXPECT_OK(trainer_step(&t, step, i, i, 5e-3, &r));
        EXPECT_OK(trainer_step(&recomputing, step, i, i, 5e-3, &of_recomputing));
        EXPECT(memcmp(&r, &of_recomputing, sizeof r) == 0, "step %lld recomputed is another", (long long)i);
        EXPECT(memcmp(histories_of(&t), histories_of(&recomputing), (size_t)n * sizeof(float)) == 0,
               "step %lld: other histories where layers are recomputed", (long long)i);
        for (int64_t k = 0; k < n; k += 2) {
            EXPECT(histories_of(&t)[k] > 0 && isfinite(histories_of(&t)[k]) && histories_of(&t)[k + 1] == 0,
                   "step %lld: history %lld is %g, %g", (long long)i, (long long)k / 2,
                   (double)histories_of(&t)[k], (double)histories_of(&t)[k + 1]);
        }
    }
    EXPECT_OK(trainer_evaluate(&t, step, &before));
    memcpy(forgetful.net.master.data, t.net.master.data, tensor_bytes(t.net.master));
    network_weights_changed(&forgetful.net);
    EXPECT_OK(trainer_evaluate(&forgetful, step, &after));
    EXPECT(memcmp(&before, &after, sizeof before) == 0, "an evaluation reads histories");
    EXPECT(memcmp(histories_of(&t), histories_of(&recomputing), (size_t)n * sizeof(float)) == 0,
           "an evaluation changes histories");
    EXPECT_OK(trainer_gradients(&t, step, 5, &before));
    EXPECT_OK(trainer_gradients(&t, step, 5, &after));
    EXPECT(memcmp(&before, &after, sizeof before) == 0,
           "the same batch is rounded otherwise the second time");
    EXPECT_OK(trainer_gradients(&forgetful, step, 5, &after));
    EXPECT(before.grad_norm != after.grad_norm, "nobody reads histories");
    trainer_fini(&recomputing);
    trainer_fini(&forgetful);
    trainer_fini(&t);
}

/* Weights are rounded once for all that runs on them; whatever has changed them, nothing runs on those
 * before. */
static void test_changed_weights(const struct batch_step *step, int64_t recompute)
{
    struct trainer trained, fresh;
    struct network shared;
    struct trainer_result of_trained, of_fresh;
    struct trainer_config c = config_of(true, step->micro[0].limits), reading;
    struct bert_model *bert = fixture_bert(&c);
    bert->config.num_hidden_layers = 3; /* two share activations where there is no backward */
    fixture_bert_changed(bert);
    c.net.recompute = recompute;
    reading = c;
    reading.net.learns = false;
    EXPECT_OK(trainer_init(&trained, &c));
    EXPECT_OK(trainer_init(&fresh, &c));
    EXPECT_OK(network_init_shared(&shared, &reading.net, &trained.net));
    for (int64_t i = 1; i <= 3; i++) {
        EXPECT_OK(trainer_step(&trained, step, i, i, 1e-2, &of_trained));
        memcpy(fresh.net.master.data, trained.net.master.data, tensor_bytes(trained.net.master));
        network_weights_changed(&fresh.net);
        for (int again = 0; again < 2; again++) {
            EXPECT_OK(trainer_evaluate(&trained, step, &of_trained));
            EXPECT_OK(trainer_evaluate(&fresh, step, &of_fresh));
            EXPECT(memcmp(&of_trained, &of_fresh, sizeof of_fresh) == 0,
                   "step %d: evaluated by what was before", (int)i);
            fixture_expect_same_answers(&shared, &fresh.net, &step->micro[again],
                                        "the weights of a trainer by what was before");
        }
        memcpy(fresh.net.stage.histories.data, trained.net.stage.histories.data,
               tensor_bytes(fresh.net.stage.histories));
        EXPECT_OK(trainer_gradients(&trained, step, i, &of_trained));
        EXPECT_OK(trainer_gradients(&fresh, step, i, &of_fresh));
        EXPECT(memcmp(trained.grad.data, fresh.grad.data, tensor_bytes(fresh.grad)) == 0,
               "step %d: gradients of what was before", (int)i);
    }
    network_fini(&shared);
    trainer_fini(&fresh);
    trainer_fini(&trained);
}

static void test_refused(const struct batch_step *step)
{
    struct trainer_plan plan;
    struct trainer_config c = config_of(true, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&c);
    bert->config.intermediate_size = 40;
    fixture_bert_changed(bert);
    EXPECT_ERROR(trainer_plan(&plan, &c), STATUS_USAGE, "intermediate_size 40: leave out --fp8");
}

int main(void)
{
    struct batch_step step;
    fixture_step(&step, 2, 4, LONGEST);
    for (int i = 0; i < 2; i++) {
        pre_ln = i == 1;
        test_gradients(&step);
        test_learning(&step);
        test_histories(&step);
        test_changed_weights(&step, 0);
        test_changed_weights(&step, 1);
    }
    test_refused(&step);
    batch_step_fini(&step);
    return 0;
}
