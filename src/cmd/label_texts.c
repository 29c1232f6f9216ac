#include "cmd/label_texts.h"

#include "cmd/standard_streams.h"
#include "cmd/text_groups.h"
#include "serve/classify_texts.h"
#include "serve/tag_text.h"
#include "serve/zero_shot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct labelling {
    struct session session;
    const struct label_texts_flags *flags;
    struct zero_shot_rule rule; /* with labels of the caller */
    struct label_names labels;  /* of the caller */
    struct buf hypotheses;      /* end to end */
    int64_t n_cut;
    enum tag_strategy strategy;
};

/* ---- classify ---- */

/* Prints the labels that hold, each with its score, or all scores as JSON; takes `scores` over: objects with
 * "label" and "score", the best first. */
static struct status put_scores(const struct labelling *l, json_t *scores, enum label_problem problem)
{
    if (l->flags->json || scores == NULL) {
        return standard_streams_put_json(scores);
    }
    bool is_first = true;
    for (size_t i = 0; i < json_array_size(scores); i++) {
        const json_t *one = json_array_get(scores, i);
        double score = json_real_value(json_object_get(one, "score"));
        bool holds = problem == PROBLEM_SINGLE_LABEL ? i == 0 : problem == PROBLEM_REGRESSION || score > 0.5;
        if (holds) {
            printf("%s%s\t%.4f", is_first ? "" : "\t", json_string_value(json_object_get(one, "label")),
                   score);
            is_first = false;
        }
    }
    putchar('\n');
    json_decref(scores);
    return status_ok();
}

static json_t *zero_shot_to_json(const struct labelling *l, const struct classify_job *j, size_t text)
{
    size_t n = (size_t)l->labels.n;
    struct class_reading *scores = calloc(n, sizeof *scores);
    json_t *list = scores == NULL ? NULL : json_array();
    if (scores != NULL) {
        zero_shot_score(scores, &l->rule, &j->logits, text, n);
    }
    for (size_t k = 0; list != NULL && k < n; k++) {
        json_array_append_new(list, json_pack("{s:f, s:s}", "score", scores[k].score, "label",
                                              label_names_get(&l->labels, scores[k].label)));
    }
    free(scores);
    return list;
}

static struct status put_labels(struct labelling *l, const struct classify_job *j, size_t n)
{
    enum label_problem problem = l->rule.multi_label ? PROBLEM_MULTI_LABEL : PROBLEM_SINGLE_LABEL;
    if (l->labels.n == 0) {
        problem = classify_texts_problem(&l->session);
    }
    for (size_t i = 0; i < n; i++) {
        TRY(put_scores(l,
                       l->labels.n > 0 ? zero_shot_to_json(l, j, i)
                                       : classify_job_to_json(j, (int64_t)i, problem, INT64_MAX),
                       problem));
    }
    return status_ok();
}

/* Answers n texts of n_rows texts or pairs. */
static struct status classify_rows(struct labelling *l, const struct text_bytes *texts,
                                   const struct text_bytes *pairs, size_t n_rows, size_t n)
{
    struct classify_job j;
    struct status s =
        classify_job_make(&j, &l->session, &l->session.scratch, texts, pairs, n_rows, TEXT_CUT_END);
    s = failed(s) ? s : packer_answer(&l->session.packer, &j.request);
    s = failed(s) ? s : put_labels(l, &j, n);
    l->n_cut += j.texts.n_cut;
    classify_job_fini(&j);
    return s;
}

/* Splits each text at its tab. */
static struct status split(struct text_bytes *rows, struct text_bytes *pairs, const struct text_bytes *texts,
                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *end = texts[i].bytes + texts[i].n, *tab = memchr(texts[i].bytes, '\t', texts[i].n);
        FAIL_IF(tab == NULL, STATUS_DATA, "--pairs: \"%.*s\" has no tab between two texts",
                (int)(texts[i].n < 80 ? texts[i].n : 80), texts[i].bytes);
        rows[i] = (struct text_bytes){texts[i].bytes, (size_t)(tab - texts[i].bytes)};
        pairs[i] = (struct text_bytes){tab + 1, (size_t)(end - tab - 1)};
    }
    return status_ok();
}

/* Each text beside each hypothesis. */
static void cross(const struct labelling *l, struct text_bytes *rows, struct text_bytes *pairs,
                  const struct text_bytes *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *hypothesis = buf_text(&l->hypotheses);
        for (int64_t k = 0; k < l->labels.n; k++) {
            *rows++ = texts[i];
            *pairs++ = (struct text_bytes){hypothesis, strlen(hypothesis)};
            hypothesis += strlen(hypothesis) + 1;
        }
    }
}

