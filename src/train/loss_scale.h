/* loss_scale: the factor that multiplies losses before backward, so that small gradients do not vanish in
 * fp16; the update divides by it.  Micikevicius et al. 2018 (arXiv:1710.03740), sections 3.2 and 4.
 *
 * A dynamic scale begins high.  A step whose gradients overflow halves it and skips its update; many steps
 * without an overflow double it.  From a power of two all its scales are powers of two, so they change no bit
 * of a gradient that neither vanishes nor overflows. */
#ifndef KILN_TRAIN_LOSS_SCALE_H
#define KILN_TRAIN_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* The constants of the replaced scripts' dynamic scaler. */
enum {
    LOSS_SCALE_WINDOW = 2000,
    LOSS_SCALE_LEAST = 1,
    LOSS_SCALE_MOST = 1 << 24,
    LOSS_SCALE_FIRST = 1 << 20
};

struct loss_scale {
    double value;
    bool dynamic;
    int64_t n_good; /* steps since the last change */
};

/* Always `fixed`; with `fixed` 0 dynamic, beginning at `first`. */
struct loss_scale loss_scale_of(double fixed, double first);

/* After a step with finite gradients. */
void loss_scale_raise(struct loss_scale *s);

/* After a step whose gradients are not finite; false if it cannot be lowered: it is fixed, or at
 * LOSS_SCALE_LEAST. */
bool loss_scale_lower(struct loss_scale *s);

#endif
