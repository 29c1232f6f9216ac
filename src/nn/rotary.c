#include "nn/rotary.h"

#include <math.h>
#include <stdlib.h>

/* The part of w_i that Llama 3's scaling leaves as it is. */
static double part_kept(const struct rotary *r, double w)
{
    const double two_pi = 6.28318530717958647692;
    double waves = (double)r->original * w / two_pi;
    double part = (waves - r->low_factor) / (r->high_factor - r->low_factor);
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

double rotary_frequency(const struct rotary *r, int64_t i)
{
    double w = pow(r->theta, -2.0 * (double)i / (double)r->size);
    switch (r->scaling) {
    case ROTARY_LINEAR: return w / r->factor;
    case ROTARY_LLAMA3: {
        double kept = part_kept(r, w);
        return kept * w + (1 - kept) * w / r->factor;
    }
    default: return w;
    }
}

/* Angles are products in double: those of fp32, which other programs have, differ in the fourth digit at
 * position 10,000. */
void rotary_fill(struct exec *x, tensor turns, const struct rotary *r)
{
    int64_t half = r->size / 2, n = tensor_rows(turns);
    float *host = malloc((size_t)(n * r->size) * sizeof *host);
    if (host == NULL) {
        exec_fail(x, STATUS_MEMORY, "rotate", "out of memory for the angles of %lld positions", (long long)n);
        return;
    }
    for (int64_t i = 0; i < half; i++) {
        double w = rotary_frequency(r, i);
        for (int64_t p = 0; p < n; p++) {
            host[p * r->size + i] = (float)cos((double)p * w);
            host[p * r->size + half + i] = (float)sin((double)p * w);
        }
    }
    exec_copy_in(x, turns.data, host, (size_t)(n * r->size) * sizeof *host);
    free(host);
}
