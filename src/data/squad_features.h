/* squad_features: questions and windows of their contexts as token ids: [CLS] question [SEP] window [SEP].
 *
 * The rule: features are those of run_squad.py, in its order, so feature i has the unique id 1,000,000,000 +
 * i. Nothing is stored twice and nothing is padded: each question and each context is tokenized once, and a
 * feature is a window of its context's tokens.  Every token is in a window. Source: Devlin et al. 2018
 * (arXiv:1810.04805) section 4.2; convert_examples_to_features of run_squad.py. */
#ifndef KILN_DATA_SQUAD_FEATURES_H
#define KILN_DATA_SQUAD_FEATURES_H

#include "data/squad_examples.h"
#include "text/tokenizer.h"

#include <stdint.h>

struct squad_feature_options {
    int64_t max_seq_length;   /* of a feature, at least 5; 384 */
    int64_t doc_stride;       /* from one window to the next, at least 1; 128 */
    int64_t max_query_length; /* a question is cut after this many pieces, at least 1; 64 */
    bool training;            /* answers were aligned: start and end are set */
};

struct squad_feature {
    int32_t example;
    int32_t window_start, window_length; /* tokens of the context */
    int32_t start, end; /* labels: positions in the feature, both included; 0, 0: not in this window */
};

struct squad_features {
    struct squad_feature *features; /* [n] */
    int64_t n;
    int64_t n_examples, n_contexts;
    /* [n_examples + 1] features of example x: from [x] up to [x + 1]; may be empty */
    int64_t *first_features;
    int64_t *question_starts;  /* [n_examples + 1] in question_ids */
    int32_t *question_ids;     /* already cut */
    int32_t *example_contexts; /* [n_examples] */
    int64_t *context_starts;   /* [n_contexts + 1] in context_ids */
    int32_t *context_ids;      /* tokens of all contexts */
    int32_t *token_words;      /* [context_starts[n_contexts]] word of its context that a token is from */
    struct input_form form;    /* of a question and a window */
    int64_t max_length;        /* of the longest feature */
};

/* Borrows nothing.  STATUS_USAGE: lengths outside their limits; STATUS_DATA: a question leaves no room for
 * its context, or the tokenizer has no token to begin or separate texts.  A context whose words all vanish in
 * tokenization has no features.  Warns of a doc_stride longer than a window: windows then follow each other
 * without overlap. */
struct status squad_features_build(struct squad_features *f, const struct squad_examples *e,
                                   const struct tokenizer *tokenizer, struct squad_feature_options o);

/* The same with the caller's scratch. */
struct status squad_features_encode(struct squad_features *f, const struct squad_examples *e,
                                    struct tokenizer_scratch *scratch, struct squad_feature_options o);
void squad_features_fini(struct squad_features *f);

/* Tokens of a feature, how many of them are segment 0, such as [CLS] question [SEP], and the place of its
 * window. */
int64_t squad_feature_length(const struct squad_features *f, int64_t i);
int64_t squad_feature_first_length(const struct squad_features *f, int64_t i);
int64_t squad_feature_window_at(const struct squad_features *f, int64_t i);

/* Writes ids[length]. */
void squad_feature_fill(const struct squad_features *f, int64_t i, int32_t *ids);

/* The word of the context that a position is from; -1 for the question and special tokens. */
int32_t squad_feature_word(const struct squad_features *f, int64_t i, int64_t position);

/* Whether this window gives the context token at `position` the most context of all windows:
 * min(left, right) + 0.01 x window length; the first of equals. */
bool squad_feature_is_max_context(const struct squad_features *f, int64_t i, int64_t position);

#endif
