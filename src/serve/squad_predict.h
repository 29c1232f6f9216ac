/* squad_predict: the logits of every feature, batch by batch, longest first, and the answers that follow. */
#ifndef KILN_SERVE_SQUAD_PREDICT_H
#define KILN_SERVE_SQUAD_PREDICT_H

#include "data/squad_answers.h"
#include "serve/predict.h"

/* The logits of one feature as starts and ends, for the answers. */
struct squad_prediction {
    struct squad_answers *answers; /* initialised for the features; borrowed */
    float *start, *end;            /* [features->max_length] */
};

/* Fini is safe on a zeroed struct and after a failed init. */
struct status squad_predict_init(struct squad_prediction *p, struct squad_answers *answers);
void squad_predict_fini(struct squad_prediction *p);

/* Fills the arguments of predict_run, except batch size, padding and progress; the caller then finishes the
 * answers. */
struct predict_options squad_predict_options(struct squad_prediction *p);

/* Runs the model on all features of `answers`, which was initialised for them, and finishes it.  `progress`
 * shows how far it is.  `stopped`, which may be NULL, is called after each batch and says whether to stop.
 * STATUS_NUMERIC: the model computes something that is not finite; STATUS_PREEMPTED if it was stopped. */
struct status squad_predict(struct network *n, struct squad_answers *answers, int64_t batch_size,
                            int32_t pad_id, struct progress *progress, bool (*stopped)(void));

#endif
