/* Two steps of each optimizer on four weights, worked by hand in double precision from the equations of
 * ops.h: w = [0.5, -1, 2, 0.25], lr 0.01, gradients [0.3, -0.4, 1.2, 0] and [-0.1, 0.2, 0.4, -0.8], moments
 * from zero, betas (0.9, 0.999), eps 1e-6. */
#include "ops/ops.h"
#include "optim/optimizer.h"
#include "test.h"

enum { N = 4, STEPS = 2 };

static const double start[N] = {0.5, -1, 2, 0.25};
static const double gradients[STEPS][N] = {{0.3, -0.4, 1.2, 0}, {-0.1, 0.2, 0.4, -0.8}};

static const struct vector {
    const char *name;
    const struct optimizer_kind *kind;
    bool corrected;
    double decay, max_norm;
    double want[STEPS][N];
} vectors[] = {
    {"lamb, decay 0.01, clipped to 1",
     &optimizer_lamb,
     true,
     0.01,
     1,
     {{0.486780710, -0.986714928, 1.986583363, 0.249967116},
      {0.480838673, -0.983668934, 1.969496656, 0.263583813}}},
    {"lamb, no decay",
     &optimizer_lamb,
     true,
     0,
     1,
     {{0.490000043, -0.990000032, 1.990000011, 0.25}, {0.486812380, -0.988439698, 1.980892363, 0.257441355}}},
    {"adamw, uncorrected, no decay",
     &optimizer_adamw,
     false,
     0,
     0,
     {{0.468380556, -0.968379723, 1.968378057, 0.25}, {0.451374603, -0.957062287, 1.931362321, 0.281621527}}},
    {"adamw, corrected, decay 0.1",
     &optimizer_adamw,
     true,
     0.1,
     0,
     {{0.489501054, -0.989000791, 1.988000264, 0.24975},
      {0.485009768, -0.985348608, 1.977301842, 0.256941324}}},
};

static void step(struct exec *x, const struct ops *o, const struct vector *v, struct optim_buffers b, int t)
{
    struct optim_span span = {.n = N, .weight_decay = v->decay, .n_chunks = 1};
    double norm = 0, squares = 0, sums[4],
           scalars[OPTIM_N_SCALARS] = {
               [OPTIM_LR] = 0.01,
               [OPTIM_BETA1] = 0.9,
               [OPTIM_BETA2] = 0.999,
               [OPTIM_EPS] = 1e-6,
               [OPTIM_CORRECTION1] = v->corrected ? 1 - pow(0.9, t + 1) : 1,
               [OPTIM_CORRECTION2] = v->corrected ? 1 - pow(0.999, t + 1) : 1,
               [OPTIM_MAX_NORM] = v->max_norm,
               [OPTIM_GRAD_SCALE] = 1,
           };
    tensor norm_t = tensor_1d(&norm, DTYPE_F64, 1),
           scalars_t = tensor_1d(scalars, DTYPE_F64, OPTIM_N_SCALARS);
    for (int i = 0; i < N; i++) {
        tensor_set(b.grad, i, gradients[t][i]);
    }
    tensor sums_t = v->kind->n_sums > 0 ? tensor_2d(sums, DTYPE_F64, 1, v->kind->n_sums) : NULL_TENSOR;
    struct optimizer_step s = {.buffers = b,
                               .spans = &span,
                               .n_spans = 1,
                               .squares = tensor_1d(&squares, DTYPE_F64, 1),
                               .sums = sums_t,
                               .own_sums = sums_t,
                               .norm = norm_t,
                               .scalars = scalars_t};
    o->squares(x, s.squares, b.grad, &span, 1);
    o->norm_of(x, norm_t, s.squares);
    if (v->kind->n_sums > 0) {
        v->kind->direction(x, &s);
    }
    v->kind->apply(x, &s);
}

static void check(const struct ops *o, enum dtype dtype, double bound, const struct vector *v)
{
    double memory[4][N] = {{0}}, workspace[1];
    struct exec x = {.device = &device_cpu, .ops = o, .layer_index = -1};
    x.workspace = workspace;
    x.workspace_bytes = sizeof workspace;
    struct optim_buffers b = {tensor_1d(memory[0], dtype, N), NULL_TENSOR, tensor_1d(memory[1], dtype, N),
                              tensor_1d(memory[2], dtype, N), tensor_1d(memory[3], dtype, N)};
    for (int i = 0; i < N; i++) {
        tensor_set(b.master, i, start[i]);
    }
    for (int t = 0; t < STEPS; t++) {
        step(&x, o, v, b, t);
        EXPECT_OK(x.status);
        for (int i = 0; i < N; i++) {
            double w = tensor_get(b.master, i);
            EXPECT(fabs(w - v->want[t][i]) <= bound, "%s of %s: weight %d is %.9f after step %d, not %.9f",
                   v->name, o->name, i, w, t + 1, v->want[t][i]);
        }
    }
}

/* The names of the flag are those of the rows. */
static void every_name_has_a_row(void)
{
    char names[] = OPTIMIZER_NAMES;
    int n = 0;
    for (char *name = strtok(names, "|"); name != NULL; name = strtok(NULL, "|"), n++) {
        const struct optimizer_kind *kind = optimizer_find(name);
        EXPECT(kind != NULL && strcmp(kind->name, name) == 0, "no row %s", name);
        EXPECT((kind->n_sums > 0) == (kind->direction != NULL), "%s: %d sums of what direction?", name,
               kind->n_sums);
    }
    EXPECT(n == 2 && optimizer_find("sgd") == NULL, "%d names", n);
}

int main(void)
{
    every_name_has_a_row();
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        check(&ops_ref, DTYPE_F64, 1e-8, &vectors[i]);
        check(ops_cpu(), DTYPE_F32, 1e-6, &vectors[i]);
    }
    return 0;
}
