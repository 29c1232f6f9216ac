/* ask: answers questions about a text of any length, with the answers' probabilities and positions. */
#ifndef KILN_SERVE_ASK_H
#define KILN_SERVE_ASK_H

#include "core/buf.h"
#include "core/progress.h"
#include "serve/session.h"
#include "serve/predict.h"

#include <stdint.h>

struct ask_options {
    int64_t top_k;             /* answers to a question */
    int64_t doc_stride;        /* tokens from one window to the next; 128 */
    int64_t max_query_length;  /* 64 */
    int64_t max_answer_length; /* tokens; 30 */
    int64_t max_length;        /* tokens of a window, special ones included; 0: all that the model reads */
    bool may_be_none;          /* the model was trained on questions without an answer (SQuAD v2) */
    struct progress *progress; /* progress of ask_question, to show; NULL: none */
};

/* Options that suit texts of any length. */
struct ask_options ask_defaults(void);

/* Tokens from one window to the next, for a model that reads few. */
int64_t ask_window_step(const struct session *s, const struct ask_options *o);

struct ask_answer {
    size_t text; /* in ask_result.texts, NUL-terminated; "" means that there is no answer */
    double probability;
    int32_t start, end; /* bytes of the context [start, end); both -1 for no answer */
};

struct ask_result {
    struct ask_answer *answers; /* [n], the most probable first */
    int64_t n;
    struct buf texts;
    int64_t n_windows; /* windows in which the context was read */
};

/* A question as a job (serve/request.h), whose result is read once. */
struct ask_job {
    struct request request;
    int64_t top_k;
    /* the chain from question to answers; each part borrows the ones before it */
    struct squad_examples examples;
    struct squad_features features;
    struct squad_answers answers;
};

/* Makes the job of a question, as ask_question; neither the question, the context nor the options are read
 * after it. */
struct status ask_job_make(struct ask_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                           const char *question, const char *context, size_t n, const struct ask_options *o);
struct status ask_job_read(struct ask_job *j, struct ask_result *result);
void ask_job_fini(struct ask_job *j);

/* Answers one question about context[0..n), with a session of MODEL_TASK_QUESTION_ANSWERING.  Reads every
 * token of the context, in overlapping windows.  STATUS_DATA: an empty context, a question that leaves no
 * token for it.  STATUS_NUMERIC if the model computes something that is not finite. */
struct status ask_question(struct session *s, const char *question, const char *context, size_t n,
                           const struct ask_options *o, struct ask_result *result);
void ask_result_fini(struct ask_result *r);

#endif
