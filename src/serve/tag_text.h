/* tag_text: scores of the labels of each token of a text as people write it, with the token's place.  A text
 * that is longer than the model reads is read in windows that overlap; a token counts where it has more of
 * the text on both sides. */
#ifndef KILN_SERVE_TAG_TEXT_H
#define KILN_SERVE_TAG_TEXT_H

#include "serve/class_logits.h"
#include "serve/session.h"

/* A text as a job (serve/request.h). */
struct tag_text_job {
    struct request request;
    const struct model_labels *labels; /* labels of the session's model, borrowed */
    struct token_list tokens;          /* tokens of the text, without special tokens */
    int64_t room, stride;              /* tokens of a window, and of its overlap with the next */
    int64_t n_before;                  /* special tokens before them */
    struct encoded_texts windows;
    struct class_logits logits;
};

/* Makes the job of a text, in a session of MODEL_TASK_TOKEN_CLASSIFICATION.  `stride` < 0: a quarter of a
 * window. The text is not read after it. STATUS_USAGE: the stride is as long as a window. */
struct status tag_text_job_make(struct tag_text_job *j, const struct session *s,
                                struct tokenizer_scratch *scratch, const struct text_bytes *text,
                                int64_t stride);
void tag_text_job_fini(struct tag_text_job *j);

/* The logits of a token, [labels->n]. */
const float *tag_text_logits(const struct tag_text_job *j, int64_t token);

#endif
