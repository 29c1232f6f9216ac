#include "dist/reduce.h"

#include "core/status.h"

#include <math.h>

enum { AT_ONCE = 1024 }; /* elements, so that partial sums stay in the nearest cache */

/* The largest power of two below n, n being at least 2: the number of leaves in the first branch of the tree
 * of n. */
static int tree_split(int n)
{
    int p = 1;
    while (2 * p < n) {
        p *= 2;
    }
    return p;
}

bool reduce_can_sum(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F64 || dtype == DTYPE_BF16;
}

/* sum = sum + from, or from for the first. */
typedef void adder(void *sum, const void *from, int64_t first, int64_t n, bool is_first);

static void add_f64(void *sum, const void *from, int64_t first, int64_t n, bool is_first)
{
    double *to = sum;
    const double *in = (const double *)from + first;
    for (int64_t i = 0; i < n; i++) {
        to[i] = is_first ? in[i] : to[i] + in[i];
    }
}

static void add_f32(void *sum, const void *from, int64_t first, int64_t n, bool is_first)
{
    float *to = sum;
    const float *in = (const float *)from + first;
    for (int64_t i = 0; i < n; i++) {
        to[i] = is_first ? in[i] : to[i] + in[i];
    }
}

/* The sum is in fp32. */
static void add_bf16(void *sum, const void *from, int64_t first, int64_t n, bool is_first)
{
    float *to = sum;
    const uint16_t *in = (const uint16_t *)from + first;
    for (int64_t i = 0; i < n; i++) {
        to[i] = is_first ? bf16_to_f32(in[i]) : to[i] + bf16_to_f32(in[i]);
    }
}

/* Elements [first, first + n) of the tree of n_from: a rank is added to what is left of it at once, so only
 * branches need memory of their own, which is of the sum's dtype. */
static void tree(void *sum, const void *const *from, int n_from, int64_t first, int64_t n, adder *add,
                 adder *add_branch)
{
    if (n_from == 1) {
        add(sum, from[0], first, n, true);
        return;
    }
    int left = tree_split(n_from);
    tree(sum, from, left, first, n, add, add_branch);
    if (n_from - left == 1) {
        add(sum, from[left], first, n, false);
        return;
    }
    double branch[AT_ONCE];
    tree(branch, from + left, n_from - left, first, n, add, add_branch);
    add_branch(sum, branch, 0, n, false);
}

static void sum_some(void *out, const void *const *from, int n_from, int64_t first, int64_t n,
                     enum dtype dtype)
{
    union {
        float f32[AT_ONCE];
        double f64[AT_ONCE];
    } sum;
    tree(&sum, from, n_from, first, n,
         dtype == DTYPE_F64   ? add_f64
         : dtype == DTYPE_F32 ? add_f32
                              : add_bf16,
         dtype == DTYPE_F64 ? add_f64 : add_f32);
    if (dtype != DTYPE_BF16) {
        memcpy(out, &sum, (size_t)n * dtype_bytes(dtype));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        ((uint16_t *)out)[i] =
            bf16_from_f32(sum.f32[i]); /* NOLINT(clang-analyzer-core.CallAndMessage): of tree */
    }
}

void reduce_sum(void *out, const void *const *from, int n_from, int64_t first, int64_t n, enum dtype dtype)
{
    CHECK(reduce_can_sum(dtype), "a sum of %s", dtype_name(dtype));
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        int64_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        sum_some((char *)out + (size_t)i * dtype_bytes(dtype), from, n_from, first + i, some, dtype);
    }
}

void reduce_max(void *out, const void *const *from, int n_from, int64_t first, int64_t n, enum dtype dtype)
{
    CHECK(dtype == DTYPE_F32, "a maximum of %s", dtype_name(dtype));
    float *largest = out;
    for (int64_t i = 0; i < n; i++) {
        float most = ((const float *)from[0])[first + i];
        for (int r = 1; r < n_from; r++) {
            float in = ((const float *)from[r])[first + i];
            most = isnan(most) || most >= in ? most : in;
        }
        largest[i] = most;
    }
}
