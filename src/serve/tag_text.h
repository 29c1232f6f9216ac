/* tag_text: the tokens of a text, its words or what its words name, by a model fine-tuned for that, with the
 * "aggregation_strategy" of transformers' TokenClassificationPipeline.  A text of any length is read
 * completely.  Its words are found by the tokenizer; serve/tag_words.h has those of a caller. */
#ifndef KILN_SERVE_TAG_TEXT_H
#define KILN_SERVE_TAG_TEXT_H

#include "serve/class_logits.h"
#include "serve/session.h"

enum tag_strategy { TAG_NONE, TAG_SIMPLE, TAG_FIRST, TAG_AVERAGE, TAG_MAX };
#define TAG_STRATEGIES "none|simple|first|average|max"
extern const char *const tag_strategies[]; /* these names, by the enum, and NULL */

/* A text as a job (serve/request.h).  One that is longer than the model reads is read in windows that
 * overlap; a token counts where it has more of the text on both sides. */
struct tag_text_job {
    struct request request;
    const struct model_labels *labels; /* labels of the session's model, borrowed */
    const struct tokenizer *tokenizer; /* tokenizer of the session, borrowed */
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

/* [{"entity", "score", "index", "word", "start", "end"}] of the tokens, or with a strategy
 * [{"entity_group", "score", "word", "start", "end"}]: places in characters.  Labels and types of the array
 * `ignored` are left out; NULL: "O" is.  The caller json_decref's it; NULL: out of memory. */
json_t *tag_text_to_json(const struct tag_text_job *j, const char *text, enum tag_strategy strategy,
                         const json_t *ignored);

#endif
