/* plateau: reports whether a loss that does not fall is a reason to worry.
 *
 * Masked-word models first learn how often each word occurs, and stay at about that loss for a while before
 * they learn to use the context of a word.  Then the loss drops within a few steps.  Users often take the
 * plateau for a fault.  Decoders fall through it.  A model that has not even reached it after a tenth of its
 * run learns nothing. */
#ifndef KILN_TASK_PLATEAU_H
#define KILN_TASK_PLATEAU_H

#include "train/evaluate.h"

/* The state of training relative to the loss of word frequencies. */
enum plateau_stage {
    PLATEAU_UNKNOWN, /* the loss is not evaluated yet, or above it */
    PLATEAU_ON,      /* the loss is within a tenth of it: logged once */
    PLATEAU_LONG,    /* the loss is on it or above for longer than usual: logged once, with advice */
    PLATEAU_BEHIND,  /* the loss has left it: logged once, if it was on it before */
};

struct plateau {
    enum plateau_stage stage;
    bool is_masked;     /* the model learns masked words, and may stay on the plateau */
    const char *advice; /* flags that the run has not, as a part of a sentence; NULL: none */
    double sum;         /* sum of the losses of words in training since the last look */
    int64_t n_steps;    /* steps in the sum */
    bool looked;        /* the loss of training has been compared */
    bool is_above;      /* training was above the loss of word frequencies */
};

/* Called after a step of training; `due`: a tenth of the run and its warm-up are over.  Warns once, about the
 * last steps, if they are above the loss of word frequencies: unigram->loss, 0 where it is not known. */
void plateau_look(struct plateau *p, int64_t step, bool due, const struct trainer_result *result,
                  const struct unigram *unigram);

/* Called after an evaluation at optimizer step `step` of the run, whose first sum is the loss of words: logs
 * a line when the state of a model of masked words changes. */
void plateau_watch(struct plateau *p, int64_t step, const struct trainer_result *heldout,
                   const struct unigram *unigram);

#endif
