/* model_measures: the measures of models: each measure is a loss and the fraction of right answers, under the
 * names that they have in logs.
 *
 * The rule: a model adds its sums from this table, so a reader of a log finds the words for every column of
 * it here, without the model. */
#ifndef KILN_NN_MODEL_MEASURES_H
#define KILN_NN_MODEL_MEASURES_H

#include "nn/model.h"

enum model_measure_id {
    MEASURE_MASKED_WORDS,
    MEASURE_NEXT_SENTENCE,
    MEASURE_NEXT_TOKEN,
    MEASURE_ANSWER,
    MEASURE_LABEL,
    N_MEASURES,
};

struct model_measure {
    const char *loss, *loss_text; /* name and text of struct model_sum */
    const char *accuracy, *accuracy_text;
    const char *of; /* predicted things, for people: "masked words" */
    bool of_words;  /* a prediction is a token of the vocabulary, so token frequencies are a baseline */
};

extern const struct model_measure model_measures[N_MEASURES];

/* Appends the measure's loss and count of right answers to the model's sums; `labels` is the batch's field
 * that holds the right answers. */
void model_add_measure(struct model *m, enum model_measure_id id, int labels);

#endif
