#include "serve/classify_texts.h"

#include "data/pair_encoder.h"
#include "serve/predict.h"

#include <stdlib.h>

static struct status encode(struct session *s, struct labelled_texts *out, int64_t *n_cut,
                            const struct text_bytes *texts, const struct text_bytes *pairs, size_t n)
{
    struct pair_encoder e;
    struct status status = pair_encoder_init(&e, &s->scratch, s->max_length);
    for (size_t i = 0; i < n && !failed(status); i++) {
        status = pair_encoder_add(&e, out, texts[i], pairs == NULL ? NULL : &pairs[i], NULL);
    }
    *n_cut = e.n_cut;
    pair_encoder_fini(&e);
    return status;
}

static int by_score(const void *a, const void *b)
{
    const struct class_reading *x = a, *y = b;
    if (x->holds != y->holds) {
        return x->holds ? -1 : 1; /* of equal probabilities, the label with the larger logit */
    }
    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->label > y->label) - (x->label < y->label);
}

static struct status read_all(struct classify_result *r, const struct class_logits *logits,
                              const struct model_labels *model)
{
    r->n = logits->texts->n;
    r->n_labels = model->n;
    r->readings = calloc((size_t)(r->n * r->n_labels), sizeof *r->readings);
    if (r->readings == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the labels of %lld texts", (long long)r->n);
    }
    for (int64_t i = 0; i < r->n; i++) {
        struct class_reading *row = r->readings + i * r->n_labels;
        class_logits_read(row, class_logits_get(logits, i), model);
        if (model->problem != PROBLEM_REGRESSION) {
            qsort(row, (size_t)r->n_labels, sizeof *row, by_score);
        }
    }
    return status_ok();
}

static struct status classify(struct session *s, struct classify_result *r,
                              const struct labelled_texts *texts)
{
    struct class_logits logits;
    struct status status = class_logits_init(&logits, texts, s->model->labels.n);
    if (!failed(status)) {
        struct request request = class_logits_request(&logits);
        status = predict_run(&s->packer, &request, &(struct predict_options){0});
    }
    if (!failed(status)) {
        status = read_all(r, &logits, &s->model->labels);
    }
    class_logits_fini(&logits);
    return status;
}

struct status classify_texts(struct session *s, struct classify_result *result,
                             const struct text_bytes *texts, const struct text_bytes *pairs, size_t n)
{
    struct labelled_texts encoded = {.width = s->model->layout.fields[TEXT_CLASS_LABELS].width};
    *result = (struct classify_result){.n_labels = s->model->labels.n};
    struct status status = encode(s, &encoded, &result->n_cut, texts, pairs, n);
    if (!failed(status) && encoded.n > 0) {
        status = classify(s, result, &encoded);
    }
    labelled_texts_fini(&encoded);
    if (failed(status)) {
        classify_result_fini(result);
    }
    return status;
}

void classify_result_fini(struct classify_result *r)
{
    free(r->readings);
    *r = (struct classify_result){0};
}
