/* Plain ops: a trainer in which all ops are plain has the bits of the reference table, on the cpu and on a
 * device whose memory the host may not touch; any single op can be plain, and then a step is the kernels'
 * within rounding; wrong names are refused. */
#define _GNU_SOURCE
#include "bert_fixture.h"
#include "fenced_device.h"

#include "dev/host_view.h"
#include "ops/plain_ops.h"

enum { LONGEST = 14, SEQUENCES = 3, STEPS = 2 };

/* The weights after some steps, which the caller frees, and the last result. */
static float *train(struct backend backend, const char *plain, enum dtype dtype,
                    const struct optimizer_kind *kind, struct trainer_result *r, int64_t *n_calls)
{
    static struct plain_ops table;
    struct batch_step step;
    struct trainer t;
    struct host_view weights;
    fixture_step(&step, 2, SEQUENCES, LONGEST);
    EXPECT_OK(plain_ops_init(&table, &backend, plain));
    struct trainer_config config = fixture_trainer(backend.ops, dtype, step.micro[0].limits);
    config.net.device = backend.device;
    config.optimizer = optimizer_defaults(kind);
    EXPECT_OK(trainer_init(&t, &config));
    int64_t before = fenced.n_copies;
    for (int64_t i = 1; i <= STEPS; i++) {
        EXPECT_OK(trainer_step(&t, &step, i, i, 1e-2, r));
    }
    *n_calls = fenced.n_copies - before;
    EXPECT_OK(host_view_open(&weights, &t.net.x, t.net.master));
    float *copy = malloc(tensor_bytes(t.net.master));
    memcpy(copy, weights.host.data, tensor_bytes(t.net.master));
    host_view_close(&weights);
    trainer_fini(&t);
    batch_step_fini(&step);
    return copy;
}

/* Elements of the flat buffer are in the order of the parameters, with gaps of 0. */
static int64_t n_weights(void)
{
    struct batch_step step;
    struct trainer_plan plan;
    struct trainer t;
    fixture_step(&step, 2, SEQUENCES, LONGEST);
    struct trainer_config config = fixture_trainer(ops_cpu(), DTYPE_F32, step.micro[0].limits);
    EXPECT_OK(trainer_plan(&plan, &config));
    EXPECT_OK(trainer_init(&t, &config));
    int64_t n = t.net.params.n_elements;
    trainer_fini(&t);
    batch_step_fini(&step);
    return n;
}

static void all_are_the_reference(enum dtype dtype, const struct optimizer_kind *kind)
{
    struct trainer_result wanted, on_cpu, on_device;
    int64_t calls, copies, bytes = n_weights() * (int64_t)sizeof(float);
    float *a = train((struct backend){&device_cpu, &ops_ref}, NULL, dtype, kind, &wanted, &calls);
    float *b = train((struct backend){&device_cpu, ops_cpu()}, "all", dtype, kind, &on_cpu, &calls);
    float *c = train((struct backend){&device_fenced, &ops_fenced}, "all", dtype, kind, &on_device, &copies);
    EXPECT(memcmp(a, b, (size_t)bytes) == 0, "%s in %s: other weights on the cpu", kind->name,
           dtype_name(dtype));
    EXPECT(memcmp(a, c, (size_t)bytes) == 0, "%s in %s: other weights on a device", kind->name,
           dtype_name(dtype));
    EXPECT(trainer_result_loss(&wanted) == trainer_result_loss(&on_device), "another loss");
    EXPECT(calls == 0 && copies > 1000, "%lld copies on the cpu, %lld on a device", (long long)calls,
           (long long)copies);
    free(a);
    free(b);
    free(c);
}

/* The first step is that of the kernels within rounding, whichever op is plain; at least one result differs
 * in its last bits, so the definitions were asked. */
static void each_can_be_plain(void)
{
    struct trainer_result wanted, r;
    int64_t copies;
    int n_other = 0;
    free(train((struct backend){&device_cpu, ops_cpu()}, NULL, DTYPE_F32, &optimizer_lamb, &wanted, &copies));
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        free(train((struct backend){&device_cpu, ops_cpu()}, op_watch_name(i), DTYPE_F32, &optimizer_lamb, &r,
                   &copies));
        EXPECT_NEAR(trainer_result_loss(&r), trainer_result_loss(&wanted), 1e-4);
        EXPECT_NEAR(r.grad_norm, wanted.grad_norm, 1e-3 * wanted.grad_norm);
        n_other += trainer_result_loss(&r) != trainer_result_loss(&wanted);
        free(train((struct backend){&device_fenced, &ops_fenced}, op_watch_name(i), DTYPE_F32,
                   &optimizer_lamb, &r, &copies));
        EXPECT_NEAR(trainer_result_loss(&r), trainer_result_loss(&wanted), 1e-4);
    }
    EXPECT(n_other >= 5, "only %d ops computed anything else", n_other);
}

static void lists_are_checked(void)
{
    struct plain_ops table;
    struct backend b = {&device_cpu, ops_cpu()};
    EXPECT_OK(plain_ops_check(NULL));
    EXPECT_OK(plain_ops_check("all"));
    EXPECT_OK(plain_ops_check("linear_gelu,attention"));
    EXPECT_ERROR(plain_ops_check(""), STATUS_USAGE, "there is no op ''");
    EXPECT_ERROR(plain_ops_check("attention,"), STATUS_USAGE, "there is no op ''");
    EXPECT_ERROR(plain_ops_check("attention,gelu"), STATUS_USAGE, "there is no op 'gelu'");
    EXPECT_ERROR(plain_ops_check("linear_gelus"), STATUS_USAGE, "linear_gelus");
    EXPECT_ERROR(plain_ops_check("allx"), STATUS_USAGE, "allx");
    EXPECT_ERROR(plain_ops_init(&table, &b, "linea"), STATUS_USAGE, "linea");
    EXPECT_OK(plain_ops_init(&table, &b, "linear"));
    EXPECT(b.ops->linear != ops_cpu()->linear && b.ops->linear_gelu == ops_cpu()->linear_gelu,
           "other ops are plain than were named");
}

/* A factor in fp8 has more to it than its elements. */
static void fp8_is_refused(void)
{
    float numbers[16] = {0};
    static struct plain_ops table;
    struct backend b = {&device_fenced, &ops_fenced};
    EXPECT_OK(plain_ops_init(&table, &b, "cast"));
    struct exec x = {.device = b.device, .ops = b.ops};
    EXPECT_OK(b.device->open(&x.context));
    x.ops->cast(&x, tensor_1d(numbers, DTYPE_F32, 16), tensor_1d(numbers, DTYPE_E4M3, 16));
    EXPECT_ERROR(x.status, STATUS_USAGE, "--plain_ops cannot compute an op in fp8 on fenced");
    b.device->close(x.context);
}

int main(void)
{
    all_are_the_reference(DTYPE_F32, &optimizer_lamb);
    all_are_the_reference(DTYPE_BF16, &optimizer_lans);
    all_are_the_reference(DTYPE_F32, &optimizer_adamw);
    each_can_be_plain();
    lists_are_checked();
    fp8_is_refused();
    puts("test_plain_ops: any op can be its definition");
    return 0;
}
