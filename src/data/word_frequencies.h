/* word_frequencies: how often each piece of the vocabulary occurs in a text. */
#ifndef KILN_DATA_WORD_FREQUENCIES_H
#define KILN_DATA_WORD_FREQUENCIES_H

#include "data/batch_source.h"

/* Sets p[0, n) to the shares of pieces 0 to n - 1 among the words of a source.  They sum to 1, and none is 0: each piece counts once more
 * than it occurs (Laplace). */
struct status word_frequencies(double *p, int64_t n, const struct batch_source *source);

#endif
