#include "serve/ask.h"

#include "core/integers.h"
#include "serve/predict.h"

#include <stdlib.h>

struct ask_options ask_defaults(void)
{
    return (struct ask_options){
        .top_k = 1, .doc_stride = 128, .max_query_length = 64, .max_answer_length = 30};
}

static int64_t length_of(const struct session *s, const struct ask_options *o)
{
    return o->max_length > 0 ? int_smaller(o->max_length, s->max_length) : s->max_length;
}

int64_t ask_window_step(const struct session *s, const struct ask_options *o)
{
    int64_t length = length_of(s, o);
    return int_larger(length < 2 * o->doc_stride ? length / 4 : o->doc_stride, 1);
}

struct status ask_job_make(struct ask_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                           const char *question, const char *context, size_t n, const struct ask_options *o)
{
    struct squad_feature_options fo = {.max_length = length_of(s, o),
                                       .doc_stride = ask_window_step(s, o),
                                       .max_query_length = o->max_query_length};
    struct squad_answer_options ao = {.n_best = o->top_k < 20 ? 20 : o->top_k,
                                      .max_answer_length = o->max_answer_length,
                                      .version_2 = o->may_be_none};
    *j = (struct ask_job){.top_k = o->top_k};
    TRY(squad_examples_ask(&j->examples, context, n, &question, 1));
    TRY(squad_features_encode(&j->features, &j->examples, scratch, fo));
    FAIL_IF(j->features.n == 0, STATUS_DATA, "the context has no text that the model's vocabulary can read");
    TRY(squad_answers_init(&j->answers, &j->examples, &j->features, s->tokenizer, ao));
    j->request = predict_answers_request(&j->answers);
    return status_ok();
}

struct status ask_job_read(struct ask_job *j, struct ask_result *r)
{
    TRY(squad_answers_finish(&j->answers));
    const struct squad_result *found = &j->answers.results[0];
    *r = (struct ask_result){.n = found->n < j->top_k ? found->n : j->top_k, .n_windows = j->features.n};
    r->answers = calloc((size_t)r->n, sizeof *r->answers);
    FAIL_IF(r->answers == NULL, STATUS_MEMORY, "out of memory for %lld answers", (long long)r->n);
    for (int64_t k = 0; k < r->n; k++) {
        const struct squad_candidate *c = squad_answers_candidate(&j->answers, 0, k);
        r->answers[k] =
            (struct ask_answer){.text = r->texts.n, .probability = c->probability, .start = -1, .end = -1};
        if (c->start >= 0) { /* else there is none, or no span of the text is possible */
            r->answers[k].start = c->start;
            r->answers[k].end = c->end;
            squad_answers_text(&r->texts, &j->answers, 0, c);
        }
        buf_putc(&r->texts, '\0');
    }
    return buf_status(&r->texts);
}

void ask_job_fini(struct ask_job *j)
{
    squad_answers_fini(&j->answers);
    squad_features_fini(&j->features);
    squad_examples_fini(&j->examples);
}

struct status ask_question(struct session *s, const char *question, const char *context, size_t n,
                           const struct ask_options *o, struct ask_result *result)
{
    struct ask_job j;
    struct predict_options shown = {.progress = o->progress};
    *result = (struct ask_result){0};
    struct status status = ask_job_make(&j, s, &s->scratch, question, context, n, o);
    status = failed(status) ? status : predict_run(&s->packer, &j.request, &shown);
    status = failed(status) ? status : ask_job_read(&j, result);
    ask_job_fini(&j);
    return status;
}

void ask_result_fini(struct ask_result *r)
{
    free(r->answers);
    buf_fini(&r->texts);
    *r = (struct ask_result){0};
}
