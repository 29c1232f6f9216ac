/* rotary: the angles of rotary positions (Su et al. 2021, arXiv:2104.09864, section 3.2.2): pair i of R / 2
 * turns by position * w_i, w_i = theta^(-2 i / R), or by a scaling of w_i, with which a model reads longer
 * texts than it was first trained on. */
#ifndef KILN_NN_ROTARY_H
#define KILN_NN_ROTARY_H

#include "dev/exec.h"

/* linear: w_i / factor (Chen et al. 2023, arXiv:2306.15595).  Llama 3's: the same for pairs whose wave, 2
 * pi / w_i, is longer than original / low_factor, w_i itself where it is shorter than original /
 * high_factor, and in between a mean of both, by original / wave (Grattafiori et al. 2024,
 * arXiv:2407.21783, section 3.2; Hugging Face's "llama3"). */
enum rotary_scaling { ROTARY_UNSCALED, ROTARY_LINEAR, ROTARY_LLAMA3 };

struct rotary {
    double theta;
    int64_t size; /* R: columns of a head that turn, even */
    enum rotary_scaling scaling;
    double factor, low_factor, high_factor;
    int64_t original; /* positions that the model was first trained on */
};

/* The angle of pair i at position 1. */
double rotary_frequency(const struct rotary *r, int64_t i);

/* turns f32 [P, R]: of each position the cosines of its angles, then their sines (ops.h, rotate). */
void rotary_fill(struct exec *x, tensor turns, const struct rotary *r);

#endif
