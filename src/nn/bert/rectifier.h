/* rectifier: out = max(z, 0) of the few rows of a classifier's dense layer (Nair and Hinton 2010), made of
 * ops that exist: whether z > 0 is what `pointwise` counts as correct, and tanh_backward multiplies by 1 -
 * shut^2, which is 1 or 0.  So the result and its gradient are exact. */
#ifndef KILN_NN_BERT_RECTIFIER_H
#define KILN_NN_BERT_RECTIFIER_H

#include "core/arena.h"
#include "dev/exec.h"

/* R rows of H; zeros and no_loss are read or written by nobody else. */
struct rectifier_acts {
    tensor z;          /* [R, H] the input, in the dtype of vectors */
    tensor is_shut;    /* i32 [R, H] z <= 0 */
    tensor shut;       /* [R, H] the same as 0 or 1 */
    tensor numbers;    /* [2, 1] 0, 1 */
    tensor zeros;      /* f32 [R, H] */
    tensor no_loss;    /* [R, H] */
    tensor loss_scale; /* f64 [1] */
};

/* Carves them for one batch. */
void rectifier_carve(struct rectifier_acts *a, struct arena *arena, enum dtype dtype, int64_t n_rows,
                     int64_t width);

/* out [R, H] = max(a->z, 0). */
void rectifier_forward(struct exec *x, tensor out, const struct rectifier_acts *a);

/* din = dout where z > 0, else 0; din may alias dout. */
void rectifier_backward(struct exec *x, tensor din, tensor dout, const struct rectifier_acts *a);

#endif
