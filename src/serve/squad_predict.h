/* squad_predict: takes the logits of each feature for the answers to questions. */
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

/* Fills the arguments of predict_run, except limits, padding and progress; the caller then finishes the
 * answers. */
struct predict_options squad_predict_options(struct squad_prediction *p);

#endif
