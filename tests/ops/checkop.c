/* checkop: one program that tests, gradient-checks and times every op of a backend.
 *
 *   checkop cpu fp32 [OP]        against ref on fp64 copies of the same rounded inputs; 1, 2 and 3 threads
 *   checkop cpu bf16 [OP]        give the same bits; nothing is written between rows; the plan accepts the
 *   checkop cuda fp16 [OP]       call and its workspace is enough
 *   checkop cpu-avx2 fp32 [OP]   the same for the kernels of one instruction set (ops/cpu/cpu.h)
 *   checkop cpu-each fp32 [OP]   the same for every instruction set of this processor, against one run of ref
 *   checkop ref-gradients [OP]   every backward of ref against central differences of its forward, in fp64
 *   checkop bench fp32 [OP]      times, GF/s and GB/s at the sizes of BERT; FLOPs and bytes are the plan's
 *   checkop ops                  the names of the ops that have cases
 *
 * --large takes cases with the columns, heads and words of BERT-Large instead, whose products and attention
 * are held against the cpu's in fp32, where another device is tested; --seconds=N gives each case that long;
 * --one-in=N takes one in N of the cases of each op, from the last on.
 * A case that fails is printed and the next one runs, in another process (case_workers.h); for debuggers and
 * sanitizers, --one-process ends at the first.
 *
 * A slot of struct ops without a case fails the test.  Cases that do not apply to a device and dtype are left
 * out; the last line names the ops that were not tested for that, and an OP that was asked for fails. */
#include "case_workers.h"
#include "checkop_backend.h"
#include "checkop_cases.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/rng.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/cpu_isa.h"
#include "test.h"

#include <omp.h>
#include <stddef.h>

enum { GUARD_BYTE = 0xA5, MAX_THREADS = 3, WORTH_THREADS = 1 << 20 };

/* The arguments of one case in one pair of dtypes, in memory. */
struct instance {
    const struct checkop_case *c;
    tensor t[CHECKOP_MAX_ARGS];
    void *memory[CHECKOP_MAX_ARGS];
    size_t bytes[CHECKOP_MAX_ARGS];
};

static enum dtype dtype_of(enum checkop_kind kind, enum dtype a)
{
    switch (kind) {
    case KIND_A: return a;
    case KIND_W: return a == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    case KIND_F32: return DTYPE_F32;
    case KIND_F64: return DTYPE_F64;
    case KIND_I32: return DTYPE_I32;
    case KIND_I64: return DTYPE_I64;
    case KIND_E4M3: return DTYPE_E4M3;
    case KIND_E5M2: return DTYPE_E5M2;
    case KIND_I8: return DTYPE_I8;
    }
    return DTYPE_F64;
}

static tensor shape_of(const struct checkop_arg *a, enum dtype dtype, void *data)
{
    tensor t =
        tensor_3d(data, dtype, a->dims[0], a->n_dims > 1 ? a->dims[1] : 1, a->n_dims > 2 ? a->dims[2] : 1);
    t.n_dims = a->n_dims;
    if (a->n_dims == 1) {
        t = tensor_1d(data, dtype, a->dims[0]);
    } else if (a->n_dims == 2) {
        t = tensor_2d(data, dtype, a->dims[0], a->dims[1]);
    }
    t.strides[0] += a->gap;
    if (a->by_columns) {
        t = tensor_transpose(tensor_2d(data, dtype, a->dims[1], a->dims[0]));
    }
    return t;
}

static void set_scales(const struct checkop_case *c, tensor *t)
{
    for (int i = 0; i < c->n_args; i++) {
        t[i].scale = c->args[i].scaled_by == 0 ? NULL : t[c->args[i].scaled_by - 1].data;
    }
}

/* `tested` decides which optional arguments there are; `a` is the dtype of the memory. */
static void instance_init(struct instance *in, const struct checkop_case *c, enum dtype tested, enum dtype a)
{
    *in = (struct instance){.c = c};
    for (int i = 0; i < c->n_args; i++) {
        const struct checkop_arg *arg = &c->args[i];
        if (arg->mixed_only && tested == dtype_of_vectors(tested)) {
            continue;
        }
        tensor t = shape_of(arg, dtype_of(arg->kind, a), NULL);
        in->bytes[i] =
            arg->by_columns ? tensor_bytes(t) : (size_t)(t.dims[0] * t.strides[0]) * dtype_bytes(t.dtype);
        in->memory[i] = malloc(in->bytes[i] + 1);
        EXPECT(in->memory[i] != NULL, "no memory for %s", arg->name);
        memset(in->memory[i], GUARD_BYTE, in->bytes[i]);
        t.data = in->memory[i];
        in->t[i] = t;
    }
    for (int i = 0; i < c->n_args; i++) {
        if (c->args[i].shares != 0) {
            in->t[i].data = in->memory[c->args[i].shares - 1];
        }
    }
    set_scales(c, in->t);
}

