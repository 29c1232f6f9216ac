#include "serve/squad_predict.h"

static struct status take(void *self, int64_t feature, const tensor outputs[MODEL_N_OUTPUTS])
{
    return squad_answers_add(self, feature, outputs[MODEL_SPAN_LOGITS].data);
}

struct request squad_predict_request(struct squad_answers *answers)
{
    return (struct request){.source = squad_features_source(answers->features),
                            .order = answers->order,
                            .outputs = 1U << MODEL_SPAN_LOGITS,
                            .take = take,
                            .self = answers};
}
