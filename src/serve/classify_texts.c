#include "serve/classify_texts.h"

#include <stdlib.h>

static int by_score(const void *a, const void *b)
{
    const struct class_reading *x = a, *y = b;
    if (x->holds != y->holds) {
        return x->holds ? -1 : 1; /* with equal probabilities, the label with the larger logit */
    }
    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->label > y->label) - (x->label < y->label);
}

struct status classify_job_make(struct classify_job *j, const struct session *s,
                                struct tokenizer_scratch *scratch, const struct text_bytes *texts,
                                const struct text_bytes *pairs, size_t n, enum text_cut cut)
{
    *j = (struct classify_job){.labels = &s->model->labels};
    TRY(encoded_texts_init(&j->texts, s->tokenizer, s->max_length, "a text to classify"));
    j->texts.width = s->model->layout.fields[TEXT_CLASS_LABELS].width;
    j->texts.cut = cut;
    for (size_t i = 0; i < n; i++) {
        TRY(encoded_texts_add(&j->texts, scratch, texts[i], pairs == NULL ? NULL : &pairs[i]));
    }
    TRY(class_logits_init(&j->logits, &j->texts, j->labels->n));
    j->request = class_logits_request(&j->logits);
    return status_ok();
}

struct status classify_job_read(const struct classify_job *j, struct classify_result *r)
{
    *r = (struct classify_result){.n = j->texts.n, .n_labels = j->labels->n, .n_cut = j->texts.n_cut};
    r->readings = calloc((size_t)(r->n * r->n_labels) + 1, sizeof *r->readings);
    FAIL_IF(r->readings == NULL, STATUS_MEMORY, "out of memory for the labels of %lld texts",
            (long long)r->n);
    for (int64_t i = 0; i < r->n; i++) {
        struct class_reading *row = r->readings + i * r->n_labels;
        class_logits_read(row, class_logits_get(&j->logits, i), j->labels);
        if (j->labels->problem != PROBLEM_REGRESSION) {
            qsort(row, (size_t)r->n_labels, sizeof *row, by_score);
        }
    }
    return status_ok();
}

enum label_problem classify_texts_problem(const struct session *model)
{
    const struct model_labels *labels = &model->model->labels;
    bool is_one = labels->n == 1 && labels->problem == PROBLEM_REGRESSION && !model->scores.is_regression;
    return is_one ? PROBLEM_MULTI_LABEL : labels->problem;
}

json_t *classify_job_to_json(const struct classify_job *j, int64_t text, enum label_problem problem,
                             int64_t top_k)
{
    struct model_labels labels = *j->labels;
    struct class_reading *scores = calloc((size_t)labels.n, sizeof *scores);
    json_t *list = scores == NULL ? NULL : json_array();
    labels.problem = problem;
    if (scores != NULL) {
        class_logits_read(scores, class_logits_get(&j->logits, text), &labels);
        class_logits_sort(scores, (size_t)labels.n);
    }
    for (int64_t i = 0; list != NULL && i < labels.n && i < top_k; i++) {
        json_array_append_new(list, json_pack("{s:f, s:s}", "score", scores[i].score, "label",
                                              label_names_get(labels.names, scores[i].label)));
    }
    free(scores);
    return list;
}

void classify_job_fini(struct classify_job *j)
{
    class_logits_fini(&j->logits);
    encoded_texts_fini(&j->texts);
}

struct status classify_texts(struct session *s, struct classify_result *result,
                             const struct text_bytes *texts, const struct text_bytes *pairs, size_t n)
{
    struct classify_job j;
    *result = (struct classify_result){0};
    struct status status = classify_job_make(&j, s, &s->scratch, texts, pairs, n, TEXT_CUT_END);
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    status = failed(status) ? status : classify_job_read(&j, result);
    classify_job_fini(&j);
    return status;
}

void classify_result_fini(struct classify_result *r)
{
    free(r->readings);
    *r = (struct classify_result){0};
}
