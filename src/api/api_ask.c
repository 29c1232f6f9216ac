/* api_ask: kiln_ask of include/kiln/kiln.h. */
#include "api/api.h"
#include "serve/ask.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWERS = 1000, MAX_OPTION_TOKENS = 65536, MAX_QUESTION_BYTES = 1 << 20 };

void kiln_ask_options_init(struct kiln_ask_options *options, size_t size)
{
    struct ask_options o = ask_defaults();
    const struct kiln_ask_options defaults = {
        0, o.top_k, o.doc_stride, o.max_query_length, o.max_answer_length, o.may_be_none};
    api_init_options(options, size, &defaults, sizeof defaults);
}

static struct status check_options(const struct kiln_ask_options *o)
{
    TRY(api_check_range("top_k", o->top_k, 1, MAX_ANSWERS));
    TRY(api_check_range("doc_stride", o->doc_stride, 1, MAX_OPTION_TOKENS));
    TRY(api_check_range("max_query_length", o->max_query_length, 1, MAX_OPTION_TOKENS));
    return api_check_range("max_answer_length", o->max_answer_length, 1, MAX_OPTION_TOKENS);
}

static struct status check_question(const char *question)
{
    FAIL_IF(question == NULL, STATUS_USAGE, "question is NULL");
    FAIL_IF(strlen(question) > MAX_QUESTION_BYTES, STATUS_DATA, "the question has more than %d bytes",
            MAX_QUESTION_BYTES);
    return status_ok();
}

/* One block: the answers, then their texts. */
static struct status take_answers(struct kiln_answers *out, const struct ask_result *r)
{
    size_t n = (size_t)r->n;
    struct kiln_answer *answers = malloc(n * sizeof *answers + r->texts.n + 1);
    FAIL_IF(answers == NULL, STATUS_MEMORY, "out of memory for %zu answers", n);
    char *texts = (char *)(answers + n);
    memcpy(texts, buf_text(&r->texts), r->texts.n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct ask_answer *a = &r->answers[i];
        answers[i] = (struct kiln_answer){texts + a->text, a->probability, a->start, a->end};
    }
    *out = (struct kiln_answers){.answers = answers, .n = r->n, .n_windows = r->n_windows};
    return status_ok();
}

static struct status ask(struct kiln_session *session, struct kiln_answers *answers, const char *question,
                         const char *context, size_t n, const struct kiln_ask_options *given)
{
    struct ask_result r;
    struct kiln_ask_options o = kiln_ask_defaults();
    TRY(api_begin_task(session, KILN_ASK));
    TRY(api_take_options(&o, sizeof o, given));
    TRY(check_question(question));
    TRY(api_check_text(&context, n, "context"));
    TRY(check_options(&o));
    struct ask_options inner = {.top_k = o.top_k,
                                .doc_stride = o.doc_stride,
                                .max_query_length = o.max_query_length,
                                .max_answer_length = o.max_answer_length,
                                .may_be_none = o.may_be_none};
    struct status s = ask_question(&session->session, question, context, n, &inner, &r);
    if (!failed(s)) {
        s = take_answers(answers, &r);
    }
    ask_result_fini(&r);
    return s;
}

struct kiln_status kiln_ask(struct kiln_session *session, struct kiln_answers *answers, const char *question,
                            const char *context, size_t n, const struct kiln_ask_options *options)
{
    if (answers == NULL) {
        return api_status(status_error(STATUS_USAGE, "answers is NULL"));
    }
    *answers = (struct kiln_answers){0};
    return api_status(ask(session, answers, question, context, n, options));
}

void kiln_answers_free(struct kiln_answers *answers)
{
    if (answers != NULL) {
        free(answers->answers);
        *answers = (struct kiln_answers){0};
    }
}
