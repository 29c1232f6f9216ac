/* bert_acts: the activations of a micro-batch of BERT, for nn/bert/bert_model.c and nn/bert/bert_visit.c. */
#ifndef KILN_NN_BERT_ACTS_H
#define KILN_NN_BERT_ACTS_H

#include "nn/bert/bert_model.h"
#include "nn/vector_head.h"

struct bert_acts {
    struct layer_form form; /* form of the slice of layers that is here */
    int n_slices;           /* slices of layers and words, on all ranks */
    struct bert_embed_acts embed;
    struct bert_layer_acts *layers; /* [num_hidden_layers] */
    struct row_picks picks;         /* rows of the last layer that the heads read; none without a backward */
    struct bert_head_acts heads;    /* activations of the task's heads: the others are null tensors */
    struct bert_qa_acts qa;
    struct bert_classifier_acts classifier;
    struct vector_head_acts vectors;
    struct layer_scratch scratch;
};

/* The rows that a layer computes after its attention; NULL: all. */
static inline const struct row_picks *bert_acts_picks(const struct model *m, const struct bert_acts *a,
                                                      int64_t layer)
{
    return layer == m->n_layers - 1 && a->picks.n_lists > 0 ? &a->picks : NULL;
}

/* The unit of the classifier's rows: sequences or tokens. */
static inline enum batch_rows bert_acts_classified(enum model_task task)
{
    return task == MODEL_TASK_TOKEN_CLASSIFICATION ? BATCH_OF_TOKENS : BATCH_OF_SEQUENCES;
}

#endif
