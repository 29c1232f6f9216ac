/* Two steps of LAMB on the cuda table beside the cpu's, at the sizes of a real model: losses, the gradient's
 * norm, and of every parameter the first moment, in which gradients stand as they are, and of matrices what
 * they changed by.
 *
 *   test_cuda_large                        of a small model
 *   test_cuda_large 24 1024 16 128 [bf16]  layers, hidden size, sequences, tokens: BERT-Large, in fp32 and
 *   bf16 or one of both
 * */
#include "checkop_backend.h"
#include "core/clock.h"
#include "core/rng.h"
#include "data/text_batch.h"
#include "gpu_tests.h"
#include "nn/bert/bert_model.h"
#include "result_mean.h"
#include "trainer_copy.h"

enum { STEPS = 2 };

/* What cuda may be off by, relative to the cpu's: both round to bf16 at the same places, but sum in another
 * order, so that some numbers round the other way. */
static const struct bounds {
    enum dtype dtype;
    double loss, norm, moment, change;
} cases[] = {
    {DTYPE_F32, 2e-5, 1e-4, 1e-4, 2e-3},
    {DTYPE_BF16, 2e-3, 1e-2, 5e-2, 0.2},
};

/* What a run came to. */
struct outcome {
    struct trainer_result results[STEPS];
    float *master, *moment;
};

static struct trainer_config config_of(const int64_t sizes[4], struct checkop_backend b, enum dtype dtype)
{
    int64_t length = sizes[3], n_masked = length * 15 / 100 + 1;
    const struct bert_config model = {.vocab_size = sizes[1] < 768 ? 300 : 30522,
                                      .hidden_size = sizes[1],
                                      .num_hidden_layers = sizes[0],
                                      .num_attention_heads = sizes[1] / 64,
                                      .intermediate_size = 4 * sizes[1],
                                      .max_position_embeddings = length,
                                      .type_vocab_size = 2,
                                      .hidden_dropout_prob = 0.1,
                                      .attention_probs_dropout_prob = 0.1,
                                      .initializer_range = 0.02,
                                      .layer_norm_eps = 1e-12};
    static struct bert_model bert; /* of the latest sizes */
    bert = bert_model(&model, MODEL_TASK_PRETRAINING);
    return (struct trainer_config){
        .net =
            {
                .model = &bert.blocks.model,
                .device = b.device,
                .ops = b.ops,
                .precision = {.dtype = dtype},
                .limits = text_batch_limits(sizes[2], length, n_masked),
                .learns = true,
            },
        .optimizer = optimizer_defaults(&optimizer_lamb),
        .seed = 3,
    };
}

/* Random words; every fourth sequence is half as long. */
static void make_step(struct batch_step *step, const struct trainer_config *c, const int64_t sizes[4])
{
    struct rng_stream r = rng_stream(rng_key(7, 7));
    int64_t n_words = ((const struct bert_model *)c->net.model)->config.vocab_size;
    EXPECT_OK(batch_step_init(step, 1, &text_batch_layout, c->net.limits));
    struct batch *b = step->micro;
    for (int64_t i = 0; i < sizes[2]; i++) {
        int64_t n = i % 4 == 3 ? sizes[3] / 2 : sizes[3], m = 0;
        int32_t *ids = text_batch_add(b, n, n / 2, (int32_t)(i % 2), (int32_t)i);
        for (int64_t k = 0; k < n; k++) {
            ids[k] = (int32_t)rng_below(&r, (uint32_t)n_words);
        }
        for (int64_t k = 1; k < n; k += 7) {
            text_batch_masked_positions(b)[m] = (int32_t)k;
            text_batch_masked_labels(b)[m++] = (int32_t)rng_below(&r, (uint32_t)n_words);
        }
        text_batch_take_masked(b, m);
    }
    batch_finish(b, 0);
    batch_step_count(step);
}

static void train(struct outcome *o, struct trainer *t, const int64_t sizes[4], const char *where)
{
    struct batch_step step;
    int64_t start = clock_ns();
    make_step(&step, &t->config, sizes);
    for (int64_t i = 0; i < STEPS; i++) {
        EXPECT_OK(trainer_step(t, &step, i + 1, i + 1, 1e-3, &o->results[i]));
    }
    o->master = copy_of(t, t->net.master);
    o->moment = copy_of(t, t->exp_avg);
    printf("%s: %.1f s\n", where, clock_since_s(start)); /* time: it is printed */
    batch_step_fini(&step);
}

static double squared(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (b == NULL ? 0 : (double)b[i]);
        sum += d * d;
    }
    return sum;
}

