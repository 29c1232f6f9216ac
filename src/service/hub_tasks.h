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

enum { HUB_INPUTS = 4096 }; /* inputs of a request at most, each of which is a job of its own */

/* Whether "inputs" is a list; else it is the only input. */
bool hub_is_list(const struct call *c);

/* How many inputs there are.  0: the call has failed, also where there are more than `most`. */
size_t hub_count(struct call *c, size_t most);

/* Input i. */
const json_t *hub_input(const struct call *c, size_t i);

/* A job for each input. */
struct hub_job_kind {
    enum answer answer;
    size_t job_bytes; /* a job begins with its request */

    /* Makes the job of an input; a failure fails the call. */
    struct status (*make)(struct call *c, void *job, const json_t *input, struct tokenizer_scratch *scratch,
                          const void *options);

    /* The result of a job that has ended; `own` is hub_submit's. */
    struct status (*read)(json_t **result, const struct call *c, void *job, const json_t *input, int64_t own);
    void (*fini)(void *job);
};

/* Makes the jobs of n inputs and hands them over.  Once all have ended, it replies with the results, a list
 * of them or the only one. */
void hub_submit(struct call *c, const struct hub_job_kind *kind, size_t n, const void *options, int64_t own);

#endif
