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
    const struct token_windows *sets; /* sets with samples of one length; borrowed */
    const struct set_blend *blend;    /* order of the sets over all samples; borrowed; NULL: there is one
                                       * set */
    int64_t batch_size, micro_size;
    struct batch_growth growth; /* growth of the batches; its batch is 0 if all are of batch_size */
    int64_t n_groups;           /* groups of micro-batches, the same number with sequences in each; 0: one */
};

/* The batches as a source, with n_micro micro-batches a step; `w` must outlive it. */
struct batch_source window_batches_source(const struct window_batches *w, int64_t n_micro);

#endif
