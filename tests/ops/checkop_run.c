#include "checkop_run.h"

#include "checkop_backend.h"
#include "checkop_instance.h"
#include "core/clock.h"
#include "core/rng.h"
#include "ops/cpu/cpu_isa.h"
#include "test.h"

#include <math.h>
#include <omp.h>

enum { MAX_THREADS = 3 };

static struct checkop_backend tested = {.device = &device_cpu}; /* the one that a case is run on */

/* All that are tested; names that stand behind a case's title where there are several. */
static struct {
    struct checkop_backend backend;
    const char *name;
} tables[N_CPU_ISAS];
static int n_tables;

static uint64_t dropout_key;

static struct exec exec_of(const struct ops *o)
{
    dropout_key = rng_key(42, 7);
    return (struct exec){.device = o == tested.ops ? tested.device : &device_cpu,
                         .ops = o,
                         .layer = "checkop",
                         .layer_index = -1,
                         .dropout_key = &dropout_key};
}

static void expect_ran(const struct exec *x, const struct checkop_case *c)
{
    EXPECT(!failed(x->status), "%s: %s", c->title, x->status.message);
}

/* What the plan says about the call; the workspace it asks for is allocated, to the byte. */
static struct exec planned(const struct ops *o, const struct checkop_instance *in, checkop_call *call)
{
    struct exec x = exec_of(&ops_plan);
    call(in->c, &ops_plan, &x, in->t);
    expect_ran(&x, in->c);
    struct exec_totals totals = x.totals;
    x = exec_of(o);
    x.totals = totals;
    x.workspace_bytes = totals.workspace_bytes;
    EXPECT_OK(x.device->open(&x.context));
    EXPECT_OK(x.device->allocate(&x.workspace, totals.workspace_bytes + 1, "the workspace"));
    unsigned char *guard = malloc(totals.workspace_bytes + 1);
    EXPECT(guard != NULL, "no memory for the workspace");
    memset(guard, CHECKOP_GUARD, totals.workspace_bytes + 1);
    exec_copy_in(&x, x.workspace, guard, totals.workspace_bytes);
    free(guard);
    if (!x.device->is_host) {
        void *key;
        EXPECT_OK(x.device->allocate(&key, sizeof dropout_key, "the dropout key"));
        exec_copy_in(&x, key, &dropout_key, sizeof dropout_key);
        x.dropout_key = key;
    }
    return x;
}

static void end_exec(struct exec *x)
{
    x->device->release(x->workspace, x->workspace_bytes + 1);
    if (!x->device->is_host) {
        x->device->release((void *)x->dropout_key, sizeof dropout_key);
    }
    if (x->context != NULL) {
        x->device->close(x->context);
    }
}

/* What results are held against: ref on fp64 copies, or, where that takes minutes, the cpu's table on fp32
 * copies. */
static bool is_by_cpu(const struct checkop_case *c)
{
    return c->shape.by_cpu && !tested.device->is_host;
}

static void run_oracle(struct checkop_instance *exact, checkop_call *call)
{
    const struct ops *o = is_by_cpu(exact->c) ? ops_cpu() : &ops_ref;
    struct exec x = exec_of(&ops_ref); /* which needs no workspace, and takes fp8 beside fp64 */
    if (is_by_cpu(exact->c)) {
        x = planned(o, exact, call);
    }
    call(exact->c, o, &x, exact->t);
    expect_ran(&x, exact->c);
    if (is_by_cpu(exact->c)) {
        end_exec(&x);
    }
}

/* Inputs that the forward produces: by the oracle, then rounded like all others. */
static void fill_dependents(struct checkop_instance *exact, struct checkop_instance *rounded)
{
    const struct checkop_case *c = exact->c;
    if (c->forward == NULL) {
        return;
    }
    run_oracle(exact, c->forward);
    for (int i = 0; i < c->n_args; i++) {
        int64_t n = tensor_is_null(exact->t[i]) ? 0 : tensor_count(exact->t[i]);
#pragma omp parallel for if (n > CHECKOP_WORTH_THREADS)
        for (int64_t e = 0; e < n; e++) {
            tensor_set(rounded->t[i], e, tensor_get(exact->t[i], e));
            tensor_set(exact->t[i], e, tensor_get(rounded->t[i], e));
        }
    }
}

/* The arguments in the memory of the exec's device. */
struct on_device {
    void *memory[CHECKOP_MAX_ARGS];
    tensor t[CHECKOP_MAX_ARGS];
};

