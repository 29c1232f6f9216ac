/* train_prompts: texts to try a model with while `kiln train` trains it: the beginnings of held-out texts. */
#ifndef KILN_CMD_TRAIN_PROMPTS_H
#define KILN_CMD_TRAIN_PROMPTS_H

#include "core/status.h"

enum { TRAIN_N_PROMPTS = 3 };

struct train_prompts {
    char *of[TRAIN_N_PROMPTS]; /* [n] */
    int n;
};

/* Takes the first words of sequences of the store DATA/heldout; with `masked` a word is replaced by [MASK].
 * There may be fewer than TRAIN_N_PROMPTS. */
struct status train_prompts_choose(struct train_prompts *p, const char *data, const char *vocab_file,
                                   bool masked);
void train_prompts_fini(struct train_prompts *p);

#endif