static void instance_fini(struct instance *in)
{
    for (int i = 0; i < in->c->n_args; i++) {
        free(in->memory[i]);
    }
}

static void fill_bounds(tensor t, const int64_t *lens)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        tensor_set(t, i, (double)sum);
        sum += lens[i];
    }
}

static void fill_row_keys(tensor t, const struct checkop_case *c)
{
    int64_t row = 0;
    for (int b = 0; b < c->n_sequences; b++) {
        for (int64_t i = 0; i < c->lens_q[b] && row < t.dims[0]; i++, row++) {
            tensor_set(t, 2 * row, 11 * b + 3);
            tensor_set(t, 2 * row + 1, (double)(i + 1));
        }
    }
    EXPECT(row + c->shape.rest == t.dims[0], "%s: the sequences have %lld of %lld rows", c->title,
           (long long)row, (long long)t.dims[0]);
}

static void fill_scalars(tensor t, double amount)
{
    const double values[OPTIM_N_SCALARS] = {
        [OPTIM_LR] = 0.01,
        [OPTIM_BETA1] = 0.9,
        [OPTIM_BETA2] = 0.999,
        [OPTIM_EPS] = 1e-6,
        [OPTIM_CORRECTION1] = amount > 0 ? 1 - 0.9 * 0.9 : 1,
        [OPTIM_CORRECTION2] = amount > 0 ? 1 - 0.999 * 0.999 : 1,
        [OPTIM_MAX_NORM] = amount > 0 ? 1 : 0,
        [OPTIM_GRAD_SCALE] = amount > 0 ? 0.5 : 0.25,
        [OPTIM_COUPLED] = amount > 0 ? 0 : 1,
        [OPTIM_RATIO_OF_ALL] = amount > 0 ? 0 : 1,
        [OPTIM_MIN_RATIO] = amount > 0 ? 0 : 0.97,
        [OPTIM_MAX_RATIO] = amount > 0 ? INFINITY : 1.01,
        [OPTIM_MOMENTUM] = 0.95,
    };
    for (int i = 0; i < OPTIM_N_SCALARS; i++) {
        tensor_set(t, i, values[i]);
    }
}

/* The largest magnitude of the step before, and of this one so far, of tensors whose own is about 90: none,
 * one that gives them room, one that they have outgrown, one that is no number; room for them, but not for
 * those before them; and nothing known but a number of this step that is none. */
static const double histories[][2] = {{0, 0},           {60, 0.5}, {0x1p-9, 0.5},
                                      {(double)NAN, 0}, {60, 1e6}, {0, (double)INFINITY}};

static double fill_value(const struct checkop_arg *a, uint64_t key, int64_t i)
{
    double z = rng_normal(key, (uint64_t)i);
    switch (a->fill) {
    case FILL_NORMAL: return z * a->amount;
    case FILL_SPREAD: return i % 97 == 3 ? 30 * z : z;
    case FILL_GAMMA: return 1 + z * a->amount;
    case FILL_ZEROS: return i % 3 != 1 ? z * a->amount : i % 2 == 0 ? 0.0 : -0.0;
    case FILL_SQUARES: return z * z * a->amount;
    case FILL_IDENTITY: return i / a->dims[1] == i % a->dims[1];
    case FILL_INDEX: return floor(rng_uniform_at(key, (uint64_t)i) * a->amount);
    case FILL_TARGET: return i % 4 == 1 ? NAN : rng_uniform_at(key, (uint64_t)i) * a->amount;
    case FILL_LABEL: return i % 4 == 1 ? -1 : floor(rng_uniform_at(key, (uint64_t)i) * a->amount);
    case FILL_SLOTS: return i % 5 == 3 ? -1 : (double)(i * 7 % ((int64_t)a->amount * OPS_CACHE_PAGE));
    case FILL_CONSTANT: return a->amount;
    case FILL_SLOPES: return ldexp(1, -(int)i - 1);
    case FILL_HISTORY: return histories[(int)a->amount][i];
    case FILL_HOLES:
        return a->amount < 0 || i < a->amount ? z : i == a->amount ? (double)NAN : (double)INFINITY;
    default: return 0;
    }
}

