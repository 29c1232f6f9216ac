#include "serve/ask.h"

#include "serve/predict.h"
#include "serve/squad_predict.h"

#include <stdlib.h>
#include <string.h>

struct ask_options ask_defaults(void)
{
    return (struct ask_options){
        .top_k = 1, .doc_stride = 128, .max_query_length = 64, .max_answer_length = 30};
}

/* The chain from question to answers; each part borrows the ones before it. */
struct asking {
    struct squad_examples examples;
    struct squad_features features;
    struct squad_answers answers;
};

static void asking_fini(struct asking *a)
{
    squad_answers_fini(&a->answers);
    squad_features_fini(&a->features);
    squad_examples_fini(&a->examples);
}

static struct status predict(struct session *s, struct asking *a, struct progress *progress)
{
    struct squad_prediction p;
    struct status status = squad_predict_init(&p, &a->answers);
    if (!failed(status)) {
        struct request r = squad_predict_request(&p);
        status = predict_run(&s->packer, &r, &(struct predict_options){.progress = progress});
    }
    squad_predict_fini(&p);
    return failed(status) ? status : squad_answers_finish(&a->answers);
}

static struct status find_answers(struct session *s, struct asking *a, const char *question,
                                  const char *context, size_t n, const struct ask_options *o)
{
    int64_t stride = s->max_length < 2 * o->doc_stride ? s->max_length / 4 : o->doc_stride;
    struct squad_feature_options fo = {.max_seq_length = s->max_length,
                                       .doc_stride = stride < 1 ? 1 : stride,
                                       .max_query_length = o->max_query_length};
    struct squad_answer_options ao = {.n_best = o->top_k < 20 ? 20 : o->top_k,
                                      .max_answer_length = o->max_answer_length,
                                      .version_2 = o->may_be_none};
    TRY(squad_examples_ask(&a->examples, context, n, &question, 1));
    TRY(squad_features_build(&a->features, &a->examples, s->tokenizer, fo));
    if (a->features.n == 0) {
        return status_error(STATUS_DATA, "the context has no text that the model's vocabulary can read");
    }
    TRY(squad_answers_init(&a->answers, &a->examples, &a->features, s->tokenizer, ao));
    return predict(s, a, o->progress);
}

static struct status take_answers(const struct asking *a, const struct ask_options *o, struct ask_result *r)
{
    const struct squad_result *found = &a->answers.results[0];
    r->n_windows = a->features.n;
    r->n = found->n < o->top_k ? found->n : o->top_k;
    r->answers = calloc((size_t)r->n, sizeof *r->answers);
    if (r->answers == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %lld answers", (long long)r->n);
    }
    for (int64_t k = 0; k < r->n; k++) {
        const struct squad_candidate *c = squad_answers_candidate(&a->answers, 0, k);
        r->answers[k] =
            (struct ask_answer){.text = r->texts.n, .probability = c->probability, .start = -1, .end = -1};
        if (c->start >= 0) { /* else there is none, or no span of the text is possible */
            r->answers[k].start = c->start;
            r->answers[k].end = c->end;
            squad_answers_text(&r->texts, &a->answers, 0, c);
        }
        buf_putc(&r->texts, '\0');
    }
    return buf_status(&r->texts);
}

struct status ask_question(struct session *s, const char *question, const char *context, size_t n,
                           const struct ask_options *o, struct ask_result *result)
{
    struct asking a = {0};
    *result = (struct ask_result){0};
    struct status status = find_answers(s, &a, question, context, n, o);
    if (!failed(status)) {
        status = take_answers(&a, o, result);
    }
    asking_fini(&a);
    return status;
}

void ask_result_fini(struct ask_result *r)
{
    free(r->answers);
    buf_fini(&r->texts);
    *r = (struct ask_result){0};
}
