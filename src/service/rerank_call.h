/* rerank_call: how well texts answer a query, by a classifier of one label that reads the query and each text
 * as a pair (Nogueira & Cho 2019, arXiv:1901.04085). */
#ifndef KILN_SERVICE_RERANK_CALL_H
#define KILN_SERVICE_RERANK_CALL_H

#include "service/classify_call.h"

struct ranked_text {
    int64_t index; /* index in the texts */
    double score;
};

/* How a score is made of the model's logit. */
enum rerank_scale { RERANK_LOGIT, RERANK_SIGMOID, RERANK_AS_MODEL /* serve/session.h */ };

struct rerank_call {
    struct classify_call classify; /* the pairs' call; the endpoint fills in pairs[], the texts, and `cut` */

    /* For the endpoint to set, before rerank_call_start. */
    const char *model; /* NULL: none is named */
    const char *query;
    enum rerank_scale scale;
    bool gives_texts; /* the answer has the texts */
    int64_t most;     /* texts in the answer */

    /* Replies, once the texts are ranked. */
    void (*answer)(struct rerank_call *r);

    struct ranked_text *ranked; /* [n], the best first; valid for `answer` */
};

/* Hangs one on the call, for n texts.  NULL: the call has failed. */
struct rerank_call *rerank_call_make(struct call *c, size_t n);

/* Ranks the texts; the call then ends by r->answer or has failed. */
void rerank_call_start(struct rerank_call *r);

#endif
