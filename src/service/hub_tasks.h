/* hub_tasks: what huggingface_hub's client asks a model by `POST /`, one task a file.  The result is that of
 * the pipeline of transformers with the task's name; offsets are characters.
 *
 * Each function answers a call whose c->body has "inputs" and perhaps "parameters", with c->model, which has
 * the head of the task. */
#ifndef KILN_SERVICE_HUB_TASKS_H
#define KILN_SERVICE_HUB_TASKS_H

#include "service/call.h"

/* Answers {"question", "context"}. */
void hub_ask_answer(struct call *c);
void hub_fill_answer(struct call *c);            /* a text with [MASK], or several */
void hub_tag_answer(struct call *c);             /* a text, or several */
void hub_classify_answer(struct call *c);        /* a text or {"text", "text_pair"}, or several */
void hub_classify_answer_labels(struct call *c); /* zero-shot: "candidate_labels" of a text */

enum { HUB_INPUTS = 4096 }; /* inputs of a request at most; each is a job of its own */

/* The jobs of a call's inputs, in an array, and the task's data for the time when they have ended. */
struct hub_jobs {
    bool is_list; /* "inputs" is one; else it is the only input */
    size_t n, job_bytes;
    char *jobs; /* [n] of job_bytes; each begins with its request */
    void (*fini)(void *job);
    struct request **requests; /* [n] */
    int64_t own;               /* the task's */
};

/* Hangs n zeroed jobs on the call, n the number of inputs.  NULL: the call has failed, also where there is no
 * input, or there are too many. */
struct hub_jobs *hub_jobs_make(struct call *c, size_t job_bytes, void (*fini)(void *job));

/* Input i, and its job. */
const json_t *hub_input(const struct call *c, const struct hub_jobs *h, size_t i);
void *hub_job(const struct hub_jobs *h, size_t i);

/* Makes each input's job with `make`, of which a failure fails the call, and hands them over; `finish` runs
 * once all have ended. */
void hub_submit(struct call *c, enum answer a,
                struct status (*make)(struct call *c, void *job, const json_t *input,
                                      struct tokenizer_scratch *scratch, const void *options),
                const void *options, void (*finish)(struct call *c));

/* Replies with the results of all inputs, a list of them or the only one; takes the list over. */
void hub_reply(struct call *c, json_t *results);

/* The object "parameters", or NULL.  False: the call has failed. */
bool hub_read_parameters(struct call *c, const json_t **parameters);

#endif
