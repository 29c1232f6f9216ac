/* attention_choice: which kernel computes a call of attention: the kernels that compete, the one that the
 * environment asks for, the name of a shape among what is kept (product_cache.h), and what `kiln doctor`
 * says.  None of this needs a device; only the clock does (cuda_attention_choice.c). */
#ifndef KILN_OPS_CUDA_CHOICE_ATTENTION_CHOICE_H
#define KILN_OPS_CUDA_CHOICE_ATTENTION_CHOICE_H

#include "dev/exec.h"
#include "ops/cuda/kernels/launch.h"
#include "ops/cuda/choice/product_cache.h"

#include <stddef.h>

/* A call of the slot attention or attention_backward. */
struct attention_call {
    bool backward;
    enum launch_type type;
    struct launch_attention sizes;
    struct launch_attention_rows rows;
};

/* The value if no kernel is asked for by name. */
enum { ATTENTION_ANY = -1 };

/* Kernels among which time decides; at least one. */
struct attention_candidates {
    int n;
    enum launch_attention_kernel kernels[LAUNCH_ATTENTION_KERNELS];
};

/* "plain", "mma.sync". */
const char *attention_kernel_name(enum launch_attention_kernel kernel);

/* The kernel that KILN_ATTENTION names, ATTENTION_ANY without it; STATUS_USAGE for a name that is none. */
struct status attention_kernel_asked_for(int *kernel);

/* Whether rows of all tensors begin at multiples of 16 bytes. */
bool attention_is_aligned(const struct attention_call *c);

/* The kernel that was asked for where it fits; else those that fit, without the plain one if there is
 * another. */
struct attention_candidates attention_candidates_of(struct launch_attention_form form, int asked_for);
bool attention_is_candidate(const struct attention_candidates *a, int kernel);

/* Names the shape of a call, with the kernels that competed: another build may have others. */
void attention_key(char key[PRODUCT_KEY_BYTES], const char *machine, const struct attention_call *c,
                   const struct attention_candidates *a);

/* exec.served_by of a kernel, and exec.served_why of a call: NULL if the kernel is one with matrix
 * instructions. */
const char *attention_served_by(enum launch_attention_kernel kernel);
const char *attention_served_why(const struct attention_call *c, enum launch_attention_kernel kernel,
                                 int asked_for);

/* The number of shapes of attention that are kept for a machine. */
int64_t attention_count_kept(const struct product_cache *cache, const char *machine);

/* Lines in `text` [n]: which kernels won on a machine, the first shapes of them, and what competes by type
 * and head size. */
void attention_describe(char *text, size_t n, const struct product_cache *cache, const char *machine);

static inline void attention_launch(const struct launch *l, enum launch_attention_kernel kernel,
                                    const struct attention_call *c)
{
    (c->backward ? cuda_launch_attention_backward : cuda_launch_attention)(l, kernel, &c->sizes, &c->rows,
                                                                           c->type);
}

/* The candidate that was fastest on this device when the shape was first met.  A shape that is met for the
 * first time is timed on the real operands, which are only read or only written: it waits for the device and
 * must not happen while a graph is captured.  False after exec_fail. */
bool cuda_attention_choose(enum launch_attention_kernel *kernel, struct exec *x, const char *op,
                           const struct launch *l, const struct attention_call *call,
                           const struct attention_candidates *candidates);

#endif
