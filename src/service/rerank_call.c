#include "service/rerank_call.h"

#include <stdlib.h>
#include <string.h>

struct rerank_call *rerank_call_make(struct call *c, size_t n)
{
    struct rerank_call *r = calloc(1, sizeof *r);
    if (r == NULL) {
        call_fail(c, 503, NULL, "out of memory for a request");
        return NULL;
    }
    r->most = INT64_MAX;
    classify_call_init(&r->classify, c);
    return classify_call_make_room(&r->classify, n, true) ? r : NULL;
}

static double score_of(const struct rerank_call *r, double logit)
{
    enum sentence_activation a = r->scale == RERANK_LOGIT ? SENTENCE_IDENTITY
                                 : r->scale == RERANK_SIGMOID
                                     ? SENTENCE_SIGMOID
                                     : r->classify.call->model->model.scores.activation;
    return sentence_activation_of(a, logit);
}

/* The higher score first; of equal ones the text that came first. */
static int by_score(const void *a, const void *b)
{
    const struct ranked_text *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->index > y->index) - (x->index < y->index);
}

/* Sorts the texts by logit, since a sigmoid makes large ones equal. */
static void rank(struct classify_call *k)
{
    struct rerank_call *r = (struct rerank_call *)k;
    r->ranked = calloc(k->n, sizeof *r->ranked);
    if (r->ranked == NULL) {
        call_fail(k->call, 503, NULL, "out of memory for %zu texts", k->n);
        return;
    }
    struct ranked_text *ranked = r->ranked;
    for (size_t i = 0; i < k->n; i++) {
        ranked[i] = (struct ranked_text){(int64_t)i, classify_call_logits(k, (int64_t)i)[0]};
    }
    qsort(ranked, k->n, sizeof *ranked, by_score);
    for (size_t i = 0; i < k->n; i++) {
        ranked[i].score = score_of(r, ranked[i].score);
    }
    r->answer(r);
    free(ranked);
}

/* The first model with one label, where none is named. */
static const char *find_reranker(const struct call *c)
{
    for (int i = 0; c->models != NULL && c->named == NULL && i < c->models->n; i++) {
        const struct served_model *m = &c->models->models[i];
        if (m->lanes[ANSWER_CLASSIFY] != NULL && m->model.model->labels.n == 1) {
            return m->name;
        }
    }
    return NULL;
}

static bool choose_model(struct rerank_call *r)
{
    struct call *c = r->classify.call;
    bool is_named = r->model != NULL && r->model[0] != '\0';
    if (call_model(c, is_named ? r->model : find_reranker(c), ANSWER_CLASSIFY) == NULL) {
        return false;
    }
    if (c->model->model.model->labels.n != 1) {
        call_fail(c, c->dialect->wrong_model, "model",
                  "the model %s does not rank texts: it has %lld labels, and a reranker has one",
                  c->model->name, (long long)c->model->model.model->labels.n);
        return false;
    }
    return true;
}

void rerank_call_start(struct rerank_call *r)
{
    struct classify_call *k = &r->classify;
    for (size_t i = 0; i < k->n; i++) {
        k->texts[i] = (struct text_bytes){r->query, strlen(r->query)};
    }
    k->answer = rank;
    if (choose_model(r)) {
        classify_call_start(k);
    }
}
