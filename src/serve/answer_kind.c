#include "serve/answer_kind.h"

static const struct answer_kind kinds[ANSWER_N] = {
    [ANSWER_FILL] = {"fill", MODEL_TASK_MASKED_LM, false, false, false},
    [ANSWER_ASK] = {"ask", MODEL_TASK_QUESTION_ANSWERING, false, false, false},
    [ANSWER_EMBED] = {"embed", MODEL_TASK_ENCODER, false, false, false},
    [ANSWER_CLASSIFY] = {"classify", MODEL_TASK_SEQUENCE_CLASSIFICATION, false, false, false},
    [ANSWER_TAG] = {"tag", MODEL_TASK_TOKEN_CLASSIFICATION, false, false, false},
    [ANSWER_BLIMP] = {"blimp", MODEL_TASK_MASKED_LM, true, false, false},
    [ANSWER_GENERATE] = {"generate", MODEL_TASK_CAUSAL_LM, false, false, false},
    [ANSWER_EVAL] = {"eval", MODEL_TASK_CAUSAL_LM, false, true, true},
    [ANSWER_LAST_WORDS] = {"eval --last_word", MODEL_TASK_CAUSAL_LM, false, false, true},
};

const struct answer_kind *answer_kind_of(enum answer a)
{
    return &kinds[a];
}

bool answer_kind_fits(enum model_task held, enum model_task task)
{
    return held == task || (task == MODEL_TASK_ENCODER && held != MODEL_TASK_CAUSAL_LM) ||
           (held == MODEL_TASK_PRETRAINING && task == MODEL_TASK_MASKED_LM);
}

void answer_kind_list(struct buf *out, enum model_task held)
{
    const char *separator = "";
    for (int i = 0; i < ANSWER_N; i++) {
        if (answer_kind_fits(held, kinds[i].task)) {
            buf_printf(out, "%s%s", separator, kinds[i].name);
            separator = ", ";
        }
    }
}

struct status answer_kind_explain(struct status s, enum model_task held, enum model_task task)
{
    struct buf list = {0};
    if (!failed(s) || answer_kind_fits(held, task)) {
        return s;
    }
    answer_kind_list(&list, held);
    s = status_error(s.code, "%s; this model answers: %s", s.message, buf_text(&list));
    buf_fini(&list);
    return s;
}
