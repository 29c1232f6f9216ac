/* answer_kind: the table of what models answer: a row for each command and session of the public interface,
 * with the heads that it needs. */
#ifndef KILN_SERVE_ANSWER_KIND_H
#define KILN_SERVE_ANSWER_KIND_H

#include "core/buf.h"
#include "nn/model.h"

/* In the order of enum kiln_task, which has the first six. */
enum answer {
    ANSWER_FILL,
    ANSWER_ASK,
    ANSWER_EMBED,
    ANSWER_CLASSIFY,
    ANSWER_TAG,
    ANSWER_GENERATE,
    ANSWER_BLIMP,
    ANSWER_EVAL,
    ANSWER_LAST_WORDS,
    ANSWER_N
};

struct answer_kind {
    const char *name;     /* of the command */
    enum model_task task; /* whose heads it needs */
    bool one_mask_each;   /* its batches have many texts with one mask each (serve/session.h) */
    bool losses_only;     /* it reads losses of many tokens of a text, and no logits */
    bool whole_texts;     /* it computes texts at once and continues none (serve/session.h) */
};

const struct answer_kind *answer_kind_of(enum answer a);

/* Whether a model with the heads of `held` has those of `task`: each encoder makes vectors, and
 * pre-training's heads fill masks. */
bool answer_kind_fits(enum model_task held, enum model_task task);

/* Appends the names of the rows that such a model can answer: "fill, embed, blimp". */
void answer_kind_list(struct buf *out, enum model_task held);

/* Adds that list to a failure to open such a model for `task`, if the heads are what it lacks. */
struct status answer_kind_explain(struct status s, enum model_task held, enum model_task task);

#endif
