/* classify_texts: the labels of texts, or of pairs of texts, by a model fine-tuned for that (kiln classify,
 * or a BertForSequenceClassification of Hugging Face). */
#ifndef KILN_SERVE_CLASSIFY_TEXTS_H
#define KILN_SERVE_CLASSIFY_TEXTS_H

#include "serve/class_logits.h"
#include "serve/session.h"

struct classify_result {
    struct class_reading *readings; /* [n, n_labels], as classify_texts orders them */
    int64_t n, n_labels;
    int64_t n_cut; /* texts or pairs with too many tokens, of which only the beginning was read */
};

/* Texts as a job (serve/request.h). */
struct classify_job {
    struct request request;
    const struct model_labels *labels; /* labels of the session's model, borrowed */
    struct encoded_texts texts;
    struct class_logits logits;
};

/* Makes the job of texts, as classify_texts, but cuts them as `cut` says; the texts are not read after it. */
struct status classify_job_make(struct classify_job *j, const struct session *s,
                                struct tokenizer_scratch *scratch, const struct text_bytes *texts,
                                const struct text_bytes *pairs, size_t n, enum text_cut cut);
struct status classify_job_read(const struct classify_job *j, struct classify_result *result);
void classify_job_fini(struct classify_job *j);

/* The kind of a model's scores as transformers' pipeline has them: for one label a sigmoid, unless
 * "problem_type" says regression. */
enum label_problem classify_texts_problem(const struct session *model);

/* [{"score", "label"}] of a text, by score, at most top_k; NULL if memory runs out. */
json_t *classify_job_to_json(const struct classify_job *j, int64_t text, enum label_problem problem,
                             int64_t top_k);

/* Classifies `texts`, with pairs[i] after texts[i] unless `pairs` is NULL, in a session of
 * MODEL_TASK_SEQUENCE_CLASSIFICATION.  The labels of a text are sorted by score, the highest first; numbers
 * (PROBLEM_REGRESSION) are in the model's order.  A text does not depend on its neighbours.  STATUS_NUMERIC
 * if the model computes something that is not finite. */
struct status classify_texts(struct session *s, struct classify_result *result,
                             const struct text_bytes *texts, const struct text_bytes *pairs, size_t n);
void classify_result_fini(struct classify_result *r);

#endif