static struct status classify_group(void *self, const struct text_bytes *texts, size_t n)
{
    struct labelling *l = self;
    if (!l->flags->pairs && l->labels.n == 0) {
        return classify_rows(l, texts, NULL, n, n);
    }
    size_t n_rows = l->labels.n > 0 ? n * (size_t)l->labels.n : n;
    struct text_bytes *rows = calloc(2 * n_rows, sizeof *rows), *pairs = rows + n_rows;
    FAIL_IF(rows == NULL, STATUS_MEMORY, "out of memory for %zu pairs of texts", n_rows);
    struct status s = status_ok();
    if (l->labels.n > 0) {
        cross(l, rows, pairs, texts, n);
    } else {
        s = split(rows, pairs, texts, n);
    }
    s = failed(s) ? s : classify_rows(l, rows, pairs, n_rows, n);
    free(rows);
    return s;
}

/* ---- labels of the caller ---- */

static struct status read_labels(struct labelling *l)
{
    const char *template = l->flags->hypothesis_template;
    for (const char *at = l->flags->labels; *at != '\0';) {
        size_t n = strcspn(at, ",");
        TRY(label_names_add(&l->labels, at, n));
        zero_shot_append_hypothesis(&l->hypotheses, template, label_names_get(&l->labels, l->labels.n - 1));
        buf_putc(&l->hypotheses, '\0');
        at += n + (at[n] == ',');
    }
    FAIL_IF(
        !zero_shot_find(&l->rule, &l->session.model->labels), STATUS_USAGE,
        "--labels needs a model of pairs that knows entailment (NLI): none of its labels is \"entailment\"");
    l->rule.multi_label = l->flags->multi_label;
    return buf_status(&l->hypotheses);
}

static struct status check(const struct label_texts_flags *f)
{
    FAIL_IF(f->labels != NULL && f->pairs, STATUS_USAGE, "--labels and --pairs contradict each other");
    FAIL_IF(f->labels != NULL && strstr(f->hypothesis_template, "{}") == NULL, STATUS_USAGE,
            "--hypothesis_template has no {} for the label");
    return status_ok();
}

static struct status
label(struct labelling *l, const struct session_flags *session, const struct label_texts_flags *f,
      enum answer answer, struct status (*answer_group)(void *self, const struct text_bytes *texts, size_t n),
      int n_texts, const char *const *texts)
{
    *l = (struct labelling){.flags = f};
    TRY(check(f));
    if (session->common.dry_run) {
        return session_flags_plan(session, answer);
    }
    TRY(session_flags_open(&l->session, session, answer));
    struct status s = f->labels == NULL ? status_ok() : read_labels(l);
    while (f->strategy != NULL && strcmp(tag_strategies[l->strategy], f->strategy) != 0) {
        l->strategy++; /* it is one of them: a choice */
    }
    s = failed(s) ? s : text_groups_answer(n_texts, texts, answer_group, l);
    if (!failed(s)) {
        text_groups_warn_cut(l->n_cut, l->session.max_length);
    }
    label_names_fini(&l->labels);
    buf_fini(&l->hypotheses);
    session_close(&l->session);
    return s;
}

struct status label_texts_classify(const struct session_flags *session, const struct label_texts_flags *f,
                                   int n_texts, const char *const *texts)
{
    struct labelling l;
    return label(&l, session, f, ANSWER_CLASSIFY, classify_group, n_texts, texts);
}

/* ---- tag ---- */

static void print_entities(const struct text_bytes *text, const json_t *list)
{
    printf("%.*s\n", (int)text->n, text->bytes);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *type, *word;
        double score;
        json_int_t start, end;
        json_t *one = json_array_get(list, i);
        const char *key = json_object_get(one, "entity") != NULL ? "entity" : "entity_group";
        if (json_unpack(one, "{s:s, s:F, s:s, s:I, s:I}", key, &type, "score", &score, "word", &word, "start",
                        &start, "end", &end) == 0) {
            printf("  %6.4f  %s  %s  [characters %lld to %lld]\n", score, type, word, (long long)start,
                   (long long)end);
        }
    }
}

static struct status tag_text(struct labelling *l, const struct text_bytes *text)
{
    struct tag_text_job j;
    struct buf copy = {0}; /* ended by a NUL */
    buf_append(&copy, text->bytes, text->n);
    struct status s = tag_text_job_make(&j, &l->session, &l->session.scratch, text, l->flags->stride);
    s = failed(s) ? s : packer_answer(&l->session.packer, &j.request);
    json_t *list = failed(s) ? NULL : tag_text_to_json(&j, buf_text(&copy), l->strategy, NULL);
    if (!failed(s) && l->flags->json) {
        s = standard_streams_put_json(list);
    } else if (!failed(s)) {
        print_entities(text, list);
        json_decref(list);
    }
    tag_text_job_fini(&j);
    buf_fini(&copy);
    return s;
}

static struct status tag_group(void *self, const struct text_bytes *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        TRY(tag_text(self, &texts[i]));
    }
    return status_ok();
}

struct status label_texts_tag(const struct session_flags *session, const struct label_texts_flags *f,
                              int n_texts, const char *const *texts)
{
    struct labelling l;
    return label(&l, session, f, ANSWER_TAG, tag_group, n_texts, texts);
}
