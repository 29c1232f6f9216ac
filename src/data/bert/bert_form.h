/* bert_form: what the sequences of a step of bert_loader are like, and how many there are: the arithmetic of
 * its configuration, without a token of the store. */
#ifndef KILN_DATA_BERT_FORM_H
#define KILN_DATA_BERT_FORM_H

#include "data/bert/bert_loader.h"

/* Checks a configuration without a store.  STATUS_USAGE names the flag. */
struct status bert_form_check(const struct bert_loader_config *c);

/* Upper bounds of every micro-batch, from a configuration that has passed. */
struct batch_limits bert_form_limits(const struct bert_loader_config *c);

/* What the samples of a step, or of held-out text, are like. */
struct bert_form {
    const struct sample_map *map;
    int64_t max_seq_length, max_predictions;
    int64_t n_micro, micro_size; /* micro-batches that are filled, and their sequences */
    double mask_rate;
};

/* The form of a step, by the part of the run that is done before it; and that of the end of the run, which
 * held-out text has. */
struct bert_form bert_form_of(const struct bert_loader *l, int64_t step);
struct bert_form bert_form_last(const struct bert_loader *l);

/* The special tokens of a sequence: around a pair of ranges or, without next-sentence prediction, around
 * one. */
struct input_form bert_form_frame(const struct bert_loader_config *c);

/* Tokens of a sequence of this length without the special ones. */
int64_t bert_form_most_tokens(const struct bert_loader_config *c, int64_t max_seq_length);

/* Sequences of a step, of the shortest length. */
int64_t bert_form_most_sequences(const struct bert_loader_config *c);

/* Groups of micro-batches, at least 1. */
int64_t bert_form_groups(const struct bert_loader_config *c);

#endif
