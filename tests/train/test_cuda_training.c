/* The cuda table as a whole: a few steps of both optimizers give the losses of the cpu table, with the same
 * dropout masks. Linked twice: with the library for a GPU, and with the kernels emulated on the cpu. */
#include "../model/bert_fixture.h"
#include "checkop_backend.h"

enum { LONGEST = 14, STEPS = 3 };

static double loss_of(const struct bert_step *step, struct checkop_backend backend, enum dtype dtype,
                      enum optimizer_kind kind)
{
    struct trainer t;
    struct trainer_result r;
    struct trainer_config config = fixture_trainer(ops_cpu(), dtype, step->micro[0].limits);
    config.optimizer = optimizer_defaults(kind);
    config.model.hidden_dropout_prob = config.model.attention_probs_dropout_prob = 0.2;
    config.device = backend.device;
    config.ops = backend.ops;
    EXPECT_OK(trainer_init(&t, &config));
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(&t, step, i, i, 1e-2, false, &r));
    }
    trainer_fini(&t);
    return r.mlm_loss + r.nsp_loss;
}

int main(void)
{
    struct bert_step step;
    struct checkop_backend host = {ops_cpu(), &device_cpu}, gpu = checkop_find_backend("cuda");
    fixture_step(&step, 2, 4, LONGEST);
    for (int i = 0; i < 4; i++) {
        enum dtype dtype = i / 2 == 0 ? DTYPE_F32 : DTYPE_BF16;
        enum optimizer_kind kind = i % 2 == 0 ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW;
        double cpu = loss_of(&step, host, dtype, kind), cuda = loss_of(&step, gpu, dtype, kind);
        printf("%s, %s: loss %.6f on the cpu, %.6f on %s\n", dtype_name(dtype), optimizer_name(kind), cpu,
               cuda, gpu.device->name);
        EXPECT_NEAR(cuda, cpu, dtype == DTYPE_F32 ? 2e-5 * cpu : 1e-2 * cpu);
    }
    bert_step_fini(&step);
    return 0;
}
