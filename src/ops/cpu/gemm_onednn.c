/* Matrix products by oneDNN (C API of 2.x and 3.x differ; this is 2.x): one matmul primitive per form of
 * tile, built for one thread, kept in a set-associative cache of bounded size.
 *
 * Plain strides are used for both operands: on Zen 4 tiles of 128 rows run within 3 % of pre-packed weights,
 * which would have to be repacked after every update. */
#include "core/hash.h"
#include "dev/host_memory.h"
#include "ops/cpu/cpu_isa.h"
#include "ops/cpu/gemm_backend.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR != 2
#    error "kiln uses the C API of oneDNN 2.x"
#endif

/* More than the code of a primitive and its tables take.  It is checked first, because oneDNN does not check
 * and writes anyway (Xbyak). */
static const size_t CODE_BYTES = (size_t)24 << 20;

enum { CACHE_SETS = 64, CACHE_WAYS = 2 * GEMM_MAX_FORMS };

/* The form that a primitive is compiled for.  All fields are 64 bits wide, so that keys compare as bytes. */
struct form {
    int64_t m, n, k, c_stride, a_stride, b_stride, flags;
};

struct entry {
    struct form form;
    dnnl_primitive_t primitive; /* NULL: this way of the set is empty */
    dnnl_memory_desc_t a, b, c, bias, scratch;
    bool has_bias;
    bool adds_after;   /* the primitive computes A B into scratch, dense, and C is added to afterwards */
    bool scales_after; /* or sums of int8, which are scaled into C */
    uint64_t last_use;
};

static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct entry entries[CACHE_SETS][CACHE_WAYS];
    uint64_t clock;
    char version[48];
} lib;

/* The usual name of an instruction set of oneDNN. */
static const char *isa_name(dnnl_cpu_isa_t isa)
{
    switch (isa) {
    case dnnl_cpu_isa_sse41: return "SSE4.1";
    case dnnl_cpu_isa_avx: return "AVX";
    case dnnl_cpu_isa_avx2: return "AVX2";
    case dnnl_cpu_isa_avx2_vnni: return "AVX2 VNNI";
    case dnnl_cpu_isa_avx512_core: return "AVX-512";
    case dnnl_cpu_isa_avx512_core_vnni: return "AVX-512 VNNI";
    case dnnl_cpu_isa_avx512_core_bf16: return "AVX-512 bf16";
    case dnnl_cpu_isa_avx512_core_amx: return "AMX";
    default: return "other instructions";
    }
}

/* KILN_ISA holds for oneDNN too, unless its own variable says otherwise. */
static bool limit_isa(void)
{
    static const dnnl_cpu_isa_t isas[] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                          dnnl_cpu_isa_avx512_core_vnni, dnnl_cpu_isa_avx512_core_bf16};
    return !cpu_isa_is_limited() || getenv("ONEDNN_MAX_CPU_ISA") != NULL ||
           dnnl_set_max_cpu_isa(isas[cpu_isa_best()]) == dnnl_success;
}

static bool onednn_open(void)
{
    return limit_isa() && dnnl_engine_create(&lib.engine, dnnl_cpu, 0) == dnnl_success &&
           dnnl_stream_create(&lib.stream, lib.engine, dnnl_stream_default_flags) == dnnl_success &&
           dnnl_set_primitive_cache_capacity(0) ==
               dnnl_success; /* only our cache is used: its size is bounded */
}

static const char *onednn_version(void)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(lib.version, sizeof lib.version, "%d.%d.%d (%s)", v->major, v->minor, v->patch,
             isa_name(dnnl_get_effective_cpu_isa()));
    return lib.version;
}

static dnnl_data_type_t type_of(enum dtype t)
{
    switch (t) {
    case DTYPE_BF16: return dnnl_bf16;
    case DTYPE_U8: return dnnl_u8;
    case DTYPE_I8: return dnnl_s8;
    case DTYPE_I32: return dnnl_s32;
    default: return dnnl_f32;
    }
}

/* A [rows, cols] matrix whose stored rows are `stride` apart. */
static bool describe(dnnl_memory_desc_t *d, int64_t rows, int64_t cols, int64_t stride, bool transposed,
                     enum dtype t)
{
    dnnl_dims_t dims = {rows, cols}, strides = {transposed ? 1 : stride, transposed ? stride : 1};
    return dnnl_memory_desc_init_by_strides(d, 2, dims, type_of(t), strides) == dnnl_success;
}

