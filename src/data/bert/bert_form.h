/* bert_form: what the sequences of bert_loader are like, and how many there are: the arithmetic of its
 * configuration, without a token of the store. */
#ifndef KILN_DATA_BERT_FORM_H
#define KILN_DATA_BERT_FORM_H

#include "data/bert/bert_loader.h"

/* Checks a configuration without a store.  STATUS_USAGE names the flag. */
struct status bert_form_check(const struct bert_loader_config *c);

/* Upper bounds of every micro-batch, from a configuration that passed bert_form_check. */
struct batch_limits bert_form_limits(const struct bert_loader_config *c);

/* The special tokens of a sequence: around a pair of ranges or, without next-sentence prediction, around
 * one. */
struct input_form bert_form_frame(const struct bert_loader_config *c);

/* The most tokens of a sequence without the special ones. */
int64_t bert_form_most_tokens(const struct bert_loader_config *c);

/* Sequences of a micro-batch. */
int64_t bert_form_micro_size(const struct bert_loader_config *c);

#endif