static double relative(double got, double wanted)
{
    return fabs(got - wanted) / fabs(wanted);
}

/* How far a parameter's numbers are from the cpu's, relative to their norm; a thousandth of all parameters'
 * norm counts too, since some gradients, as that of the bias of keys, are nothing but rounding. */
static double off_by(const float *got, const float *wanted, const float *from, const struct param *p,
                     double all)
{
    int64_t n = param_count(p);
    from = from == NULL ? NULL : from + p->offset;
    double size = sqrt(squared(wanted + p->offset, from, n)) + 1e-3 * all;
    return sqrt(squared(got + p->offset, wanted + p->offset, n)) / size;
}

static int compare(const struct outcome *cpu, const struct outcome *cuda, const float *initial,
                   const struct param_table *params, const struct bounds *c)
{
    int wrong = 0;
    for (int i = 0; i < STEPS; i++) {
        const struct trainer_result *a = &cuda->results[i], *b = &cpu->results[i];
        double loss = relative(result_mean(a, "mlm_loss") + result_mean(a, "nsp_loss"),
                               result_mean(b, "mlm_loss") + result_mean(b, "nsp_loss"));
        double norm = relative(a->grad_norm, b->grad_norm);
        printf("step %d: loss %.6f + %.6f, cpu %.6f + %.6f (off by %.1e of %.0e); norm %.5f, cpu %.5f (%.1e "
               "of %.0e)\n",
               i + 1, result_mean(a, "mlm_loss"), result_mean(a, "nsp_loss"), result_mean(b, "mlm_loss"),
               result_mean(b, "nsp_loss"), loss, c->loss, a->grad_norm, b->grad_norm, norm, c->norm);
        wrong += !(loss <= c->loss) + !(norm <= c->norm);
    }
    double moments = sqrt(squared(cpu->moment, NULL, params->n_elements)), moment = 0, change = 0;
    double changes = sqrt(squared(cpu->master, initial, params->n_elements));
    const char *worst_moment = "", *worst_change = "";
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->params[i];
        double m = off_by(cuda->moment, cpu->moment, NULL, p, moments);
        double w = p->n_dims < 2 ? 0 : off_by(cuda->master, cpu->master, initial, p, changes);
        worst_moment = m > moment || isnan(m) ? p->name : worst_moment;
        worst_change = w > change || isnan(w) ? p->name : worst_change;
        moment = fmax(moment, m);
        change = fmax(change, w);
        wrong += !(m <= c->moment) + !(w <= c->change);
        if (!(m <= c->moment) || !(w <= c->change)) {
            printf("%s: moment off by %.2e, change by %.2e\n", p->name, m, w);
        }
    }
    printf("at most: moment %.1e of %.0e (%s), change %.1e of %.0e (%s)\n", moment, c->moment, worst_moment,
           change, c->change, worst_change);
    return wrong;
}

static int test(const int64_t sizes[4], const struct bounds *c)
{
    struct checkop_backend host = {ops_cpu(), &device_cpu}, gpu = checkop_find_backend("cuda");
    struct outcome cpu, cuda;
    struct trainer t;
    struct trainer_config config = config_of(sizes, host, c->dtype);
    printf("%s, %lld layers of %lld, %lld sequences of %lld\n", dtype_name(c->dtype), (long long)sizes[0],
           (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    EXPECT_OK(trainer_init(&t, &config));
    float *initial = copy_of(&t, t.net.master);
    train(&cpu, &t, sizes, "cpu");
    trainer_fini(&t);
    config = config_of(sizes, gpu, c->dtype);
    EXPECT_OK(trainer_init(&t, &config));
    train(&cuda, &t, sizes, gpu.device->name);
    int wrong = compare(&cpu, &cuda, initial, &t.net.params, c);
    trainer_fini(&t);
    float *const copies[] = {initial, cpu.master, cpu.moment, cuda.master, cuda.moment};
    for (int i = 0; i < 5; i++) {
        free(copies[i]);
    }
    return wrong;
}

int test_cuda_large(int argc, char **argv)
{
    int64_t sizes[4] = {2, 64, 2, 24};
    int wrong = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc && i <= 4; i++) {
        sizes[i - 1] = atoll(argv[i]);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc <= 5 || strcmp(argv[5], dtype_name(cases[i].dtype)) == 0) {
            wrong += test(sizes, &cases[i]);
        }
    }
    EXPECT(wrong == 0, "%d numbers are off by more than their bounds", wrong);
    return 0;
}
