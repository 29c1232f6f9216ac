/* predict: what a model's head says of many examples, a batch being computed while the one before it is looked at and the
 * one behind it is put together. */
#ifndef KILN_SERVE_PREDICT_H
#define KILN_SERVE_PREDICT_H

#include "core/progress.h"
#include "data/example_batches.h"
#include "pass/network.h"

struct predict_options {
    struct example_source source;
    int64_t batch_size; /* examples at once, sorted by length */
    int32_t pad_id;
    int output;           /* of the model (model_type.head_output), fp32 [rows, n_logits] */
    enum batch_rows rows; /* of tokens or of sequences */
    int64_t n_logits;
    const char *what; /* for messages: "the scores of the answers" */

    /* Gets the logits of an example, [n_rows, n_logits], where n_rows is 1 or one for each of its tokens; in any order. */
    struct status (*take)(void *self, int64_t example, const float *logits, int64_t n_rows);
    void *self;
    struct progress *progress;
    bool (*stopped)(void); /* asked after each batch whether to leave; NULL: never */
};

/* Limits of its batches, for planning. */
struct batch_limits predict_limits(const struct example_source *source, int64_t batch_size);

/* Ends with STATUS_PREEMPTED when it was stopped, STATUS_NUMERIC when a logit is not finite. */
struct status predict_run(struct network *n, const struct predict_options *o);

#endif
