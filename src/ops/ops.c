#include "ops/ops.h"

#include <math.h>

uint32_t dropout_threshold(struct dropout d)
{
    return (uint32_t)lrint(d.p * 65536.0);
}

int64_t optim_chunks(const struct optim_span *spans, int64_t n_spans)
{
    int64_t chunks = 0;
    for (int64_t s = 0; s < n_spans; s++) {
        chunks += (spans[s].n + OPTIM_CHUNK - 1) / OPTIM_CHUNK;
    }
    return chunks;
}

double dropout_scale(struct dropout d)
{
    return 65536.0 / (65536.0 - dropout_threshold(d));
}
