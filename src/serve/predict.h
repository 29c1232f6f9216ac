/* predict: answers a request of many sequences with progress, and can be stopped. */
#ifndef KILN_SERVE_PREDICT_H
#define KILN_SERVE_PREDICT_H

#include "core/progress.h"
#include "serve/packer.h"

struct predict_options {
    struct progress *progress; /* NULL: none is shown */
    bool (*stopped)(void);     /* asked after each batch; NULL: never */
};

/* Ends with the request's status, or STATUS_PREEMPTED when it was stopped. */
struct status predict_run(struct packer *p, struct request *r, const struct predict_options *o);

#endif
