/* predict: answers a request of many sequences with progress, and can be stopped. */
#ifndef KILN_SERVE_PREDICT_H
#define KILN_SERVE_PREDICT_H

#include "core/progress.h"
#include "data/squad_answers.h"
#include "serve/packer.h"
#include "serve/request.h"

struct predict_options {
    struct progress *progress; /* NULL: none is shown */
    bool (*stopped)(void);     /* asked after each batch; NULL: never */
};

/* Ends with the request's status, or STATUS_PREEMPTED when it was stopped. */
struct status predict_run(struct packer *p, struct request *r, const struct predict_options *o);

/* The request for the logits of all features, from which answers to questions are made; the caller then
 * finishes the answers, which are borrowed. */
struct request predict_answers_request(struct squad_answers *answers);

#endif
