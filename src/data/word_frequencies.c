#include "data/word_frequencies.h"

struct status word_frequencies(double *p, int64_t n, const struct batch_source *source)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        p[i] = 1;
    }
    TRY(source->count_words(source->self, p, n));
    for (int64_t i = 0; i < n; i++) {
        total += p[i];
    }
    for (int64_t i = 0; i < n; i++) {
        p[i] /= total;
    }
    return status_ok();
}
