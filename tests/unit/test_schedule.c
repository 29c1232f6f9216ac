/* The learning rates of the replaced pre-training recipe, and the worked vectors of the optimizers' arithmetic
 * (docs/math/optimizers.md) on the reference ops. */
#include "test.h"

#include "optim/optimizer.h"
#include "optim/schedule.h"

static void poly_schedule_has_its_published_rates(void)
{
    struct schedule phase1 = {SCHEDULE_POLY, 6e-3, 0.2843, 0.5, 7038};
    EXPECT_NEAR(schedule_rate(&phase1, 2000), 0.0059973, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase1, 2001), 0.0050759, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase1, 7038), 0, 0);
    struct schedule phase2 = {SCHEDULE_POLY, 4e-3, 0.128, 0.5, 1563};
    EXPECT_NEAR(schedule_rate(&phase2, 200), 0.0039987, 5e-8);
    EXPECT_NEAR(schedule_rate(&phase2, 201), 0.0037340, 5e-8);
}

static void linear_schedule_is_continuous(void)
{
    struct schedule s = {SCHEDULE_LINEAR, 1.0, 0.1, 0, 100};
    EXPECT_NEAR(schedule_rate(&s, 5), 0.5, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 10), 1.0, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 55), 0.5, 1e-12);
    EXPECT_NEAR(schedule_rate(&s, 100), 0.0, 1e-12);
}

struct vector_case {
    const char *name;
    enum optimizer_kind kind;
    double weight_decay;
    bool bias_correction;
    double max_grad_norm;
    double wanted[2][4];
};

static const struct vector_case cases[] = {
    {"lamb, decay",
     OPTIMIZER_LAMB,
     0.01,
     true,
     1.0,
     {{0.486780710, -0.986714928, 1.986583363, 0.249967116},
      {0.480838673, -0.983668934, 1.969496656, 0.263583813}}},
    {"lamb, no decay",
     OPTIMIZER_LAMB,
     0,
     true,
     1.0,
     {{0.490000043, -0.990000032, 1.990000011, 0.25}, {0.486812380, -0.988439698, 1.980892363, 0.257441355}}},
    {"adamw, uncorrected",
     OPTIMIZER_ADAMW,
     0,
     false,
     0,
     {{0.468380556, -0.968379723, 1.968378057, 0.25}, {0.451374603, -0.957062287, 1.931362321, 0.281621527}}},
    {"adamw, decay",
     OPTIMIZER_ADAMW,
     0.1,
     true,
     0,
     {{0.489501054, -0.989000791, 1.988000264, 0.24975},
      {0.485009768, -0.985348608, 1.977301842, 0.256941324}}},
};

static void check_vectors(const struct vector_case *c)
{
    static const double gradients[2][4] = {{0.3, -0.4, 1.2, 0}, {-0.1, 0.2, 0.4, -0.8}};
    double w[4] = {0.5, -1, 2, 0.25}, g[4], m[4] = {0}, v[4] = {0}, norm, scalars[OPTIM_N_SCALARS];
    struct optim_buffers b = {
        .master = tensor_1d(w, DTYPE_F64, 4),
        .grad = tensor_1d(g, DTYPE_F64, 4),
        .exp_avg = tensor_1d(m, DTYPE_F64, 4),
        .exp_avg_sq = tensor_1d(v, DTYPE_F64, 4),
    };
    struct optimizer o = optimizer_defaults(c->kind);
    o.max_grad_norm = c->max_grad_norm;
    o.bias_correction = c->bias_correction;
    struct optim_span span = {0, 4, c->weight_decay};
    struct exec x = {.device = &device_cpu, .ops = &ops_ref};
    tensor norm_t = tensor_1d(&norm, DTYPE_F64, 1),
           scalars_t = tensor_1d(scalars, DTYPE_F64, OPTIM_N_SCALARS);
    for (int t = 0; t < 2; t++) {
        memcpy(g, gradients[t], sizeof g);
        optimizer_scalars(&o, 0.01, t + 1, scalars);
        ops_ref.global_norm(&x, norm_t, b.grad, &span, 1);
        optimizer_update(&x, &o, b, &span, 1, norm_t, scalars_t);
        EXPECT_OK(x.status);
        for (int i = 0; i < 4; i++) {
            EXPECT(fabs(w[i] - c->wanted[t][i]) <= 1e-9, "%s, step %d, element %d: %.10f, wanted %.10f",
                   c->name, t + 1, i, w[i], c->wanted[t][i]);
        }
    }
}

int main(void)
{
    poly_schedule_has_its_published_rates();
    linear_schedule_is_continuous();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_vectors(&cases[i]);
    }
    return 0;
}
