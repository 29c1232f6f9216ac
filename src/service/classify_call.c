#include "service/classify_call.h"

#include "text/utf8.h"

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
        c->n_characters += utf8_count(k->texts[i].bytes, k->texts[i].n);
        c->n_characters += k->pairs == NULL ? 0 : utf8_count(k->pairs[i].bytes, k->pairs[i].n);
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

json_t *classify_call_labels(const struct classify_call *k, int64_t text)
{
    return classify_job_to_json(&k->job, text, k->problem, k->top_k);
}
