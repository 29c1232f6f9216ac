/* session: a model directory ready to answer: vocabulary, tokenizer, weights and the memory of one forward
 * pass.  It belongs to one thread. */
#ifndef KILN_SERVE_SESSION_H
#define KILN_SERVE_SESSION_H

#include "nn/bert_model.h"
#include "ops/backend.h"
#include "serve/predict.h"
#include "serve/sentence_model.h"
#include "text/tokenizer.h"
#include "model/bert_family.h"

/* Where and in which numbers a model computes. */
struct session_options {
    struct backend backend;
    enum dtype dtype; /* of activations and of the matrices that products read */
};

/* The cpu, fp32. */
struct session_options session_defaults(void);

/* By name: a device of backend_find, and "fp32", "bf16" or "fp16".  STATUS_USAGE says why that cannot be
 * had. */
struct status session_options_find(struct session_options *o, const char *device, const char *dtype);

struct session {
    struct tokenizer own_tokenizer;    /* what `tokenizer` views, where the session is no shared one */
    const struct tokenizer *tokenizer; /* of the model */
    struct tokenizer_scratch scratch;
    int64_t max_length;   /* tokens that the model reads at once, special ones included */
    int64_t batch_tokens; /* of the texts that are run at once, if one alone does not take more */
    struct bert_model bert;
    struct network model; /* of `bert` */
    struct batch batch;
    int64_t text_length;                   /* of max_length, what serve/embed reads of a text */
    struct sentence_model files;           /* what `sentence` views, where the session is no shared one */
    const struct sentence_model *sentence; /* how the model makes vectors */
    struct status sentence_status;         /* why kiln cannot make them, of session_open_model */
    struct label_names *labels;            /* of a classifier, where the session is no shared one */
    bool shared;                           /* tokenizer and weights are another session's */
};

/* Opens a checkpoint or any model directory (model/model_dir.h) for a task, whose head it must have; the
 * pooler of BERT_TASK_ENCODER may be missing, since nothing reads it.  A batch of BERT_TASK_MASKED_LM is one
 * text; of the other tasks, as many as fit batch_tokens.  For BERT_TASK_ENCODER the files of a sentence model
 * are read too, and refused as sentence_model_open does. */
struct status session_open(struct session *s, const char *path, enum bert_task task,
                           const struct session_options *o);

/* Opens all that a model directory holds, for session_open_shared: with next to no memory for activations. */
struct status session_open_model(struct session *s, const char *path, const struct session_options *o);

/* Opens a session for a task over the tokenizer and weights of `model`, which session_open_model opened and
 * which must outlive it; sessions over one model may run in different threads, on a device each in a context
 * of its own.  Neither of the two may be moved.  STATUS_DATA: the model lacks the task's head, or makes its
 * vectors in a way that kiln cannot. */
struct status session_open_shared(struct session *s, const struct session *model, enum bert_task task);

/* Safe on a zeroed struct and after a failed open. */
void session_close(struct session *s);

/* Examples of up to max_length tokens that the session runs at once. */
int64_t session_batch_size(const struct session *s, int64_t max_length);

/* predict_run in the session's batches, showing nothing. */
struct status session_predict(struct session *s, struct predict_options o);

/* What a session on this model needs, reading no weights. */
struct status session_plan(struct network_plan *plan, const char *path, enum bert_task task,
                           const struct session_options *o);

#endif
