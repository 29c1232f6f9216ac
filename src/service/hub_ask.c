/* hub_ask: question_answering.  A score is the probability among the best answers (data/squad_answers.h). */
#include "serve/ask.h"
#include "service/hub_tasks.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <string.h>

static void fini(void *job)
{
    ask_job_fini(job);
}

static bool read_options(struct call *c, struct ask_options *o)
{
    const json_t *p;
    bool aligns = true; /* read again for the answer */
    *o = ask_defaults();
    o->max_answer_length = 15; /* the pipeline's */
    return call_object(c, c->body, "parameters", &p) &&
           call_int(c, p, "top_k", 1, SQUAD_MAX_N_BEST, &o->top_k) &&
           call_int(c, p, "doc_stride", 1, INT32_MAX, &o->doc_stride) &&
           call_int(c, p, "max_answer_len", 1, INT32_MAX, &o->max_answer_length) &&
           call_int(c, p, "max_seq_len", 8, INT32_MAX, &o->max_length) &&
           call_int(c, p, "max_question_len", 1, INT32_MAX, &o->max_query_length) &&
           call_bool(c, p, "handle_impossible_answer", &o->may_be_none) &&
           call_bool(c, p, "align_to_words", &aligns);
}

static const char *context_of(const json_t *input)
{
    return json_string_value(json_object_get(input, "context"));
}

static struct status make(struct call *c, void *job, const json_t *input, struct tokenizer_scratch *scratch,
                          const void *options)
{
    struct ask_job *j = job;
    const char *question = json_string_value(json_object_get(input, "question")),
               *context = context_of(input);
    FAIL_IF(question == NULL || context == NULL, STATUS_DATA,
            "\"inputs\" must be {\"question\": a string, \"context\": a string}");
    FAIL_IF(question[0] == '\0' || context[0] == '\0', STATUS_DATA, "the %s is empty",
            question[0] == '\0' ? "question" : "context");
    TRY(ask_job_make(j, &c->model->sessions[ANSWER_ASK], scratch, question, context, strlen(context),
                     options));
    c->n_characters += utf8_count(question, strlen(question)) + utf8_count(context, strlen(context));
    c->n_tokens += j->features.texts.n_rows;
    return status_ok();
}

/* Whether the character at text[at] is a part of a word, not one alone. */
static bool is_inner(const char *text, size_t at)
{
    uint32_t c;
    utf8_decode(&c, text + at, strlen(text + at));
    enum unicode_class kind = unicode_class(c);
    return kind == UNICODE_OTHER || kind == UNICODE_MARK;
}

static size_t step_back(const char *text, size_t at)
{
    at--;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) {
        at--;
    }
    return at;
}

static size_t step_on(const char *text, size_t at)
{
    uint32_t c;
    return at + (size_t)utf8_decode(&c, text + at, strlen(text + at));
}

/* Widens text[*start..*end) so that it neither begins nor ends within a word. */
static void align(const char *text, size_t *start, size_t *end)
{
    size_t last = step_back(text, *end);
    while (*start > 0 && is_inner(text, *start) && is_inner(text, step_back(text, *start))) {
        *start = step_back(text, *start);
    }
    while (text[*end] != '\0' && is_inner(text, last) && is_inner(text, *end)) {
        last = *end;
        *end = step_on(text, *end);
    }
}

/* {"answer", "score", "start", "end"}; the answer "" at 0 is none. */
static json_t *answer_to_json(const struct ask_answer *a, const char *context, bool aligns)
{
    size_t start = a->start < 0 ? 0 : (size_t)a->start, end = a->start < 0 ? 0 : (size_t)a->end;
    if (aligns && start < end) {
        align(context, &start, &end);
    }
    int64_t first = utf8_count(context, start);
    return json_pack("{s:o, s:f, s:I, s:I}", "answer", json_stringn(context + start, end - start), "score",
                     a->probability, "start", (json_int_t)first, "end",
                     (json_int_t)(first + utf8_count(context + start, end - start)));
}

/* The answers to a question, or the only one that was asked for. */
static json_t *answers_to_json(const struct ask_result *r, const char *context, bool is_list, bool aligns)
{
    json_t *list = json_array();
    for (int64_t k = 0; is_list && k < r->n; k++) {
        json_array_append_new(list, answer_to_json(&r->answers[k], context, aligns));
    }
    if (!is_list) {
        json_decref(list);
        list = answer_to_json(&r->answers[0], context, aligns);
    }
    return list;
}

static struct status read(json_t **result, const struct call *c, void *job, const json_t *input,
                          int64_t top_k)
{
    struct ask_result r = {0};
    bool aligns = !json_is_false(json_object_get(json_object_get(c->body, "parameters"), "align_to_words"));
    struct status s = ask_job_read(job, &r);
    if (!failed(s)) {
        *result = answers_to_json(&r, context_of(input), top_k > 1, aligns);
    }
    ask_result_fini(&r);
    return s;
}

void hub_ask_answer(struct call *c)
{
    static const struct hub_job_kind kind = {ANSWER_ASK, sizeof(struct ask_job), make, read, fini};
    struct ask_options o;
    size_t n = hub_count(c, HUB_INPUTS);
    if (n > 0 && read_options(c, &o)) {
        hub_submit(c, &kind, n, &o, o.top_k);
    }
}