static void copy_to_device(struct on_device *d, struct exec *x, const struct checkop_instance *in)
{
    memcpy(d->t, in->t, sizeof d->t);
    for (int i = 0; i < in->c->n_args; i++) {
        d->memory[i] = NULL;
        if (in->memory[i] != NULL) {
            EXPECT_OK(x->device->allocate(&d->memory[i], in->bytes[i] + 1, in->c->args[i].name));
            exec_copy_in(x, d->memory[i], in->memory[i], in->bytes[i]);
        }
    }
    for (int i = 0; i < in->c->n_args; i++) {
        int owner = in->c->args[i].shares != 0 ? in->c->args[i].shares - 1 : i;
        d->t[i].data = d->memory[owner];
    }
    checkop_instance_scale(in->c, d->t);
}

static void copy_from_device(struct on_device *d, struct exec *x, struct checkop_instance *in)
{
    for (int i = 0; i < in->c->n_args; i++) {
        if (d->memory[i] != NULL) {
            exec_copy_out(x, in->memory[i], d->memory[i], in->bytes[i]);
            x->device->release(d->memory[i], in->bytes[i] + 1);
        }
    }
}

static void run_on(struct exec *x, struct checkop_instance *in)
{
    struct on_device d;
    if (x->device->is_host) {
        in->c->run(in->c, x->ops, x, in->t);
        return;
    }
    copy_to_device(&d, x, in);
    in->c->run(in->c, x->ops, x, d.t);
    copy_from_device(&d, x, in);
}

static bool compared(const struct checkop_arg *a)
{
    return a->role == ROLE_OUT || a->role == ROLE_INOUT;
}

/* Largest difference over the largest magnitude of the reference; infinite if one is finite and the other is
 * not.  What the reference leaves as it was, NaN, must be left so. */
static double relative_error(tensor got, tensor want, int64_t *worst)
{
    double largest = 0, error = 0;
    *worst = 0;
    for (int64_t i = 0; i < tensor_count(want); i++) {
        double w = tensor_get(want, i), g = tensor_get(got, i);
        if (isfinite(w) && isfinite(g)) {
            largest = fmax(largest, fabs(w));
            *worst = fabs(w - g) > error ? i : *worst;
            error = fmax(error, fabs(w - g));
        } else if (w != g && !(isnan(w) && isnan(g))) {
            *worst = i;
            return INFINITY;
        }
    }
    return largest > 0 ? error / largest : error;
}

static double bound_of(const struct checkop_case *c, const struct checkop_arg *a, enum dtype dtype)
{
    if (a->kind != KIND_A && a->kind != KIND_W) {
        return a->kind == KIND_F64 ? 1e-6 : 0;
    }
    double of_bf16 = a->kind == KIND_A ? c->bound_bf16_a : c->bound_bf16_w;
    double of_oracle = is_by_cpu(c) ? c->bound_fp32 : 0;
    switch (dtype) {
    case DTYPE_BF16: return of_bf16 + of_oracle;
    case DTYPE_F16: /* three bits more; sums are fp32's */
        return fmax(c->bound_fp32, of_bf16 / 8) + of_oracle;
    default: return c->bound_fp32 + of_oracle;
    }
}

static double compare(const struct checkop_instance *got, const struct checkop_instance *want,
                      enum dtype dtype)
{
    const struct checkop_case *c = got->c;
    double worst_share = 0;
    for (int i = 0; i < c->n_args; i++) {
        if (!compared(&c->args[i]) || tensor_is_null(got->t[i])) {
            continue;
        }
        int64_t at;
        double error = relative_error(got->t[i], want->t[i], &at), bound = bound_of(c, &c->args[i], dtype);
        EXPECT(error <= bound,
               "%s: %s is off by %.3g of its largest element, more than %.3g (element %lld: %g, not %g)",
               c->title, c->args[i].name, error, bound, (long long)at, tensor_get(got->t[i], at),
               tensor_get(want->t[i], at));
        worst_share = bound > 0 ? fmax(worst_share, error / bound) : worst_share;
    }
    return worst_share;
}

