#include "ops/ops.h"

#include <math.h>

uint32_t dropout_threshold(struct dropout d)
{
    return (uint32_t)lrint(d.p * 65536.0);
}

double dropout_scale(struct dropout d)
{
    return 65536.0 / (65536.0 - dropout_threshold(d));
}
