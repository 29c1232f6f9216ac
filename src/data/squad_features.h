/* squad_features: questions and windows of their contexts as token ids: [CLS] question [SEP] window [SEP].
 *
 * The rule: features are those of run_squad.py, in its order, so feature i has the unique id 1,000,000,000 +
 * i. Nothing is stored twice and nothing is padded: each question and each context is tokenized once, and a
 * feature is a window of its context's tokens.  Every token is in a window. Source: Devlin et al. 2018
 * (arXiv:1810.04805) section 4.2; convert_examples_to_features of run_squad.py. */
#ifndef KILN_DATA_SQUAD_FEATURES_H
#define KILN_DATA_SQUAD_FEATURES_H

#include "data/encoded_texts.h"
#include "data/squad_examples.h"

struct squad_feature_options {
    int64_t max_length;       /* tokens of a feature, at least 5; 384 */
    int64_t doc_stride;       /* tokens from one window to the next, at least 1; 128 */
    int64_t max_query_length; /* a question is cut after this many pieces, at least 1; 64 */
    bool training;            /* answers were aligned: start and end are set */
};

struct squad_feature {
    int32_t example;
    int32_t start, end; /* labels: positions in the feature, both included; 0, 0: not in this window */
};

struct squad_features {
    struct squad_feature *features; /* [n] */
    int64_t n, n_examples;
    /* [n_examples + 1] features of example x: from [x] up to [x + 1]; may be empty */
    int64_t *first_features;
    struct encoded_texts texts; /* [n] a question and a window; the tokens of contexts come first */
    int32_t *token_words;       /* the word that each token of a context is from, counted in its context */
};

/* Borrows nothing.  STATUS_USAGE: lengths outside their limits; STATUS_DATA: a question leaves no token for
 * its context, or the tokenizer has no token to begin or separate texts.  A context whose words all vanish in
 * tokenization has no features.  Warns of a doc_stride longer than a window: windows then follow each other
 * without overlap. */
struct status squad_features_build(struct squad_features *f, const struct squad_examples *e,
                                   const struct tokenizer *tokenizer, struct squad_feature_options o);

/* Does what squad_features_build does, with the caller's scratch. */
struct status squad_features_encode(struct squad_features *f, const struct squad_examples *e,
                                    struct tokenizer_scratch *scratch, struct squad_feature_options o);
void squad_features_fini(struct squad_features *f);

/* The features as examples (data/example_source.h), with their answers.  Borrows them. */
struct example_source squad_features_source(const struct squad_features *f);

/* The word of the context that a position is from; -1 for the question and special tokens. */
int32_t squad_feature_word(const struct squad_features *f, int64_t i, int64_t position);

/* Whether this window gives the context token at `position` the most context of all windows:
 * min(left, right) + 0.01 x window length; the first of equals. */
bool squad_feature_is_max_context(const struct squad_features *f, int64_t i, int64_t position);

#endif
