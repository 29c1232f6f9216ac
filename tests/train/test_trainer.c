/* A training step as a whole: it learns, bf16 follows fp32, the plan refuses what does not fit, a number that
 * is not finite is named and stops before the weights change. */
#include "bert_fixture.h"
#include "result_mean.h"

enum { LONGEST = 14 };

/* A model of so many layers of a wiring. */
static struct trainer_config trainer_of(const struct batch_step *step, enum dtype dtype, int64_t n_layers,
                                        bool pre_ln)
{
    struct trainer_config config = fixture_trainer(ops_cpu(), dtype, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.num_hidden_layers = n_layers;
    bert->config.layer_norm_large_model = pre_ln;
    fixture_bert_changed(bert);
    return config;
}

static double loss_after(const struct batch_step *step, enum dtype dtype, bool pre_ln,
                         const struct optimizer_kind *kind, double lr)
{
    struct trainer t;
    struct trainer_result r = {0};
    struct trainer_config config = trainer_of(step, dtype, 2, pre_ln);
    config.optimizer = optimizer_defaults(kind);
    EXPECT_OK(trainer_init(&t, &config));
    for (int64_t i = 1; i <= 40; i++) {
        EXPECT_OK(trainer_step(&t, step, i, i, lr, &r));
    }
    EXPECT_OK(trainer_evaluate(&t, step, &r));
    trainer_fini(&t);
    return result_mean(&r, "mlm_loss");
}

static void training_learns_in_both_precisions(const struct batch_step *step, bool pre_ln)
{
    static const struct {
        const struct optimizer_kind *kind;
        double lr;
    } cases[] = {{&optimizer_lamb, 1e-2},
                 {&optimizer_nvlamb_exp, 1e-2},
                 {&optimizer_lans, 1e-2},
                 {&optimizer_adam, 1e-2},
                 {&optimizer_adamw, 1e-2}};
    for (int i = 0; i < 5; i++) {
        double before = loss_after(step, DTYPE_F32, pre_ln, cases[i].kind, 0);
        double fp32 = loss_after(step, DTYPE_F32, pre_ln, cases[i].kind, cases[i].lr);
        double bf16 = loss_after(step, DTYPE_BF16, pre_ln, cases[i].kind, cases[i].lr);
        printf("%s, %s-LN: MLM loss %.4f before, %.4f after 40 steps in fp32, %.4f in bf16\n",
               cases[i].kind->name, pre_ln ? "pre" : "post", before, fp32, bf16);
        EXPECT(fp32 < 0.7 * before, "nothing was learnt: %g to %g", before, fp32);
        EXPECT_NEAR(bf16, fp32, 0.1 * before);
    }
}

static void nonfinite_numbers_are_named(const struct batch_step *step)
{
    static const char *const names[] = {"bert.encoder.layer.1.intermediate.dense.weight",
                                        "bert.embeddings.LayerNorm.bias"};
    for (int i = 0; i < 2; i++) {
        struct trainer t;
        struct trainer_result r;
        struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
        EXPECT_OK(trainer_init(&t, &config));
        tensor weight = param_view(param_table_find(&t.net.params, names[i]), t.net.master);
        tensor other = param_view(param_table_find(&t.net.params, "bert.pooler.dense.weight"), t.net.master);
        double untouched = tensor_get(other, 3);
        tensor_set(weight, 5, NAN);
        struct status s = trainer_step(&t, step, 7, 7, 1e-3, &r);
        EXPECT(s.code == STATUS_NUMERIC, "code %d", s.code);
        EXPECT(strstr(s.message, names[i]) != NULL && strstr(s.message, "element 5") != NULL, "%s",
               s.message);
        EXPECT(tensor_get(other, 3) == untouched, "the weights changed");
        trainer_fini(&t);
    }
}

/* Weights that are finite, but whose products are not: the activation is named by its own layer, where all
 * layers keep their activations, where they are made again, and for questions, which have no other head. */
static void nonfinite_activations_are_named(struct batch_step *step)
{
    static const enum model_task tasks[] = {MODEL_TASK_PRETRAINING, MODEL_TASK_PRETRAINING,
                                            MODEL_TASK_QUESTION_ANSWERING, MODEL_TASK_QUESTION_ANSWERING};
    static const char *const names[] = {
        "bert.encoder.layer.3.intermediate.dense.weight", "bert.encoder.layer.3.intermediate.dense.weight",
        "bert.encoder.layer.3.intermediate.dense.weight", "qa_outputs.weight"};
    static const char *const wanted[] = {"activation layer 3 intermediate", "activation layer 3 intermediate",
                                         "activation layer 3 intermediate", "activation logits of answers"};
    for (int i = 0; i < 4; i++) {
        struct trainer t;
        struct trainer_result r;
        struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
        struct bert_model *bert = fixture_bert(&config);
        *bert = bert_model(&bert->config, tasks[i]);
        bert->config.num_hidden_layers = 7;
        fixture_bert_changed(bert);
        config.net.recompute = i == 1 ? 2 : 0;
        for (int64_t k = 0; i == 2 && k < 2 * step->micro[1].n_sequences; k++) {
            step->micro[1].fields[TEXT_SPAN_LABELS][k] = 1 + k % 2;
        }
        batch_step_count(step);
        EXPECT_OK(trainer_init(&t, &config));
        tensor weight = param_view(param_table_find(&t.net.params, names[i]), t.net.master);
        for (int64_t e = 0; e < tensor_count(weight); e++) {
            tensor_set(weight, e, 3e38);
        }
        struct status s = trainer_step(&t, step, 7, 7, 1e-3, &r);
        EXPECT_ERROR(s, STATUS_NUMERIC, wanted[i]);
        for (int k = 0; k < r.n_sums; k++) { /* each loss is told, too */
            const struct model_sum *of = r.sums[k].of;
            EXPECT(!of->is_loss || strstr(s.message, of->text) != NULL, "%s lacks %s", s.message, of->text);
        }
        trainer_fini(&t);
    }
}

static void plans_refuse_what_cannot_be(const struct batch_step *step)
{
    struct trainer t;
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.num_hidden_layers = 1024;
    bert->config.hidden_size = 65536;
    bert->config.intermediate_size = 262144;
    fixture_bert_changed(bert);
    EXPECT_ERROR(trainer_init(&t, &config), STATUS_MEMORY, "GiB of memory are free");
}

static void same_seed_same_weights(const struct batch_step *step)
{
    struct trainer a, b;
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
    EXPECT_OK(trainer_init(&a, &config));
    config.net.ops = &ops_ref;
    EXPECT_OK(trainer_init(&b, &config));
    EXPECT(memcmp(a.net.master.data, b.net.master.data, tensor_bytes(a.net.master)) == 0,
           "weights depend on the device");
    trainer_fini(&b);
    config.seed++;
    EXPECT_OK(trainer_init(&b, &config));
    EXPECT(memcmp(a.net.master.data, b.net.master.data, tensor_bytes(a.net.master)) != 0,
           "weights ignore the seed");
    trainer_fini(&b);
    trainer_fini(&a);
}

/* Dropout on the reference and on the cpu ops drops the same elements. */
static void dropout_masks_are_the_same_on_every_table(const struct batch_step *step)
{
    struct trainer a, b;
    struct trainer_result ra, rb;
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step->micro[0].limits);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.hidden_dropout_prob = bert->config.attention_probs_dropout_prob = 0.5;
    fixture_bert_changed(bert);
    EXPECT_OK(trainer_init(&a, &config));
    config.net.ops = &ops_ref;
    EXPECT_OK(trainer_init(&b, &config));
    EXPECT_OK(trainer_gradients(&a, step, 3, &ra));
    EXPECT_OK(trainer_gradients(&b, step, 3, &rb));
    EXPECT_NEAR(result_mean(&ra, "mlm_loss"), result_mean(&rb, "mlm_loss"), 1e-5);
    EXPECT_NEAR(ra.grad_norm, rb.grad_norm, 1e-4 * rb.grad_norm);
    trainer_fini(&a);
    trainer_fini(&b);
}

