/* The cuda table as a whole: a few steps of both optimizers give the losses of the cpu table, with the same
 * dropout masks; in fp16, with a loss that is not scaled, and in TF32 they stay beside those of the cpu's
 * fp32; in fp8, beside the cpu's, which keeps the same numbers in bf16. */
#include "bert_fixture.h"
#include "checkop_backend.h"
#include "dev/precision.h"
#include "gpu_tests.h"
#include "result_mean.h"

/* In fp8 the losses of both tables are 0.1 % apart before the first update, up to 0.8 % after one, and up to
 * 2.4 % after two (lamb, pre-LN). */
enum { LONGEST = 14, STEPS = 3, STEPS_IN_FP8 = 2 };

static bool pre_ln; /* the wiring of all models here */

/* AdamW's first steps divide each gradient by about its own magnitude, so one near zero, which is noise in
 * bf16, moves its weight by a whole step in a direction that noise decides.  With pre-LN layers and eps =
 * 1e-6 the loss of the cpu in bf16 is 2.5 % from its own in fp32 after three steps; gradients below this
 * eps move weights less, and it is 0.03 %. */
static const double PRE_LN_ADAMW_EPS = 1e-3;

static double loss_of(const struct batch_step *step, struct checkop_backend backend,
                      struct precision precision, const struct optimizer_kind *kind)
{
    struct trainer t;
    struct trainer_result r;
    struct trainer_config config = fixture_trainer(ops_cpu(), precision.dtype, step->micro[0].limits);
    config.net.precision = precision;
    config.optimizer = optimizer_defaults(kind);
    if (pre_ln && kind == &optimizer_adamw) {
        config.optimizer.eps = PRE_LN_ADAMW_EPS;
    }
    struct bert_model *bert = fixture_bert(&config);
    bert->config.hidden_dropout_prob = bert->config.attention_probs_dropout_prob = 0.2;
    bert->config.hidden_size = 32; /* a head of 32 columns goes through matrix instructions */
    bert->config.num_attention_heads = 1;
    bert->config.intermediate_size = 48; /* as products in fp8 want it */
    bert->config.layer_norm_large_model = pre_ln;
    fixture_bert_changed(bert);
    config.scale_rule.fixed = 1;
    config.net.device = backend.device;
    config.net.ops = backend.ops;
    EXPECT_OK(trainer_init(&t, &config));
    for (int64_t i = 1; i <= (precision.fp8 ? STEPS_IN_FP8 : STEPS); i++) {
        EXPECT_OK(trainer_step(&t, step, i, i, 1e-2, &r));
    }
    trainer_fini(&t);
    return result_mean(&r, "mlm_loss") + result_mean(&r, "nsp_loss");
}

/* What the loss of the cuda table may be off by, relative to the cpu's. */
static const struct bounds {
    struct precision cuda, cpu;
    double bound;
} cases[] = {
    {{.dtype = DTYPE_F32}, {.dtype = DTYPE_F32}, 2e-5},
    {{.dtype = DTYPE_BF16}, {.dtype = DTYPE_BF16}, 1e-2},
    {{.dtype = DTYPE_F16}, {.dtype = DTYPE_F32}, 5e-3},
    {{.dtype = DTYPE_F32, .allow_tf32 = true}, {.dtype = DTYPE_F32}, 5e-3},
    {{.dtype = DTYPE_BF16, .fp8 = true}, {.dtype = DTYPE_BF16, .fp8 = true}, 2e-2},
};

static void compare_cases(const struct batch_step *step, struct checkop_backend host,
                          struct checkop_backend gpu)
{
    double exact[2] = {0}; /* by kind: fp32 */
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const struct bounds *c = &cases[i / 2];
        const struct optimizer_kind *kind = i % 2 == 0 ? &optimizer_lamb : &optimizer_adamw;
        double cpu = loss_of(step, host, c->cpu, kind), cuda = loss_of(step, gpu, c->cuda, kind);
        printf("%s, %s-LN: loss %.6f in %s on the cpu, %.6f in %s on %s\n", kind->name,
               pre_ln ? "pre" : "post", cpu, precision_name(c->cpu), cuda, precision_name(c->cuda),
               gpu.device->name);
        EXPECT_NEAR(cuda, cpu, c->bound * cpu);
        exact[i % 2] = c == cases ? cuda : exact[i % 2];
        bool may_leave_it =
            strcmp(gpu.device->name, "emulated cuda") != 0; /* a GPU's library, for small sizes */
        EXPECT(!c->cuda.allow_tf32 || may_leave_it || cuda != exact[i % 2], "TF32 was not used");
    }
}

int test_cuda_training(void)
{
    struct batch_step step;
    struct checkop_backend host = {ops_cpu(), &device_cpu}, gpu = checkop_find_backend("cuda");
    fixture_step(&step, 2, 4, LONGEST);
    for (int i = 0; i < 2; i++) {
        pre_ln = i == 1;
        compare_cases(&step, host, gpu);
    }
    batch_step_fini(&step);
    return 0;
}
