/* answer_kind: the list of what models answer: a row for each command and each session of the public
 * interface, with the heads that it needs (nn/model_heads.h). */
#ifndef KILN_SERVE_ANSWER_KIND_H
#define KILN_SERVE_ANSWER_KIND_H

#include "core/buf.h"
#include "nn/model_heads.h"

/* How texts are laid into batches. */
enum batching {
    /* masked words: a text alone, with any number of masks; next words: a part or one token of each text that
     * is continued; else all texts that fit */
    BATCHING_BY_TASK,
    BATCHING_FEW_ASKED, /* all complete texts that fit, of which few words each are asked for */
    BATCHING_LOSSES,    /* all complete texts that fit: the losses of all words, and no logits */
};

/* clang-format off */

/* X(ANSWER, command, task whose heads it needs, batching): answers of the public interface, with the names of
 * enum kiln_task (kiln/kiln.h), which api/api.c compares. */
#define ANSWERS_PUBLIC(X) \
    X(FILL, "fill", MASKED_LM, BY_TASK) \
    X(ASK, "ask", QUESTION_ANSWERING, BY_TASK) \
    X(EMBED, "embed", ENCODER, BY_TASK) \
    X(CLASSIFY, "classify", SEQUENCE_CLASSIFICATION, BY_TASK) \
    X(TAG, "tag", TOKEN_CLASSIFICATION, BY_TASK) \
    X(GENERATE, "generate", CAUSAL_LM, BY_TASK)

/* Answers that only commands give. */
#define ANSWERS_OF_COMMANDS(X) \
    X(BLIMP, "blimp", MASKED_LM, FEW_ASKED) \
    X(BLIMP_NEXT, "blimp", CAUSAL_LM, LOSSES) \
    X(TOKENS, "eval --tokens", MASKED_LM, FEW_ASKED) \
    X(TOKENS_NEXT, "eval --tokens", CAUSAL_LM, LOSSES) \
    X(EVAL, "eval", CAUSAL_LM, LOSSES) \
    X(LAST_WORDS, "eval --last_word", CAUSAL_LM, FEW_ASKED)

/* clang-format on */

#define ANSWERS(X) ANSWERS_PUBLIC(X) ANSWERS_OF_COMMANDS(X)

#define ANSWER_NUMBER(ANSWER, ...) ANSWER_##ANSWER,
enum answer {
    ANSWERS_PUBLIC(ANSWER_NUMBER) ANSWER_N_PUBLIC,
    ANSWER_LAST_PUBLIC = ANSWER_N_PUBLIC - 1, /* the others are numbered after it */
    ANSWERS_OF_COMMANDS(ANSWER_NUMBER) ANSWER_N
};

struct answer_kind {
    const char *name; /* name of the command */
    enum model_task task;
    enum batching batching;
};

/* The row of an answer. */
const struct answer_kind *answer_kind_of(enum answer a);

/* Whether a model with the heads of `held` has those of `task`: each encoder makes vectors, and
 * pre-training's heads fill masks. */
bool answer_kind_fits(enum model_task held, enum model_task task);

/* Appends the names of the rows that such a model can answer: "fill, embed, blimp". */
void answer_kind_list(struct buf *out, enum model_task held);

/* Adds that list to a failure to open such a model for `task`, if it lacks the heads. */
struct status answer_kind_explain(struct status s, enum model_task held, enum model_task task);

#endif
