#include "service/classify_call.h"

#include <stdlib.h>

static void free_state(void *state)
{
    struct classify_call *k = state;
    classify_job_fini(&k->job);
    free(k->texts);
    free(k->pairs);
    free(k);
}

void *classify_call_make(struct call *c, size_t bytes)
{
    struct classify_call *k = call_make_state(c, bytes, free_state);
    if (k != NULL) {
        k->call = c;
        k->top_k = INT64_MAX;
    }
    return k;
}

bool classify_call_make_room(struct classify_call *k, size_t n, bool of_pairs)
{
    k->n = n;
    k->texts = calloc(n + 1, sizeof *k->texts);
    k->pairs = of_pairs ? calloc(n + 1, sizeof *k->pairs) : NULL;
    if (k->texts == NULL || (of_pairs && k->pairs == NULL)) {
        call_fail(k->call, 503, NULL, "out of memory for %zu texts", n);
        return false;
    }
    return true;
}

enum label_problem classify_call_problem(const struct served_model *m)
{
    const struct model_labels *labels = &m->model.model->labels;
    bool is_one = labels->n == 1 && labels->problem == PROBLEM_REGRESSION && !m->model.scores.is_regression;
    return is_one ? PROBLEM_MULTI_LABEL : labels->problem;
}

static void finish(struct call *c)
{
    struct classify_call *k = c->state;
    call_add_headers(c);
    k->answer(k);
}

static struct status make_job(struct classify_call *k)
{
    struct call *c = k->call;
    struct tokenizer_scratch *scratch;
    for (size_t i = 0; i < k->n; i++) {
        c->n_characters += call_characters(k->texts[i].bytes, k->texts[i].n);
        c->n_characters += k->pairs == NULL ? 0 : call_characters(k->pairs[i].bytes, k->pairs[i].n);
    }
    TRY(served_model_take_scratch(c->model, &scratch));
    struct status s = classify_job_make(&k->job, &c->model->sessions[ANSWER_CLASSIFY], scratch, k->texts,
                                        k->pairs, k->n, k->cut);
    served_model_give_scratch(c->model, scratch);
    return s;
}

void classify_call_start(struct classify_call *k)
{
    struct call *c = k->call;
    struct status s = make_job(k);
    if (failed(s)) {
        call_fail_status(c, "inputs", s);
        return;
    }
    c->n_texts = (int64_t)k->n;
    c->n_tokens = k->job.texts.n_rows;
    c->n_cut = k->job.texts.n_cut;
    k->requests[0] = &k->job.request;
    call_submit_requests(c, ANSWER_CLASSIFY, k->requests, 1, finish);
}

const float *classify_call_logits(const struct classify_call *k, int64_t text)
{
    return class_logits_get(&k->job.logits, text);
}

/* The higher score first; of equal ones the one of the smaller number. */
static int by_score(const void *a, const void *b)
{
    const struct class_reading *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->label > y->label) - (x->label < y->label);
}

void classify_call_sort(struct class_reading *scores, size_t n)
{
    qsort(scores, n, sizeof *scores, by_score);
}

json_t *classify_call_labels(const struct classify_call *k, int64_t text)
{
    struct model_labels labels = *k->job.labels;
    struct class_reading *scores = calloc((size_t)labels.n, sizeof *scores);
    json_t *list = scores == NULL ? NULL : json_array();
    labels.problem = k->problem;
    if (scores != NULL) {
        class_logits_read(scores, classify_call_logits(k, text), &labels);
        classify_call_sort(scores, (size_t)labels.n);
    }
    for (int64_t i = 0; list != NULL && i < labels.n && i < k->top_k; i++) {
        json_array_append_new(list, json_pack("{s:f, s:s}", "score", scores[i].score, "label",
                                              label_names_get(labels.names, scores[i].label)));
    }
    free(scores);
    return list;
}
