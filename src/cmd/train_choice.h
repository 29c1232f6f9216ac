/* train_choice: what `kiln train` chooses for a text, a machine and a time: vocabulary, model, samples and
 * steps.
 *
 * The rules come from runs of this program on English text (docs/numbers/learning.md):
 *   - The model is the largest that sees at least TRAIN_TOKENS_PER_WEIGHT tokens for each weight of a layer.
 *   - Text is repeated TRAIN_MOST_EPOCHS times at most: beyond that a model learns it by heart.
 *   - Small steps learn more of each token, as long as there are few tokens. */
#ifndef KILN_CMD_TRAIN_CHOICE_H
#define KILN_CMD_TRAIN_CHOICE_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRAIN_TOKENS_PER_WEIGHT = 3, TRAIN_MOST_EPOCHS = 12 };

/* A size of model. */
struct train_size {
    int64_t n_layers, width, n_heads;
};

/* What there is to choose from. */
struct train_facts {
    bool masked;        /* words are masked; else the next one is predicted */
    int64_t n_tokens;   /* tokens of the text to train on */
    int64_t vocab_size; /* pieces */
    double flops_per_s; /* products of this machine, in the faster dtype */
    double seconds;     /* time to train */
};

struct train_choice {
    const struct train_size *size;
    int64_t n_weights;       /* weights of the layers */
    int64_t length, batch;   /* tokens of a sample, samples of a step */
    double n_tokens, epochs; /* tokens that the time is enough for, about */
    int64_t n_steps;         /* steps of these tokens, about */
    bool ends_by_steps;      /* the time is enough for more epochs than help */
    double bits[2];          /* bits a byte to expect of a decoder on held-out text, from and to */
};

/* Pieces of a vocabulary for a text of so many bytes. */
int64_t train_choice_vocab_size(int64_t n_bytes);

/* The choice; the smallest size if none sees so many tokens. */
struct train_choice train_choice_make(const struct train_facts *f);

/* ---- texts to try the model with while it learns: the beginnings of held-out texts ---- */

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