/* Activations that are made again are those that were dropped: gradients of equal bits, in less memory. */
static void recomputation_changes_no_bit(const struct batch_step *step, enum dtype dtype, bool pre_ln)
{
    struct trainer_config config = trainer_of(step, dtype, 7, pre_ln);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.hidden_dropout_prob = bert->config.attention_probs_dropout_prob = 0.3;
    fixture_bert_changed(bert);
    struct trainer all;
    struct trainer_result expected;
    EXPECT_OK(trainer_init(&all, &config));
    EXPECT_OK(trainer_gradients(&all, step, 3, &expected));
    static const int64_t chunks[] = {1, 2, 3, 7};
    for (int i = 0; i < 4; i++) {
        struct trainer t;
        struct trainer_result r;
        config.net.recompute = chunks[i];
        EXPECT_OK(trainer_init(&t, &config));
        EXPECT_OK(trainer_gradients(&t, step, 3, &r));
        EXPECT(memcmp(t.grad.data, all.grad.data, tensor_bytes(t.grad)) == 0,
               "other gradients with chunks of %d layers", (int)chunks[i]);
        EXPECT(chunks[i] == 7 || t.plan.net.activation_bytes < all.plan.net.activation_bytes,
               "%zu of %zu bytes", t.plan.net.activation_bytes, all.plan.net.activation_bytes);
        trainer_fini(&t);
    }
    trainer_fini(&all);
}

