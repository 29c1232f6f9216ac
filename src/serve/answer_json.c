#include "serve/answer_json.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

struct status answer_json_append(struct buf *out, json_t *line)
{
    return json_append_line(out, line, 9);
}

void answer_json_append_vector(struct buf *out, const float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        buf_printf(out, "%s%.9g", i == 0 ? "[" : ",", (double)v[i]);
    }
    buf_putc(out, ']');
}

/* Pieces and texts that are not UTF-8 get replacement characters. */
static json_t *string_of(const char *bytes, size_t n)
{
    char *copy = malloc(n + 1);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    json_t *string = json_text(copy);
    free(copy);
    return string;
}

json_t *answer_json_fill(const char *text, size_t n, const struct fill_result *r, const struct tokenizer *t)
{
    json_t *masks = json_array();
    for (int64_t m = 0; m < r->n_masks; m++) {
        json_t *candidates = json_array();
        for (int64_t k = 0; k < r->top_k; k++) {
            const struct fill_candidate *c = &r->candidates[m * r->top_k + k];
            size_t n_piece;
            const char *piece = tokenizer_piece(t, c->id, &n_piece);
            json_array_append_new(candidates, json_pack("{s:o, s:i, s:f}", "token", string_of(piece, n_piece),
                                                        "id", c->id, "probability", c->probability));
        }
        json_array_append_new(masks, candidates);
    }
    return json_pack("{s:o, s:o}", "text", string_of(text, n), "masks", masks);
}

json_t *answer_json_said(const char *text, size_t n)
{
    struct buf b = {0};
    utf8_repair(&b, text, n);
    json_t *string = b.failed ? NULL : json_stringn(buf_text(&b), b.n);
    buf_fini(&b);
    return string;
}

json_t *answer_json_generation(const char *prompt, size_t n, const struct generation *g)
{
    static const char *const ends[] = {[GENERATION_AT_END] = "end",
                                       [GENERATION_AT_STOP] = "stop",
                                       [GENERATION_AT_LENGTH] = "length",
                                       [GENERATION_CANCELLED] = "cancelled",
                                       [GENERATION_FAILED] = "failed"};
    json_t *ids = json_array();
    for (size_t i = g->n_prompt; i < g->ids.n; i++) {
        json_array_append_new(ids, json_integer(g->ids.ids[i]));
    }
    return json_pack("{s:o, s:o, s:o, s:s}", "prompt", answer_json_said(prompt, n), "text",
                     answer_json_said(buf_text(&g->text), g->text.n), "ids", ids, "end", ends[g->end]);
}

/* The place of an answer, in bytes or characters; null: there is none. */
static json_t *place_of(bool is_none, int64_t place)
{
    return is_none ? json_null() : json_integer(place);
}

json_t *answer_json_ask(const char *question, const char *context, const struct ask_result *r)
{
    json_t *answers = json_array();
    for (int64_t k = 0; k < r->n; k++) {
        const struct ask_answer *a = &r->answers[k];
        bool none = a->start < 0;
        int64_t start = none ? 0 : utf8_count(context, (size_t)a->start);
        int64_t n = none ? 0 : utf8_count(context + a->start, (size_t)(a->end - a->start));
        json_array_append_new(answers, json_pack("{s:o, s:f, s:o, s:o, s:o, s:o}", "text",
                                                 json_text(r->texts.data + a->text), "probability",
                                                 a->probability, "start", place_of(none, a->start), "end",
                                                 place_of(none, a->end), "start_char", place_of(none, start),
                                                 "end_char", place_of(none, start + n)));
    }
    return json_pack("{s:o, s:o}", "question", json_text(question), "answers", answers);
}

static json_t *scores_of(const struct class_reading *readings, const struct model_labels *model)
{
    json_t *scores = json_object();
    for (int64_t k = 0; k < model->n; k++) {
        json_object_set_new(scores, label_names_get(model->names, k), json_real(readings[k].score));
    }
    return scores;
}

/* One label or number, or a list of them. */
static json_t *label_of(const struct class_reading *readings, const struct model_labels *model)
{
    bool numbers = model->problem == PROBLEM_REGRESSION;
    json_t *list = json_array();
    for (int64_t k = 0; k < model->n; k++) {
        if (readings[k].holds) {
            json_array_append_new(list, numbers ? json_real(readings[k].score)
                                                : json_string(label_names_get(model->names, k)));
        }
    }
    if (model->problem == PROBLEM_MULTI_LABEL || (numbers && model->n > 1)) {
        return list;
    }
    json_t *one = json_incref(json_array_get(list, 0));
    json_decref(list);
    return one;
}

json_t *answer_json_labels(json_t *id, const struct class_reading *readings, const struct model_labels *model)
{
    return json_pack("{s:o, s:o, s:o}", "id", id, "label", label_of(readings, model), "scores",
                     scores_of(readings, model));
}