/* Bytes between the rows still hold the guard pattern. */
static void expect_guards(const struct checkop_instance *in)
{
    const struct checkop_case *c = in->c;
    for (int i = 0; i < c->n_args; i++) {
        size_t size = dtype_bytes(in->t[i].dtype), gap = (size_t)c->args[i].gap * size;
        size_t row = (size_t)in->t[i].strides[0] * size;
        for (size_t at = row - gap; gap > 0 && at < in->bytes[i]; at += row) {
            for (size_t b = 0; b < gap; b++) {
                EXPECT(((unsigned char *)in->memory[i])[at + b] == CHECKOP_GUARD,
                       "%s: %s was written between its rows", c->title, c->args[i].name);
            }
        }
    }
}

/* Runs a fresh copy of `inputs` on this many threads into `result`. */
static void run_copy(struct checkop_instance *result, const struct checkop_instance *inputs,
                     const struct ops *o, enum dtype dtype, int threads)
{
    const struct checkop_case *c = inputs->c;
    checkop_instance_init(result, c, dtype, dtype);
    for (int i = 0; i < c->n_args; i++) {
        if (inputs->memory[i] != NULL) {
            memcpy(result->memory[i], inputs->memory[i], inputs->bytes[i]);
        }
    }
    omp_set_num_threads(threads);
    struct exec x = planned(o, result, c->run);
    run_on(&x, result);
    expect_ran(&x, c);
    end_exec(&x);
}

static void expect_same_bits(const struct checkop_instance *a, const struct checkop_instance *b, int threads)
{
    for (int i = 0; i < a->c->n_args; i++) {
        EXPECT(a->memory[i] == NULL || memcmp(a->memory[i], b->memory[i], a->bytes[i]) == 0,
               "%s: %d threads give other bits in %s than one", a->c->title, threads, a->c->args[i].name);
    }
}

/* Holds one table against what the oracle gave, and against itself on more threads. */
static void test_table(const struct checkop_instance *inputs, const struct checkop_instance *exact,
                       enum dtype dtype)
{
    const struct checkop_case *c = inputs->c;
    struct checkop_instance first;
    run_copy(&first, inputs, tested.ops, dtype, 1);
    double share = compare(&first, exact, dtype);
    expect_guards(&first);
    int most = tested.device->is_host ? MAX_THREADS : 2; /* elsewhere: once more, for the same bits */
    for (int threads = 2; threads <= most; threads++) {
        struct checkop_instance again;
        run_copy(&again, inputs, tested.ops, dtype, threads);
        expect_same_bits(&first, &again, threads);
        checkop_instance_fini(&again);
    }
    printf("%-72s %5.1f %% of its bound\n", c->title, 100 * share);
    checkop_instance_fini(&first);
}

void checkop_test(struct checkop_case *c, enum dtype dtype)
{
    struct checkop_instance exact, inputs;
    size_t n_title = strlen(c->title);
    omp_set_num_threads(omp_get_num_procs());
    checkop_instance_init(&exact, c, dtype, is_by_cpu(c) ? DTYPE_F32 : DTYPE_F64);
    checkop_instance_init(&inputs, c, dtype, dtype);
    checkop_instance_fill(&exact, &inputs);
    fill_dependents(&exact, &inputs);
    run_oracle(&exact, c->run);
    for (int i = 0; i < n_tables; i++) {
        tested = tables[i].backend;
        snprintf(c->title + n_title, sizeof c->title - n_title, "%s%s", n_tables > 1 ? ", " : "",
                 n_tables > 1 ? tables[i].name : "");
        test_table(&inputs, &exact, dtype);
    }
    checkop_instance_fini(&inputs);
    checkop_instance_fini(&exact);
}

/* What the gradients are of: sum of seed * value after the forward. */
static double objective(struct checkop_instance *in)
{
    const struct checkop_case *c = in->c;
    struct exec x = exec_of(&ops_ref);
    c->forward(c, &ops_ref, &x, in->t);
    expect_ran(&x, c);
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(in->t[c->value]); i++) {
        sum += tensor_get(in->t[c->value], i) * (c->seed < 0 ? c->seed_value : tensor_get(in->t[c->seed], i));
    }
    return sum;
}

static double central_difference(struct checkop_instance *in, tensor input, int64_t i)
{
    const double h = 1e-5;
    double old = tensor_get(input, i);
    tensor_set(input, i, old + h);
    double above = objective(in);
    tensor_set(input, i, old - h);
    double below = objective(in);
    tensor_set(input, i, old);
    return (above - below) / (2 * h);
}