/* Pages of a cache in which sequences take turns: no page twice, and none in order. */
static void fill_pages(tensor t, const struct checkop_case *c, int64_t n_pages)
{
    int64_t width = t.dims[1], next = 0;
    for (int64_t k = 0; k < width; k++) {
        for (int64_t b = 0; b < t.dims[0]; b++) {
            bool is_used = k * OPS_CACHE_PAGE < c->lens_kv[b];
            tensor_set(t, b * width + k, is_used ? (double)(n_pages - 1 - next++) : 0);
        }
    }
}

static void fill_arg(const struct checkop_case *c, int arg, tensor t)
{
    const struct checkop_arg *a = &c->args[arg];
    switch (a->fill) {
    case FILL_BOUNDS_Q: fill_bounds(t, c->lens_q); return;
    case FILL_BOUNDS_KV: fill_bounds(t, c->lens_kv); return;
    case FILL_PAGES: fill_pages(t, c, (int64_t)a->amount); return;
    case FILL_ROW_KEYS: fill_row_keys(t, c); return;
    case FILL_SCALARS: fill_scalars(t, a->amount); return;
    default: break;
    }
    uint64_t key = rng_key(hash_fnv1a(c->shape.op, strlen(c->shape.op)),
                           (uint64_t)arg); /* whatever other ops there are */
    int64_t n = tensor_count(t);
#pragma omp parallel for if (n > WORTH_THREADS)
    for (int64_t i = 0; i < n; i++) {
        tensor_set(t, i, a->role == ROLE_OUT ? (double)NAN : fill_value(a, key, i));
    }
}

/* Random values, rounded through the dtypes of `rounded`, the same in both instances. */
static void instance_fill(struct instance *exact, struct instance *rounded)
{
    const struct checkop_case *c = exact->c;
    for (int i = c->n_args - 1; i >= 0; i--) { /* scales are behind what they scale */
        if (c->args[i].shares != 0 || tensor_is_null(exact->t[i])) {
            continue;
        }
        fill_arg(c, i, rounded->t[i]);
        int64_t n = tensor_count(exact->t[i]);
#pragma omp parallel for if (n > WORTH_THREADS)
        for (int64_t e = 0; e < n; e++) {
            tensor_set(exact->t[i], e, tensor_get(rounded->t[i], e));
        }
    }
}

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
static struct exec planned(const struct ops *o, const struct instance *in, checkop_call *call)
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
    memset(guard, GUARD_BYTE, totals.workspace_bytes + 1);
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

