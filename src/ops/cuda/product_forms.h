/* product_forms: the ways in which a bias, an activation and a bias's gradient go with a product.  Which is fastest
 * depends on the shape and is found by timing (cuda_algorithms.h).
 *
 * Two epilogues of the library are no forms (docs/decisions/0024_timed_algorithms.md): GELU, which PyTorch and XLA take
 * for the tanh approximation, where ops.h means the erf form; and dGELU with the bias's gradient. */
#ifndef KILN_OPS_CUDA_PRODUCT_FORMS_H
#define KILN_OPS_CUDA_PRODUCT_FORMS_H

#include "core/fp8.h"
#include "ops/cuda/cuda_products.h"
#include "ops/cuda/launch.h"

enum product_form {
    PRODUCT_ALONE,     /* own kernels do the rest after it */
    PRODUCT_EPILOGUE,  /* the library adds the bias, rounded to the type of C, or sums the bias's gradient */
    PRODUCT_BROADCAST, /* the rows of C begin as the bias, and the product adds to them */
    PRODUCT_FORMS
};

/* Elements of the room through which a bias goes to the library, or its gradient comes back. */
enum { PRODUCT_ROOM = 1 << 18 };

static inline bool product_form_fits(enum product_form form, const struct cuda_product *p)
{
    switch (form) {
    case PRODUCT_ALONE: return p->bias == NULL || p->gelu != NULL;
    case PRODUCT_EPILOGUE:
        if (dtype_is_fp8(p->a_dtype) && p->c_dtype == DTYPE_F32) {
            return false; /* its bias would be bf16 */
        }
        return (p->bias != NULL && p->n <= PRODUCT_ROOM) ||
               (p->bias_gradient != NULL && p->m <= PRODUCT_ROOM);
    default: return p->bias != NULL && !p->accumulate;
    }
}

/* The form, or the next one that fits, the first after the last. */
static inline enum product_form product_form_from(enum product_form form, const struct cuda_product *p)
{
    while (!product_form_fits(form, p)) {
        form = (enum product_form)((form + 1) % PRODUCT_FORMS);
    }
    return form;
}

/* Where the library finds the bias of PRODUCT_EPILOGUE. */
static inline const void *product_form_bias(const struct cuda_product *p, const void *room)
{
    return p->bias_dtype == p->c_dtype ? p->bias : room;
}

/* What is launched before and after the product itself.  `room` is device memory for PRODUCT_ROOM floats: the
 * bias in the type of C before, where it is of another, its gradient [m] in fp32 after. */
void product_form_before(const struct launch *l, enum product_form form, const struct cuda_product *p,
                         void *room);
void product_form_after(const struct launch *l, enum product_form form, const struct cuda_product *p,
                        void *room);

#endif