static void check_gradient(struct checkop_instance *in, int arg, const double *before)
{
    const struct checkop_case *c = in->c;
    tensor d = in->t[arg], input = in->t[c->args[arg].gradient_of - 1];
    double largest = 0, error = 0;
    for (int64_t i = 0; i < tensor_count(d); i++) {
        double added = tensor_get(d, i) - (c->args[arg].role == ROLE_INOUT ? before[i] : 0);
        double wanted = central_difference(in, input, i);
        largest = fmax(largest, fabs(wanted));
        error = fmax(error, fabs(added - wanted));
        EXPECT(isfinite(added), "%s: %s is not finite", c->title, c->args[arg].name);
    }
    double relative = largest > 0 ? error / largest : error;
    EXPECT(relative <= 1e-7, "%s: %s is off by %.3g of its largest element", c->title, c->args[arg].name,
           relative);
    printf("%-72s %-12s %.1e\n", c->title, c->args[arg].name, relative);
}

void checkop_test_gradients(const struct checkop_case *c)
{
    struct checkop_instance in, same;
    checkop_instance_init(&in, c, DTYPE_F64, DTYPE_F64);
    checkop_instance_init(&same, c, DTYPE_F64, DTYPE_F64);
    checkop_instance_fill(&in, &same);
    objective(&in); /* fills in dependent inputs */
    for (int i = 0; i < c->n_args; i++) {
        memcpy(same.memory[i], in.memory[i], in.bytes[i]);
    }
    struct exec x = exec_of(&ops_ref);
    c->run(c, &ops_ref, &x, in.t);
    expect_ran(&x, c);
    for (int i = 0; i < c->n_args; i++) {
        if (c->args[i].gradient_of != 0) {
            check_gradient(&in, i, same.t[i].data);
        }
    }
    checkop_instance_fini(&same);
    checkop_instance_fini(&in);
}

void checkop_bench(const struct checkop_case *c, enum dtype dtype)
{
    const struct ops *o = tested.ops;
    struct checkop_instance in, work;
    checkop_instance_init(&in, c, dtype, dtype);
    for (int i = 0; i < c->n_args; i++) {
        if (!tensor_is_null(in.t[i])) {
            checkop_instance_fill_arg(c, i, in.t[i]);
        }
    }
    run_copy(&work, &in, o, dtype, omp_get_max_threads());
    struct exec x = planned(o, &work, c->run);
    double best = 1e9, spent = 0;
    for (int i = 0; i < 5 || (spent < 0.5 && i < 200); i++) {
        int64_t start = clock_ns();
        c->run(c, o, &x, work.t);
        double s = clock_since_s(start); /* time: it is printed */
        best = fmin(best, s);
        spent += s;
    }
    expect_ran(&x, c);
    printf("%-68s %9.3f ms %7.0f GF/s %6.1f GB/s\n", c->title, 1e3 * best, x.totals.flops / best * 1e-9,
           x.totals.bytes / best * 1e-9);
    fflush(stdout);
    end_exec(&x);
    checkop_instance_fini(&work);
    checkop_instance_fini(&in);
}

bool checkop_applies(const struct checkop_case *c, enum dtype dtype)
{
    return !(c->shape.wide && tested.device->is_host) &&
           (!c->shape.bits || tested.device->keeps_dropout_bits) &&
           (!c->shape.rounded || tested.device->takes_rounded_biases) &&
           (!c->shape.int8 || tested.device->multiplies_int8) &&
           (!c->shape.fp8 || (tested.device->computes_in_fp8 && dtype == DTYPE_BF16));
}

/* The tables of every instruction set that this processor has. */
static void find_each_of_cpu(void)
{
    for (enum cpu_isa isa = 0; isa < N_CPU_ISAS; isa++) {
        if (cpu_isa_is_there(isa)) {
            tables[n_tables].backend = (struct checkop_backend){cpu_table(cpu_isa_name(isa)), &device_cpu};
            tables[n_tables++].name = cpu_isa_name(isa);
        } else {
            char feature[32];
            snprintf(feature, sizeof feature, "cpu-%s", cpu_isa_name(isa));
            test_leave_out(feature, "this processor lacks %s; one that has it runs this", cpu_isa_name(isa));
        }
    }
}

void checkop_find_tested(const char *backend)
{
    if (strcmp(backend, "cpu-each") == 0) {
        find_each_of_cpu();
    } else {
        tables[n_tables++].backend = checkop_find_backend(backend);
    }
    tested = tables[0].backend;
}
