/* hub_classify: text_classification and zero_shot_classification (serve/zero_shot.h). */
#include "serve/zero_shot.h"
#include "service/classify_call.h"
#include "service/hub_tasks.h"

#include <stdlib.h>
#include <string.h>

/* ---- labels of the model ---- */

/* Lists in a list, also of one text: the client takes the first. */
static void reply_labels(struct classify_call *k)
{
    json_t *list = json_array();
    for (size_t i = 0; i < k->n; i++) {
        json_array_append_new(list, classify_call_labels(k, (int64_t)i));
    }
    call_reply(k->call, list);
}

/* A string, {"text": ...} or {"text": ..., "text_pair": ...}. */
static bool read_input(struct classify_call *k, size_t i)
{
    const json_t *input = hub_input(k->call, i);
    const json_t *a = json_is_object(input) ? json_object_get(input, "text") : input;
    const json_t *b = json_object_get(input, "text_pair");
    if (!json_is_string(a) || (b != NULL) != (k->pairs != NULL) || (b != NULL && !json_is_string(b))) {
        call_fail_value(k->call, "inputs",
                        "\"inputs\" must be a string, {\"text\", \"text_pair\"}, or an array of such");
        return false;
    }
    k->texts[i] = call_text(a);
    if (b != NULL) {
        k->pairs[i] = call_text(b);
    }
    return true;
}

static bool read_function(struct call *c, const json_t *parameters, enum label_problem *problem)
{
    static const char *const names[] = {"softmax", "sigmoid", "none", NULL};
    static const enum label_problem problems[] = {PROBLEM_SINGLE_LABEL, PROBLEM_MULTI_LABEL,
                                                  PROBLEM_REGRESSION};
    enum { LAST = sizeof problems / sizeof problems[0] - 1 };
    int64_t i = 0;
    while (i < LAST && problems[i] != classify_texts_problem(&c->model->model)) {
        i++;
    }
    bool ok =
        call_choice(c, parameters, "function_to_apply", names, "\"sigmoid\", \"softmax\" or \"none\"", &i);
    *problem = problems[i];
    return ok;
}

void hub_classify_answer(struct call *c)
{
    const json_t *p;
    size_t n = hub_count(c, CLASSIFY_TEXTS);
    struct classify_call *k = n == 0 ? NULL : classify_call_make(c, sizeof *k);
    if (k == NULL || !call_object(c, c->body, "parameters", &p) ||
        !call_int(c, p, "top_k", 1, INT64_MAX, &k->top_k) || !read_function(c, p, &k->problem) ||
        !classify_call_make_room(k, n, json_object_get(hub_input(c, 0), "text_pair") != NULL)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_input(k, i)) {
            return;
        }
    }
    k->answer = reply_labels;
    classify_call_start(k);
}

/* ---- labels of the caller ---- */

struct zero_shot {
    struct classify_call classify; /* text i with label k is pair i * n_labels + k */
    json_t *labels;                /* an array, of the body */
    size_t n_labels;
    struct zero_shot_rule rule;
};

/* [{"label", "score"}] of a text, the best first; NULL if memory runs out. */
static json_t *scores_to_json(const struct zero_shot *z, size_t text)
{
    struct class_reading *scores = calloc(z->n_labels, sizeof *scores);
    json_t *list = scores == NULL ? NULL : json_array();
    if (scores == NULL) {
        return NULL;
    }
    zero_shot_score(scores, &z->rule, &z->classify.job.logits, text, z->n_labels);
    for (size_t k = 0; k < z->n_labels; k++) {
        json_t *label = json_array_get(z->labels, (size_t)scores[k].label);
        json_array_append_new(list, json_pack("{s:O, s:f}", "label", label, "score", scores[k].score));
    }
    free(scores);
    return list;
}

static void reply_zero_shot(struct classify_call *k)
{
    const struct zero_shot *z = (const struct zero_shot *)k;
    if (!hub_is_list(k->call)) {
        call_reply(k->call, scores_to_json(z, 0));
        return;
    }
    json_t *results = json_array();
    for (size_t i = 0; i < k->n / z->n_labels; i++) {
        json_array_append_new(results, scores_to_json(z, i));
    }
    call_reply(k->call, results);
}