/* Where there is no backward, two layers' activations serve all in turn: the same losses, in less memory. */
static void inference_keeps_two_layers(const struct batch_step *step, enum dtype dtype, bool pre_ln)
{
    struct trainer_config config = trainer_of(step, dtype, 5, pre_ln), reading = config;
    struct trainer all, two;
    struct network viewing;
    struct trainer_result expected, r;
    reading.net.learns = false;
    EXPECT_OK(trainer_init(&all, &config));
    EXPECT_OK(trainer_init(&two, &reading));
    EXPECT_OK(network_init_shared(&viewing, &reading.net, &all.net));
    EXPECT_OK(trainer_initialize(&two)); /* from the same seed */
    /* nothing reads a master there, but vectors */
    size_t working = (size_t)two.net.params.n_elements * dtype_bytes(dtype);
    EXPECT(dtype == DTYPE_F32 || tensor_is_null(two.net.master), "a master that nothing reads");
    EXPECT(dtype == DTYPE_F32 || (two.plan.net.weight_bytes == two.plan.net.master_bytes + working &&
                                  two.plan.net.master_bytes == tensor_bytes(two.net.vectors)),
           "%zu bytes of weights, %zu in fp32", two.plan.net.weight_bytes, two.plan.net.master_bytes);
    EXPECT_OK(trainer_evaluate(&all, step, &expected));
    EXPECT_OK(trainer_evaluate(&two, step, &r));
    for (int i = 0; i < r.n_sums; i++) {
        EXPECT_NEAR(r.sums[i].sum, expected.sums[i].sum,
                    fixture_rounding(dtype) * (1 + fabs(expected.sums[i].sum)));
    }
    EXPECT(two.plan.net.activation_bytes < all.plan.net.activation_bytes, "%zu of %zu bytes",
           two.plan.net.activation_bytes, all.plan.net.activation_bytes);
    fixture_expect_same_answers(&viewing, &all.net, &step->micro[1], "a network on a trainer's weights");
    EXPECT(viewing.plan.weight_bytes == 0 && viewing.plan.activation_bytes == two.plan.net.activation_bytes,
           "%zu bytes of weights, %zu of activations", viewing.plan.weight_bytes,
           viewing.plan.activation_bytes);
    network_fini(&viewing);
    trainer_fini(&two);
    trainer_fini(&all);
}

/* The gradient of the residual stream lies where a post-LN layer has one of its own. */
static void wirings_take_the_same_memory(const struct batch_step *step)
{
    struct trainer_config post = trainer_of(step, DTYPE_BF16, 4, false),
                          pre = trainer_of(step, DTYPE_BF16, 4, true);
    struct trainer_plan of_post, of_pre;
    EXPECT_OK(trainer_plan(&of_post, &post));
    EXPECT_OK(trainer_plan(&of_pre, &pre));
    EXPECT(of_pre.net.activation_bytes == of_post.net.activation_bytes &&
               of_pre.net.n_params == of_post.net.n_params,
           "%zu and %zu bytes", of_pre.net.activation_bytes, of_post.net.activation_bytes);
}

int main(void)
{
    struct batch_step step;
    fixture_step(&step, 2, 8, LONGEST);
    wirings_take_the_same_memory(&step);
    for (int pre_ln = 0; pre_ln < 2; pre_ln++) {
        training_learns_in_both_precisions(&step, pre_ln == 1);
        for (int bf16 = 0; bf16 < 2; bf16++) {
            recomputation_changes_no_bit(&step, bf16 == 1 ? DTYPE_BF16 : DTYPE_F32, pre_ln == 1);
            inference_keeps_two_layers(&step, bf16 == 1 ? DTYPE_BF16 : DTYPE_F32, pre_ln == 1);
        }
    }
    nonfinite_numbers_are_named(&step);
    nonfinite_activations_are_named(&step);
    plans_refuse_what_cannot_be(&step);
    same_seed_same_weights(&step);
    dropout_masks_are_the_same_on_every_table(&step);
    batch_step_fini(&step);
    return 0;
}
