/* product_forms: the ways to combine a product with a bias, an activation or a bias's gradient.  Which is
 * fastest depends on the shape and is found by timing (cuda_algorithms.h).
 *
 * Two epilogues of the library are not used (docs/decisions/0024_timed_algorithms.md): GELU, which PyTorch
 * and XLA use as the tanh approximation, while ops.h means the erf form; and dGELU with the bias's
 * gradient. */
#ifndef KILN_OPS_CUDA_CHOICE_PRODUCT_FORMS_H
#define KILN_OPS_CUDA_CHOICE_PRODUCT_FORMS_H

#include "core/fp8.h"
#include "ops/cuda/table/cuda_products.h"
#include "ops/cuda/kernels/launch.h"

enum product_form {
    PRODUCT_ALONE,     /* our own kernels do the rest after it */
    PRODUCT_EPILOGUE,  /* the library adds the bias, rounded to the type of C, or sums the bias's gradient */
    PRODUCT_BROADCAST, /* the bias is first copied to every row of C, and the product adds to it */
    PRODUCT_SHORT,     /* our own kernel for few rows does all of it (cuda_short_product.cu) */
    PRODUCT_FORMS
};

/* The most rows for which our own kernel competes. */
enum { PRODUCT_SHORT_ROWS = 1024 };

/* Requests of KILN_PRODUCT: nothing, only the library, or a tile of our own kernel wherever it fits. */
enum { PRODUCT_ANY = -1, PRODUCT_LIBRARY = -2 };

/* Parses "library", "64x64" and so on; STATUS_USAGE for an unknown name. */
struct status product_asked_for(int *asked_for);

/* The kernels' name of a dtype of matrices: fp32, bf16 or fp16. */
enum launch_type product_launch_type(enum dtype t);

/* Elements of `room`, the buffer that passes a bias to the library, or its gradient back. */
enum { PRODUCT_ROOM = 1 << 18 };

/* True if cuda_short_product.cu supports the product: 16-bit factors stored along k, in full pieces of 16
 * bytes. */
static inline bool product_form_is_short(const struct cuda_product *p)
{
    enum { PIECE = 8, STEP = 64 }; /* elements */
    uintptr_t pointers = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c | (uintptr_t)p->gelu;
    int64_t columns = p->n | p->a_stride | p->b_stride | p->c_stride;
    bool plain = !p->a_transposed && p->b_transposed && !p->accumulate && p->bias_gradient == NULL &&
                 p->gelu_maxima == NULL;
    return plain && (p->a_dtype == DTYPE_BF16 || p->a_dtype == DTYPE_F16) && p->c_dtype == p->a_dtype &&
           p->m <= PRODUCT_SHORT_ROWS && p->k > 0 && p->k % STEP == 0 && columns % PIECE == 0 &&
           pointers % (PIECE * 2) == 0;
}

static inline bool product_form_fits(enum product_form form, const struct cuda_product *p)
{
    switch (form) {
    case PRODUCT_ALONE: return p->bias == NULL || p->gelu != NULL;
    case PRODUCT_EPILOGUE:
        if (dtype_is_fp8(p->a_dtype) && p->c_dtype == DTYPE_F32) {
            return false; /* the bias would be bf16 */
        }
        return (p->bias != NULL && p->n <= PRODUCT_ROOM) ||
               (p->bias_gradient != NULL && p->m <= PRODUCT_ROOM);
    case PRODUCT_SHORT: return product_form_is_short(p);
    default: return p->bias != NULL && !p->accumulate;
    }
}

/* The bias that the library reads in PRODUCT_EPILOGUE. */
static inline const void *product_form_bias(const struct cuda_product *p, const void *room)
{
    return p->bias_dtype == p->c_dtype ? p->bias : room;
}

/* Runs all of PRODUCT_SHORT. */
void product_form_launch_short(const struct launch *l, enum launch_product_tile tile,
                               const struct cuda_product *p);

/* The launches before and after the library's product.  `room` is device memory for PRODUCT_ROOM floats:
 * before, it gets the bias converted to the type of C, if that differs; after, it holds the bias's gradient
 * [m] in fp32. */
void product_form_before(const struct launch *l, enum product_form form, const struct cuda_product *p,
                         void *room);
void product_form_after(const struct launch *l, enum product_form form, const struct cuda_product *p,
                        void *room);

#endif
