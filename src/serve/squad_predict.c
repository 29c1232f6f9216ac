#include "serve/squad_predict.h"

#include "data/sorted_batches.h"

#include <stdlib.h>

struct status squad_predict_init(struct squad_prediction *p, struct squad_answers *answers)
{
    size_t longest = (size_t)answers->features->texts.max_length + 1;
    struct example_source source = squad_features_source(answers->features);
    *p = (struct squad_prediction){.answers = answers,
                                   .start = malloc(longest * sizeof *p->start),
                                   .end = malloc(longest * sizeof *p->end)};
    return p->start != NULL && p->end != NULL
               ? sorted_batches_order(&p->order, &source)
               : status_error(STATUS_MEMORY, "out of memory for the logits of %zu tokens", longest);
}

void squad_predict_fini(struct squad_prediction *p)
{
    free(p->start);
    free(p->end);
    free(p->order);
    *p = (struct squad_prediction){0};
}

static struct status take(void *self, int64_t feature, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct squad_prediction *p = self;
    const float *logits = outputs[MODEL_SPAN_LOGITS].data;
    for (int64_t k = 0; k < outputs[MODEL_SPAN_LOGITS].dims[0]; k++) {
        p->start[k] = logits[2 * k];
        p->end[k] = logits[2 * k + 1];
    }
    return squad_answers_add(p->answers, feature, p->start, p->end);
}

struct request squad_predict_request(struct squad_prediction *p)
{
    return (struct request){.source = squad_features_source(p->answers->features),
                            .order = p->order,
                            .outputs = 1U << MODEL_SPAN_LOGITS,
                            .take = take,
                            .self = p};
}