static void run_oracle(struct instance *exact, checkop_call *call)
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
static void fill_dependents(struct instance *exact, struct instance *rounded)
{
    const struct checkop_case *c = exact->c;
    if (c->forward == NULL) {
        return;
    }
    run_oracle(exact, c->forward);
    for (int i = 0; i < c->n_args; i++) {
        int64_t n = tensor_is_null(exact->t[i]) ? 0 : tensor_count(exact->t[i]);
#pragma omp parallel for if (n > WORTH_THREADS)
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

static void copy_to_device(struct on_device *d, struct exec *x, const struct instance *in)
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
    set_scales(in->c, d->t);
}

static void copy_from_device(struct on_device *d, struct exec *x, struct instance *in)
{
    for (int i = 0; i < in->c->n_args; i++) {
        if (d->memory[i] != NULL) {
            exec_copy_out(x, in->memory[i], d->memory[i], in->bytes[i]);
            x->device->release(d->memory[i], in->bytes[i] + 1);
        }
    }
}

static void run_on(struct exec *x, struct instance *in)
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

static double compare(const struct instance *got, const struct instance *want, enum dtype dtype)
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
static void expect_guards(const struct instance *in)
{
    const struct checkop_case *c = in->c;
    for (int i = 0; i < c->n_args; i++) {
        size_t size = dtype_bytes(in->t[i].dtype), gap = (size_t)c->args[i].gap * size;
        size_t row = (size_t)in->t[i].strides[0] * size;
        for (size_t at = row - gap; gap > 0 && at < in->bytes[i]; at += row) {
            for (size_t b = 0; b < gap; b++) {
                EXPECT(((unsigned char *)in->memory[i])[at + b] == GUARD_BYTE,
                       "%s: %s was written between its rows", c->title, c->args[i].name);
            }
        }
    }
}

/* Runs a fresh copy of `inputs` on this many threads into `result`. */
static void run_copy(struct instance *result, const struct instance *inputs, const struct ops *o,
                     enum dtype dtype, int threads)
{
    const struct checkop_case *c = inputs->c;
    instance_init(result, c, dtype, dtype);
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

static void expect_same_bits(const struct instance *a, const struct instance *b, int threads)
{
    for (int i = 0; i < a->c->n_args; i++) {
        EXPECT(a->memory[i] == NULL || memcmp(a->memory[i], b->memory[i], a->bytes[i]) == 0,
               "%s: %d threads give other bits in %s than one", a->c->title, threads, a->c->args[i].name);
    }
}

/* Holds one table against what the oracle gave, and against itself on more threads. */
static void test_table(const struct instance *inputs, const struct instance *exact, enum dtype dtype)
{
    const struct checkop_case *c = inputs->c;
    struct instance first;
    run_copy(&first, inputs, tested.ops, dtype, 1);
    double share = compare(&first, exact, dtype);
    expect_guards(&first);
    int most = tested.device->is_host ? MAX_THREADS : 2; /* elsewhere: once more, for the same bits */
    for (int threads = 2; threads <= most; threads++) {
        struct instance again;
        run_copy(&again, inputs, tested.ops, dtype, threads);
        expect_same_bits(&first, &again, threads);
        instance_fini(&again);
    }
    printf("%-72s %5.1f %% of its bound\n", c->title, 100 * share);
    instance_fini(&first);
}

static void test_case(struct checkop_case *c, enum dtype dtype)
{
    struct instance exact, inputs;
    size_t n_title = strlen(c->title);
    omp_set_num_threads(omp_get_num_procs());
    instance_init(&exact, c, dtype, is_by_cpu(c) ? DTYPE_F32 : DTYPE_F64);
    instance_init(&inputs, c, dtype, dtype);
    instance_fill(&exact, &inputs);
    fill_dependents(&exact, &inputs);
    run_oracle(&exact, c->run);
    for (int i = 0; i < n_tables; i++) {
        tested = tables[i].backend;
        snprintf(c->title + n_title, sizeof c->title - n_title, "%s%s", n_tables > 1 ? ", " : "",
                 n_tables > 1 ? tables[i].name : "");
        test_table(&inputs, &exact, dtype);
    }
    instance_fini(&inputs);
    instance_fini(&exact);
}

/* What the gradients are of: sum of seed * value after the forward. */
static double objective(struct instance *in)
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

static double central_difference(struct instance *in, tensor input, int64_t i)
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

static void check_gradient(struct instance *in, int arg, const double *before)
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

static void test_gradients(const struct checkop_case *c)
{
    struct instance in, same;
    instance_init(&in, c, DTYPE_F64, DTYPE_F64);
    instance_init(&same, c, DTYPE_F64, DTYPE_F64);
    instance_fill(&in, &same);
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
    instance_fini(&same);
    instance_fini(&in);
}

static void bench_case(const struct checkop_case *c, const struct ops *o, enum dtype dtype)
{
    struct instance in, work;
    instance_init(&in, c, dtype, dtype);
    for (int i = 0; i < c->n_args; i++) {
        if (!tensor_is_null(in.t[i])) {
            fill_arg(c, i, in.t[i]);
        }
    }
    run_copy(&work, &in, o, dtype, omp_get_max_threads());
    struct exec x = planned(o, &work, c->run);
    double best = 1e9, spent = 0;
    for (int i = 0; i < 5 || (spent < 0.5 && i < 200); i++) {
        int64_t start = clock_ns();
        c->run(c, o, &x, work.t);
        double s = clock_since_s(start);
        best = fmin(best, s);
        spent += s;
    }
    expect_ran(&x, c);
    printf("%-68s %9.3f ms %7.0f GF/s %6.1f GB/s\n", c->title, 1e3 * best, x.totals.flops / best * 1e-9,
           x.totals.bytes / best * 1e-9);
    fflush(stdout);
    end_exec(&x);
    instance_fini(&work);
    instance_fini(&in);
}

/* Every slot of the table has a case among these shapes. */
static void expect_all_slots(const struct checkop_shape *shapes, int n)
{
    for (size_t slot = offsetof(struct ops, fill); slot < sizeof(struct ops);
         slot += sizeof(void (*)(void))) {
        bool found = false;
        for (int i = 0; i < n && !found; i++) {
            struct checkop_case c;
            checkop_make(&c, &shapes[i]);
            found = c.slot == slot;
        }
        EXPECT(found, "the slot at offset %zu of struct ops has no case", slot);
    }
}

static enum dtype parse_dtype(const char *name)
{
    enum dtype t = DTYPE_F32;
    while (t <= DTYPE_F16 && strcmp(name, dtype_name(t)) != 0) {
        t++;
    }
    EXPECT(t <= DTYPE_F16, "no dtype %s: fp32, bf16 or fp16", name);
    return t;
}

/* Whether the tested device has what the case is about. */
static bool applies(const struct checkop_case *c, enum dtype dtype)
{
    return !(c->shape.wide && tested.device->is_host) &&
           (!c->shape.bits || tested.device->keeps_dropout_bits) &&
           (!c->shape.rounded || tested.device->takes_rounded_biases) &&
           (!c->shape.int8 || tested.device->multiplies_int8) &&
           (!c->shape.fp8 || (tested.device->computes_in_fp8 && dtype == DTYPE_BF16));
}

enum mode { MODE_TEST, MODE_GRADIENTS, MODE_BENCH };

/* What was asked for. */
struct request {
    enum mode mode;
    const char *backend, *dtype, *op; /* op: NULL, or the only one */
    const struct checkop_shape *shapes;
    int n;
    bool large, one_process;
    int seconds; /* of one case; 0: no limit */
    int one_in;  /* how many cases of an op that apply there are to one that runs */
};

/* Whether case i, which applies, is one of those that run: the last of its op is. */
static bool takes_turn(const struct request *q, int i)
{
    int n_behind = 0;
    for (int k = i + 1; k < q->n; k++) {
        struct checkop_case c;
        if (strcmp(q->shapes[k].op, q->shapes[i].op) == 0) {
            checkop_make(&c, &q->shapes[k]);
            n_behind += applies(&c, parse_dtype(q->dtype));
        }
    }
    return n_behind % q->one_in == 0;
}

static void run_case(const struct request *q, int i)
{
    struct checkop_case c;
    checkop_make(&c, &q->shapes[i]);
    if (q->mode == MODE_GRADIENTS) {
        test_gradients(&c);
    } else if (q->mode == MODE_BENCH) {
        bench_case(&c, tested.ops, parse_dtype(q->dtype));
    } else if (!applies(&c, parse_dtype(q->dtype))) {
        printf("%-72s not on this device in this dtype\n", c.title);
    } else if (!takes_turn(q, i)) {
        printf("%-72s not among the cases asked for\n", c.title);
    } else {
        test_case(&c, parse_dtype(q->dtype));
    }
}

static bool is_wanted(const struct request *q, int i)
{
    return q->op == NULL || strcmp(q->op, q->shapes[i].op) == 0;
}

static bool is_first_of_op(const struct request *q, int i)
{
    for (int k = 0; k < i; k++) {
        if (strcmp(q->shapes[k].op, q->shapes[i].op) == 0) {
            return false;
        }
    }
    return true;
}

/* How many cases of an op run here; *n_left_out grows by the others. */
static int count_of_op(const struct request *q, const char *op, int *n_left_out)
{
    int n_run = 0;
    for (int i = 0; i < q->n; i++) {
        if (strcmp(op, q->shapes[i].op) == 0) {
            struct checkop_case c;
            checkop_make(&c, &q->shapes[i]);
            bool runs = q->mode != MODE_TEST || (applies(&c, parse_dtype(q->dtype)) && takes_turn(q, i));
            n_run += runs;
            *n_left_out += !runs;
        }
    }
    return n_run;
}

/* An op without a case that applies was not tested; that is a failure where it was asked for. */
static void report(const struct request *q)
{
    char untested[1024] = "";
    int n_run = 0, n_left_out = 0, n_tested = 0, n_untested = 0;
    for (int i = 0; i < q->n; i++) {
        if (is_wanted(q, i) && is_first_of_op(q, i)) {
            int n = count_of_op(q, q->shapes[i].op, &n_left_out);
            size_t used = strlen(untested);
            n_run += n;
            n_tested += n > 0;
            n_untested += n == 0;
            snprintf(untested + used, sizeof untested - used, "%s%s",
                     n > 0       ? ""
                     : used == 0 ? ": "
                                 : ", ",
                     n > 0 ? "" : q->shapes[i].op);
        }
    }
    printf("%d cases of %d ops, %d cases left out, %d ops not tested%s\n", n_run, n_tested, n_left_out,
           n_untested, untested);
    EXPECT(n_run > 0, "no case of %s applies to this device in this dtype", q->op == NULL ? "any op" : q->op);
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

static void find_tested(const char *backend)
{
    if (strcmp(backend, "cpu-each") == 0) {
        find_each_of_cpu();
    } else {
        tables[n_tables++].backend = checkop_find_backend(backend);
    }
    tested = tables[0].backend;
}

/* In a process of its own: a device is opened here. */
static void run_cases(void *context, int first)
{
    const struct request *q = context;
    if (q->mode != MODE_GRADIENTS) {
        find_tested(q->mode == MODE_BENCH ? "cpu" : q->backend);
    }
    for (int i = first; i < q->n; i++) {
        if (is_wanted(q, i)) {
            case_workers_begin(i);
            run_case(q, i);
        }
    }
    if (first <= q->n) {
        case_workers_begin(q->n);
        report(q);
    }
}

static const char *title_of(void *context, int i)
{
    static struct checkop_case c;
    const struct request *q = context;
    if (i == q->n) {
        return "whether every op was tested";
    }
    checkop_make(&c, &q->shapes[i]);
    return c.title;
}

/* Each op's name once, in the order of the shapes. */
static int list_ops(const struct request *q)
{
    for (int i = 0; i < q->n; i++) {
        if (is_first_of_op(q, i)) {
            puts(q->shapes[i].op);
        }
    }
    return 0;
}

static int count_cases(const struct request *q)
{
    int n = 0;
    for (int i = 0; i < q->n; i++) {
        n += is_wanted(q, i);
    }
    EXPECT(n > 0, "no case of %s", q->op);
    return n;
}

static struct request parse_request(int argc, char **argv)
{
    struct request q = {.one_in = 1};
    const char *words[3] = {NULL};
    int n_words = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--large") == 0) {
            q.large = true;
        } else if (strcmp(argv[i], "--one-process") == 0) {
            q.one_process = true;
        } else if (strncmp(argv[i], "--seconds=", 10) == 0) {
            q.seconds = atoi(argv[i] + 10);
        } else if (strncmp(argv[i], "--one-in=", 9) == 0) {
            q.one_in = atoi(argv[i] + 9);
            EXPECT(q.one_in > 0, "%s: wanted at least 1", argv[i]);
        } else {
            EXPECT(n_words < 3, "one op at a time: %s", argv[i]);
            words[n_words++] = argv[i];
        }
    }
    EXPECT(n_words > 0,
           "usage: checkop [--large] [--seconds=N] [--one-in=N] [--one-process] BACKEND DTYPE [OP], "
           "checkop [--large] ops, "
           "checkop ref-gradients [OP], checkop bench DTYPE [OP]");
    q.backend = words[0];
    q.mode = strcmp(words[0], "ref-gradients") == 0 ? MODE_GRADIENTS
             : strcmp(words[0], "bench") == 0       ? MODE_BENCH
                                                    : MODE_TEST;
    q.dtype = words[1];
    q.op = q.mode == MODE_GRADIENTS ? words[1] : words[2];
    q.shapes = q.mode == MODE_GRADIENTS ? checkop_gradient_shapes(&q.n)
               : q.mode == MODE_BENCH   ? checkop_bench_shapes(&q.n)
               : q.large                ? checkop_large_shapes(&q.n)
                                        : checkop_test_shapes(&q.n);
    return q;
}

int main(int argc, char **argv)
{
    struct request q = parse_request(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was found is there, however the rest ends */
    if (strcmp(q.backend, "ops") == 0) {
        return list_ops(&q);
    }
    EXPECT(q.mode == MODE_GRADIENTS || q.dtype != NULL, "checkop %s needs a dtype: fp32, bf16 or fp16",
           q.backend);
    if (q.mode == MODE_TEST && q.op == NULL && !q.large) {
        expect_all_slots(q.shapes, q.n);
    }
    int n = count_cases(&q);
    if (q.one_process) {
        run_cases(&q, 0);
        return 0;
    }
    int n_failed = case_workers_run(&(struct case_workers){run_cases, title_of, &q, q.seconds});
    if (n_failed > 0) {
        printf("%d of %d cases failed\n", n_failed, n);
    }
    return n_failed > 0;
}
