/* squad_predict: takes the logits of each feature for the answers to questions. */
#ifndef KILN_SERVE_SQUAD_PREDICT_H
#define KILN_SERVE_SQUAD_PREDICT_H

#include "data/squad_answers.h"
#include "serve/request.h"

/* The logits of one feature as starts and ends, for the answers. */
struct squad_prediction {
    struct squad_answers *answers; /* initialised for the features; borrowed */
    float *start, *end;            /* [features->texts.max_length] */
    int64_t *order;                /* [features->n] of the request: the longest first */
};

/* Fini is safe on a zeroed struct and after a failed init. */
struct status squad_predict_init(struct squad_prediction *p, struct squad_answers *answers);
void squad_predict_fini(struct squad_prediction *p);

/* The request for the logits of all features; the caller then finishes the answers. */
struct request squad_predict_request(struct squad_prediction *p);

#endif
