/* predict: the output of a model's head for many examples.  While the device computes a batch, the host reads
 * the previous one's output and assembles the next batch. */
#ifndef KILN_SERVE_PREDICT_H
#define KILN_SERVE_PREDICT_H

#include "core/progress.h"
#include "data/sorted_batches.h"
#include "pass/network.h"

struct predict_options {
    struct example_source source;
    struct batch_limits limits; /* of a batch, within the network's: as many examples run at once as fit */
    int32_t pad_id;
    enum model_output output; /* fp32 [rows, n_logits] */
    enum batch_rows rows;     /* of tokens or of sequences */
    int64_t n_logits;
    const char *what; /* for messages: "the scores of the answers" */

    /* Called with the logits of each example, [n_rows, n_logits], in any order of examples; n_rows is 1, or
     * the number of its tokens. */
    struct status (*take)(void *self, int64_t example, const float *logits, int64_t n_rows);
    void *self;
    struct progress *progress;
    bool (*stopped)(void); /* called after each batch: whether to stop; NULL: never */
};

/* Ends with STATUS_PREEMPTED when it was stopped, STATUS_NUMERIC when a logit is not finite. */
struct status predict_run(struct network *n, const struct predict_options *o);

#endif