static bool make_attributes(dnnl_primitive_attr_t attributes, bool accumulate)
{
    if (dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) != dnnl_success) {
        return false;
    }
    dnnl_post_ops_t post;
    if (!accumulate) {
        return true;
    }
    if (dnnl_post_ops_create(&post) != dnnl_success) {
        return false;
    }
    bool ok = dnnl_post_ops_append_sum(post, 1.0f) == dnnl_success &&
              dnnl_primitive_attr_set_post_ops(attributes, post) == dnnl_success;
    dnnl_post_ops_destroy(post);
    return ok;
}

/* Whether this code of a product of bf16 loads C into its accumulators and begins the sum with it: AMX's
 * does. The name "gemm" does not say which instructions the code is made of. */
static bool loads_c_first(const char *implementation)
{
    bool has_amx = dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_amx;
    return has_amx && (strstr(implementation, "amx") != NULL || strncmp(implementation, "gemm", 4) == 0);
}

/* Whether C += A B of this form would not add a finished sum: AMX's code for bf16 begins the sum with C, and
 * other code adds to C after each block of the inner dimension (blocks are larger than 300: test_gemm). */
static bool adds_in_parts(const struct gemm *t, const char *implementation)
{
    enum { ONE_BLOCK = 300 };
    return t->accumulate && t->c_dtype == DTYPE_F32 &&
           (t->k > ONE_BLOCK || (t->ab_dtype == DTYPE_BF16 && loads_c_first(implementation)));
}

/* Whether the code is compiled for this processor and, of int8, by VNNI or AMX: without these, sums saturate.
 * The names of instruction sets are bits, and each set has those of what it includes. */
static bool is_usable(const char *implementation, enum dtype ab_dtype)
{
    bool has_vnni =
        (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
    return strncmp(implementation, "ref", 3) != 0 && (ab_dtype != DTYPE_I8 || has_vnni);
}

static bool compile(struct entry *e, const struct gemm *t);

/* Fills an entry as `compile` does, for a product that goes to scratch first. */
static bool compile_apart(struct entry *e, const struct gemm *t)
{
    struct gemm apart = *t;
    apart.accumulate = false;
    apart.c_stride = t->n;
    dnnl_primitive_destroy(e->primitive);
    bool ok = compile(e, &apart);
    e->adds_after = ok;
    return ok;
}

/* Fills an entry; false, and the entry is empty, if oneDNN has only its slow reference code for it.  Of int8
 * the primitive computes sums of integers.
 *
 * C += A B has to add a finished sum: a run of several ranks, which adds up gradients that were made apart,
 * gives the bits of one process (docs/decisions/0039_ranks.md). Where oneDNN would not, the product goes to
 * scratch first. */
static bool compile(struct entry *e, const struct gemm *t)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_matmul_desc_t op;
    dnnl_dims_t bias_dims = {1, t->n}, bias_strides = {t->n, 1};
    const char *implementation = "";
    e->primitive = NULL;
    bool int8 = t->ab_dtype == DTYPE_I8;
    e->has_bias = t->bias != NULL && !int8;
    e->adds_after = false;
    e->scales_after = int8;
    bool ok =
        describe(&e->a, t->m, t->k, t->a_stride, t->a_transposed, int8 ? DTYPE_U8 : t->ab_dtype) &&
        describe(&e->b, t->k, t->n, t->b_stride, t->b_transposed, t->ab_dtype) &&
        describe(&e->c, t->m, t->n, int8 ? t->n : t->c_stride, false, int8 ? DTYPE_I32 : t->c_dtype) &&
        dnnl_memory_desc_init_by_strides(&e->bias, 2, bias_dims, dnnl_f32, bias_strides) == dnnl_success &&
        dnnl_matmul_desc_init(&op, &e->a, &e->b, e->has_bias ? &e->bias : NULL, &e->c) == dnnl_success &&
        dnnl_primitive_attr_create(&attributes) == dnnl_success &&
        make_attributes(attributes, t->accumulate) &&
        dnnl_primitive_desc_create(&desc, &op, attributes, lib.engine, NULL) == dnnl_success &&
        dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &implementation) == dnnl_success &&
        is_usable(implementation, t->ab_dtype) && dnnl_primitive_create(&e->primitive, desc) == dnnl_success;
    if (ok) {
        e->scratch = *dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    } else {
        e->primitive = NULL;
    }
    bool apart = ok && adds_in_parts(t, implementation);
    dnnl_primitive_desc_destroy(desc);
    dnnl_primitive_attr_destroy(attributes);
    return apart ? compile_apart(e, t) : ok;
}