static bool find_entailment(struct zero_shot *z)
{
    struct call *c = z->classify.call;
    if (zero_shot_find(&z->rule, &c->model->model.model->labels)) {
        return true;
    }
    call_fail(c, c->dialect->wrong_model, "candidate_labels",
              "the model %s does not classify by labels of the request: none of its own is \"entailment\"",
              c->model->name);
    return false;
}

static bool read_labels(struct zero_shot *z, const json_t *parameters)
{
    enum { MOST_LABELS = 1000 };
    struct call *c = z->classify.call;
    z->labels = json_object_get(parameters, "candidate_labels");
    z->n_labels = json_array_size(z->labels);
    bool are_strings = z->n_labels > 0 && z->n_labels <= MOST_LABELS;
    for (size_t k = 0; k < z->n_labels; k++) {
        are_strings = are_strings && json_is_string(json_array_get(z->labels, k));
    }
    if (!are_strings) {
        call_fail_value(c, "candidate_labels", "\"candidate_labels\" must be an array of 1 to %d strings",
                        MOST_LABELS);
    }
    return are_strings;
}

/* Appends the hypothesis of each label; each ends with a NUL. */
static void write_hypotheses(struct buf *out, const struct zero_shot *z, const char *template)
{
    for (size_t k = 0; k < z->n_labels; k++) {
        zero_shot_append_hypothesis(out, template, json_string_value(json_array_get(z->labels, k)));
        buf_putc(out, '\0');
    }
}

/* False: the call has failed. */
static bool fill_pairs(struct zero_shot *z, size_t n, const struct buf *hypotheses)
{
    struct classify_call *k = &z->classify;
    for (size_t i = 0; i < n; i++) {
        const char *hypothesis = buf_text(hypotheses);
        const json_t *text = hub_input(k->call, i);
        if (!json_is_string(text) || json_string_length(text) == 0) {
            call_fail_value(k->call, "inputs",
                            "\"inputs\" must be a string or an array of strings, none of them empty");
            return false;
        }
        for (size_t l = 0; l < z->n_labels; l++) {
            k->texts[i * z->n_labels + l] = call_text(text);
            k->pairs[i * z->n_labels + l] = (struct text_bytes){hypothesis, strlen(hypothesis)};
            hypothesis += strlen(hypothesis) + 1;
        }
    }
    return true;
}

static void start(struct zero_shot *z, size_t n, const char *template)
{
    struct classify_call *k = &z->classify;
    struct buf hypotheses = {0};
    write_hypotheses(&hypotheses, z, template);
    if (hypotheses.failed) {
        call_fail(k->call, 503, NULL, "out of memory for %zu labels", z->n_labels);
    } else if (classify_call_make_room(k, n * z->n_labels, true) && fill_pairs(z, n, &hypotheses)) {
        k->answer = reply_zero_shot;
        classify_call_start(k); /* reads the pairs */
    }
    buf_fini(&hypotheses);
}

void hub_classify_answer_labels(struct call *c)
{
    const json_t *p;
    const char *template = ZERO_SHOT_TEMPLATE;
    size_t n = hub_count(c, CLASSIFY_TEXTS);
    struct zero_shot *z = n == 0 ? NULL : classify_call_make(c, sizeof *z);
    if (z == NULL || !call_object(c, c->body, "parameters", &p) || !read_labels(z, p) ||
        !find_entailment(z) || !call_bool(c, p, "multi_label", &z->rule.multi_label) ||
        !call_string(c, p, "hypothesis_template", &template)) {
        return;
    }
    if (strstr(template, "{}") == NULL) {
        call_fail_value(c, "hypothesis_template", "\"hypothesis_template\" has no {} for the label");
    } else if (n * z->n_labels > CLASSIFY_TEXTS) {
        call_fail_value(c, "inputs", "%zu texts and %zu labels are more than %d pairs", n, z->n_labels,
                        CLASSIFY_TEXTS);
    } else {
        start(z, n, template);
    }
}
