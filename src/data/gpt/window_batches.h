/* window_batches: batches for a decoder of the samples of one or several sets (data/gpt/token_windows.h).
 *
 * The rule: sample number g of a run is sample g of the only set, or what the blend says
 * (data/gpt/set_blend.h); so any step can be made directly, and a resumed run sees the same samples. */
#ifndef KILN_DATA_GPT_WINDOW_BATCHES_H
#define KILN_DATA_GPT_WINDOW_BATCHES_H

#include "core/batch_growth.h"
#include "data/batch_source.h"
#include "data/gpt/set_blend.h"
#include "data/gpt/token_windows.h"

struct window_batches {
    const struct token_windows *sets; /* of samples of one length; borrowed */
    const struct set_blend *blend;    /* of all samples of the run; borrowed; NULL: there is one set */
    int64_t batch_size, micro_size;
    struct batch_growth growth; /* of the batches; its batch is 0 if all are of batch_size */
    int64_t n_groups;           /* of micro-batches, which have equally many with sequences; 0: one */
};

/* `w` must outlive the source. */
struct batch_source window_batches_source(const struct window_batches *w, int64_t n_micro);

#endif
