/* plateau: tells a user whether a loss that does not fall is a reason to worry.
 *
 * Masked-word models first learn how often each word occurs, and stay at about that loss for a while before
 * they learn what surrounds a word; then the loss drops within few steps.  Many take the plateau for a
 * fault. */
#ifndef KILN_TASK_PLATEAU_H
#define KILN_TASK_PLATEAU_H

#include "train/evaluate.h"

/* Where training stands against the frequencies of words. */
enum plateau_stage {
    PLATEAU_UNKNOWN, /* nothing measured yet, or above it */
    PLATEAU_ON,      /* the loss is within a tenth of theirs: said once */
    PLATEAU_LONG,    /* for longer than is usual: said once, with what to look at */
    PLATEAU_BEHIND,  /* left: said once, if it was seen */
};

struct plateau {
    enum plateau_stage stage;
};

/* After an evaluation at optimizer step `step` of the run: prints a line when the stage changes. */
void plateau_watch(struct plateau *p, int64_t step, const struct trainer_result *heldout,
                   const struct unigram *unigram);

#endif
