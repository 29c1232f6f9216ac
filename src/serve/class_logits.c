#include "serve/class_logits.h"

#include "data/class_score.h"
#include "data/sorted_batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct status class_logits_init(struct class_logits *l, const struct encoded_texts *texts, int64_t n_labels)
{
    size_t n = (size_t)(texts->of_tokens ? texts->n_rows : texts->n);
    struct example_source source = encoded_texts_source(texts, "texts");
    *l = (struct class_logits){
        .texts = texts, .n_labels = n_labels, .values = calloc(n * (size_t)n_labels + 1, sizeof *l->values)};
    return l->values != NULL ? sorted_batches_order(&l->order, &source)
                             : status_error(STATUS_MEMORY, "out of memory for the scores of %zu labels", n);
}

void class_logits_fini(struct class_logits *l)
{
    free(l->values);
    free(l->order);
    *l = (struct class_logits){0};
}

float *class_logits_get(const struct class_logits *l, int64_t i)
{
    int64_t row = l->texts->of_tokens ? encoded_texts_get(l->texts, i)->row : i;
    return l->values + row * l->n_labels;
}

static enum model_output output_of(const struct class_logits *l)
{
    return l->texts->of_tokens ? MODEL_TOKEN_LOGITS : MODEL_TEXT_LOGITS;
}

static struct status take(void *self, int64_t example, const tensor outputs[MODEL_N_OUTPUTS])
{
    const struct class_logits *l = self;
    tensor logits = outputs[output_of(l)];
    memcpy(class_logits_get(l, example), logits.data, tensor_bytes(logits));
    return status_ok();
}

struct request class_logits_request(struct class_logits *l)
{
    return (struct request){.source = encoded_texts_source(l->texts, "texts"),
                            .order = l->order,
                            .outputs = 1U << output_of(l),
                            .take = take,
                            .self = l};
}

void class_logits_read(struct class_reading *out, const float *logits, const struct model_labels *model)
{
    int64_t best = class_score_best(logits, model->n);
    double sum = 0;
    for (int64_t k = 0; k < model->n; k++) {
        sum += exp(logits[k] - (double)logits[best]);
    }
    for (int64_t k = 0; k < model->n; k++) {
        out[k] = (struct class_reading){.label = k, .logit = logits[k], .score = logits[k], .holds = true};
        if (model->problem == PROBLEM_SINGLE_LABEL) {
            out[k].score = exp(logits[k] - (double)logits[best]) / sum;
            out[k].holds = k == best;
        } else if (model->problem == PROBLEM_MULTI_LABEL) {
            out[k].score = 1 / (1 + exp(-(double)logits[k]));
            out[k].holds = logits[k] > 0;
        }
    }
}

/* The higher score first; of equal ones the one of the smaller number. */
static int by_score(const void *a, const void *b)
{
    const struct class_reading *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->label > y->label) - (x->label < y->label);
}

void class_logits_sort(struct class_reading *readings, size_t n)
{
    qsort(readings, n, sizeof *readings, by_score);
}
