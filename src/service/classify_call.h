/* classify_call: the labels of texts, or of pairs of texts, of a request. */
#ifndef KILN_SERVICE_CLASSIFY_CALL_H
#define KILN_SERVICE_CLASSIFY_CALL_H

#include "serve/classify_texts.h"
#include "service/call.h"

enum { CLASSIFY_TEXTS = 16384 };

struct classify_call {
    struct call *call;

    /* For the endpoint to set, before classify_call_start. */
    struct text_bytes *texts, *pairs; /* [n], owned; `pairs` NULL: single texts */
    size_t n;
    enum text_cut cut;
    enum label_problem problem; /* how scores are made of logits */
    int64_t top_k;              /* labels of a text in the answer */
    void (*answer)(struct classify_call *k);

    struct classify_job job;
    struct request *requests[1];
};

/* Hangs a zeroed struct of so many bytes, which begins with one, on the call.  NULL: the call has failed. */
void *classify_call_make(struct call *c, size_t bytes);

/* Allocates k->texts, for n texts, and k->pairs if they are pairs.  False: the call has failed. */
bool classify_call_make_room(struct classify_call *k, size_t n, bool of_pairs);

/* Classifies with c->model (call_model); the call then ends by k->answer or has failed. */
void classify_call_start(struct classify_call *k);

/* The logits of a text, [labels]. */
const float *classify_call_logits(const struct classify_call *k, int64_t text);

/* [{"score", "label"}] of a text, by score, at most top_k; NULL if memory runs out. */
json_t *classify_call_labels(const struct classify_call *k, int64_t text);

#endif
