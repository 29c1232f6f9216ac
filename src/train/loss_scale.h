/* loss_scale: the factor that multiplies losses before backward, so that small gradients do not vanish in
 * fp16; the update divides by it.  Micikevicius et al. 2018 (arXiv:1710.03740), sections 3.2 and 4.
 *
 * A dynamic scale begins high.  A step whose gradients overflow skips its update, and halves the scale; many
 * steps without an overflow double it.  With hysteresis the first overflows after it was doubled do not halve
 * it: a single one may have been an accident.  From a power of two all its scales are powers of two, so they
 * change no bit of a gradient that neither vanishes nor overflows.
 *
 * Source of windows and hysteresis: DynamicGradScaler of Megatron-LM and DynamicLossScaler of DeepSpeed. */
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

struct loss_scale_rule {
    double fixed;       /* the scale; 0: it is dynamic */
    double first;       /* the dynamic scale begins at this; 0: LOSS_SCALE_FIRST */
    double least;       /* a scale that would fall below ends the run; 0: LOSS_SCALE_LEAST */
    double most;        /* 0: LOSS_SCALE_MOST; INFINITY: none */
    int64_t window;     /* steps without an overflow that double it; 0: LOSS_SCALE_WINDOW */
    int64_t hysteresis; /* number of the overflow that halves it, after it was doubled; 0: 1 */
    bool forgets;       /* a step without an overflow begins the hysteresis again */
};

struct loss_scale {
    struct loss_scale_rule rule;
    double value;
    bool dynamic;
    int64_t n_good; /* steps since the last overflow, or since it was doubled */
    int64_t n_kept; /* overflows since then that did not halve it */
};

/* A scale at its first value, by the rule with its zeros replaced by their defaults; dynamic unless
 * rule.fixed is above 0. */
struct loss_scale loss_scale_of(struct loss_scale_rule rule);

/* Counts a step with finite gradients, and doubles the scale when it is time. */
void loss_scale_raise(struct loss_scale *s);

/* Counts a step whose gradients are not finite, and halves the scale unless the hysteresis keeps it; false if
 * it cannot be lowered: it is fixed, or at the least. */
bool loss_scale_lower(struct loss_scale *s);

#endif
