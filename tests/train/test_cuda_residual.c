/* A residual stream in fp32 beside layers in bf16 (ops.h, R): gradients of deep decoders are nearer to exact
 * ones, and the cuda table computes what the cpu's does. */
#include "checkop_backend.h"
#include "gpt_fixture.h"
#include "gpu_tests.h"

#include "dev/host_view.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>

enum { SEQUENCES = 4, LONGEST = 16, WORDS = 60, N_LAYERS = 12 };

static const struct precision narrow = {.dtype = DTYPE_BF16},
                              wide = {.dtype = DTYPE_BF16, .fp32_residual = true},
                              exact = {.dtype = DTYPE_F64};

static struct decoder_config deep(bool alibi)
{
    return (struct decoder_config){.vocab_size = 64,
                                   .n_words = WORDS,
                                   .n_positions = LONGEST,
                                   .hidden_size = 32,
                                   .n_layers = N_LAYERS,
                                   .n_heads = 1,
                                   .feed_forward_size = 48,
                                   .embedding_dropout = alibi ? 0 : 0.1,
                                   .hidden_dropout = 0.1,
                                   .attention_dropout = 0.1,
                                   .initializer_range = 0.2,
                                   .norm_eps = 1e-5,
                                   .activation = LAYER_GELU_TANH,
                                   .positions = alibi ? LAYER_POSITIONS_ALIBI : LAYER_POSITIONS_OF_INPUT,
                                   .embedding_norm = alibi};
}

/* Qwen 3's and OLMo 2's. */
static struct decoder_config deep_normed(enum layer_qk_norm norm)
{
    static const struct llama_kind kind = {.model_type = "qwen3"};
    struct decoder_config c = deep(false);
    c.embedding_dropout = 0;
    c.n_heads = 4, c.n_kv_heads = 2, c.head_size = 8;
    c.norm = LAYER_NORM_RMS, c.activation = LAYER_SWIGLU;
    c.positions = LAYER_POSITIONS_ROTARY, c.rotary = (struct rotary){.theta = 50, .size = 8};
    c.qk_norm = norm;
    c.llama = &kind;
    return c;
}

/* Pythia's, whose sublayers are parallel. */
static struct decoder_config deep_parallel(void)
{
    struct decoder_config c = deep(false);
    c.n_heads = 4;
    c.positions = LAYER_POSITIONS_ROTARY, c.rotary = (struct rotary){.theta = 50, .size = 2};
    c.is_parallel = c.own_decoder = true;
    return c;
}

/* Of all parameters, n of them. */
static double *gradients(const struct decoder_config *c, const struct batch_step *step,
                         struct checkop_backend backend, struct precision precision, int64_t *n)
{
    struct model *model = fixture_decoder(c);
    struct trainer_config config = {.net = {.model = model,
                                            .device = backend.device,
                                            .ops = backend.ops,
                                            .precision = precision,
                                            .limits = step->micro[0].limits,
                                            .learns = true},
                                    .optimizer = optimizer_defaults(&optimizer_adamw),
                                    .seed = 5};
    struct trainer t;
    struct trainer_result r;
    struct host_view v;
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(trainer_gradients(&t, step, 1, &r));
    EXPECT_OK(host_view_open(&v, &t.net.x, t.grad));
    *n = t.net.params.n_elements;
    double *all = calloc((size_t)*n, sizeof *all);
    EXPECT(all != NULL, "out of memory");
    for (int64_t i = 0; i < *n; i++) {
        all[i] = tensor_get(v.host, i);
    }
    host_view_close(&v);
    trainer_fini(&t);
    free(model);
    return all;
}

/* Of a to b, relative to b; frees a. */
static double distance(double *a, const double *b, int64_t n)
{
    double square = 0, of_b = 0;
    for (int64_t i = 0; i < n; i++) {
        square += (a[i] - b[i]) * (a[i] - b[i]);
        of_b += b[i] * b[i];
    }
    free(a);
    return sqrt(square / of_b);
}

/* With a stream in fp32 the gradients differ from exact ones by `most` of what they do in bf16. */
static void check(const char *name, struct decoder_config c, double most)
{
    struct checkop_backend ref = {&ops_ref, &device_cpu}, cpu = {ops_cpu(), &device_cpu},
                           cuda = checkop_find_backend("cuda");
    struct batch_step step;
    int64_t n;
    fixture_texts(&step, 2, SEQUENCES, LONGEST, WORDS);
    double *wanted = gradients(&c, &step, ref, exact, &n);
    double with_narrow = distance(gradients(&c, &step, cpu, narrow, &n), wanted, n);
    double with_wide = distance(gradients(&c, &step, cpu, wide, &n), wanted, n);
    double on_cuda = distance(gradients(&c, &step, cuda, wide, &n), wanted, n);
    printf("%s: gradients differ from exact ones by %.4f with a residual stream in bf16, by %.4f in fp32; "
           "%.4f on %s\n",
           name, with_narrow, with_wide, on_cuda, cuda.device->name);
    EXPECT(with_wide < most * with_narrow, "a wider stream is hardly more exact");
    EXPECT(on_cuda < most * with_narrow, "not so on %s", cuda.device->name);
    free(wanted);
    batch_step_fini(&step);
}

int test_cuda_residual(void)
{
    check("GPT-2", deep(false), 0.9);
    check("BLOOM", deep(true), 0.9);
    check("Pythia", deep_parallel(), 0.9);
    /* norms of queries and keys are of products in bf16, whatever the stream is */
    check("Qwen 3", deep_normed(LAYER_QK_NORM_HEADS), 1.1);
    check("OLMo 2", deep_normed(LAYER_QK_NORM_ALL), 1.1);
    return 0;
}
