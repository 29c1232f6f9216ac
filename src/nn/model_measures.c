#include "nn/model_measures.h"

const struct model_measure model_measures[N_MEASURES] = {
    [MEASURE_MASKED_WORDS] = {"mlm_loss", "MLM loss", "mlm_accuracy", "MLM accuracy", "masked words", true},
    [MEASURE_NEXT_SENTENCE] = {"nsp_loss", "NSP loss", "nsp_accuracy", "NSP accuracy", "next sentence",
                               false},
    [MEASURE_NEXT_TOKEN] = {"lm_loss", "LM loss", "lm_accuracy", "LM accuracy", "next token", true},
    [MEASURE_ANSWER] = {"span_loss", "answer loss", "span_accuracy", "answer accuracy", "answers", false},
    [MEASURE_LABEL] = {"loss", "loss", "accuracy", "accuracy", "labels", false},
};

void model_add_measure(struct model *m, enum model_measure_id id, int labels)
{
    const struct model_measure *of = &model_measures[id];
    CHECK(m->n_sums + 2 <= MODEL_MOST_SUMS, "a model has more than %d sums", MODEL_MOST_SUMS);
    m->sums[m->n_sums++] = (struct model_sum){of->loss, of->loss_text, labels, true};
    m->sums[m->n_sums++] = (struct model_sum){of->accuracy, of->accuracy_text, labels, false};
}
