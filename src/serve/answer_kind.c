#include "serve/answer_kind.h"

#define KIND(ANSWER, NAME, TASK, BATCHING) [ANSWER_##ANSWER] = {NAME, MODEL_TASK_##TASK, BATCHING_##BATCHING},
static const struct answer_kind kinds[ANSWER_N] = {ANSWERS(KIND)};

#define ASKED(ANSWER, NAME, TASK, ...) | 1U << MODEL_TASK_##TASK
#define LISTED(TASK, ...)              | 1U << MODEL_TASK_##TASK
_Static_assert((1U << MODEL_TASK_PRETRAINING ANSWERS(ASKED)) == (0U MODEL_TASKS(LISTED)),
               "each task but pre-training is asked something");

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
