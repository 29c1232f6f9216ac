/* squad_predict: the request for the logits of each feature, from which answers to questions are made. */
#ifndef KILN_SERVE_SQUAD_PREDICT_H
#define KILN_SERVE_SQUAD_PREDICT_H

#include "data/squad_answers.h"
#include "serve/request.h"

/* The request for all features of the answers, which the caller then finishes.  Borrows them. */
struct request squad_predict_request(struct squad_answers *answers);

#endif