static struct form form_of(const struct gemm *t)
{
    int64_t flags = t->c_dtype | t->ab_dtype << 4 | t->a_transposed << 8 | t->b_transposed << 9 |
                    t->accumulate << 10 | (t->bias != NULL) << 11;
    return (struct form){t->m, t->n, t->k, t->c_stride, t->a_stride, t->b_stride, flags};
}

/* The entry of this form, or the one to replace: an empty way, else the least recently used.  A set has more
 * ways than a product has forms, so an entry of the running product is never replaced. */
static struct entry *find(const struct form *f, bool *found)
{
    struct entry *set = lib.entries[hash_fnv1a(f, sizeof *f) % CACHE_SETS], *oldest = set;
    for (int i = 0; i < CACHE_WAYS; i++) {
        if (set[i].primitive != NULL && memcmp(&set[i].form, f, sizeof *f) == 0) {
            *found = true;
            return &set[i];
        }
        oldest = set[i].last_use < oldest->last_use ? &set[i] : oldest;
    }
    *found = false;
    return oldest;
}

/* Scratch bytes of the library, rounded up to full cache lines. */
static size_t scratch_bytes(const struct entry *e)
{
    return (dnnl_memory_desc_get_size(&e->scratch) + 63) / 64 * 64;
}

static const void *onednn_prepare(const struct gemm *t, size_t *lane_bytes)
{
    struct form f = form_of(t);
    bool found;
    struct entry *e = find(&f, &found);
    if (!found && !host_memory_can_map(CODE_BYTES)) {
        return gemm_no_memory;
    }
    e->last_use = ++lib.clock;
    if (!found) {
        dnnl_primitive_destroy(e->primitive);
        e->form = f;
        int threads = omp_get_max_threads();
        omp_set_num_threads(1); /* oneDNN plans its scratch and its blocking for this number of threads */
        bool ok = compile(e, t);
        omp_set_num_threads(threads);
        if (!ok) {
            e->last_use = 0;
            return NULL;
        }
    }
    bool apart = e->adds_after || e->scales_after;
    *lane_bytes = scratch_bytes(e) + (apart ? sizeof(float) * (size_t)(t->m * t->n) : 0);
    return e;
}

static bool add_argument(dnnl_exec_arg_t *args, int *n, int id, const dnnl_memory_desc_t *d, const void *data)
{
    args[*n].arg = id;
    args[*n].memory = NULL;
    bool ok = dnnl_memory_create(&args[*n].memory, d, lib.engine, (void *)data) == dnnl_success;
    (*n)++;
    return ok;
}

static bool onednn_tile(const void *handle, const struct gemm *t, void *lane)
{
    const struct entry *e = handle;
    void *product = e->adds_after || e->scales_after ? (char *)lane + scratch_bytes(e) : t->c;
    dnnl_exec_arg_t args[5];
    int n = 0;
    bool ok = add_argument(args, &n, DNNL_ARG_SRC, &e->a, t->a) &&
              add_argument(args, &n, DNNL_ARG_WEIGHTS, &e->b, t->b) &&
              add_argument(args, &n, DNNL_ARG_DST, &e->c, product) &&
              add_argument(args, &n, DNNL_ARG_SCRATCHPAD, &e->scratch, lane) &&
              (!e->has_bias || add_argument(args, &n, DNNL_ARG_BIAS, &e->bias, t->bias)) &&
              dnnl_primitive_execute(e->primitive, lib.stream, n, args) == dnnl_success &&
              dnnl_stream_wait(lib.stream) == dnnl_success;
    for (int i = 0; i < n; i++) {
        dnnl_memory_destroy(args[i].memory);
    }
    if (ok && e->adds_after) {
        gemm_add_product(t, product);
    }
    if (ok && e->scales_after) {
        gemm_convert()->scale_sums(t, product);
    }
    return ok;
}

/* Tests it with a small product, which either compiles to real code or not. */
static bool onednn_can(enum dtype ab_dtype, enum dtype c_dtype)
{
    struct gemm t = {.m = 64, .n = 64, .k = 64, .c_stride = 64, .a_stride = 64, .b_stride = 64};
    t.ab_dtype = ab_dtype;
    t.c_dtype = c_dtype;
    size_t bytes;
    const void *handle = onednn_prepare(&t, &bytes);
    return handle != NULL && handle != gemm_no_memory;
}

const struct gemm_backend gemm_onednn = {
    .name = "oneDNN",
    .version = onednn_version,
    .open = onednn_open,
    .can = onednn_can,
    .prepare = onednn_prepare,
    .tile = onednn_tile,
};
