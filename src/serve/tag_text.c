#include "serve/tag_text.h"

#include "core/integers.h"
#include "data/class_score.h"
#include "serve/token_text.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

const char *const tag_strategies[] = {"none", "simple", "first", "average", "max", NULL};

/* The window to which a token belongs: each begins `room - stride` after the one before, and half of what two
 * have in common belongs to either. */
static int64_t window_of(const struct tag_text_job *j, int64_t token)
{
    int64_t w = (token - j->stride / 2) / (j->room - j->stride);
    return int_smaller(int_larger(w, 0), j->windows.n - 1);
}

const float *tag_text_logits(const struct tag_text_job *j, int64_t token)
{
    int64_t w = window_of(j, token), first = w * (j->room - j->stride);
    return class_logits_get(&j->logits, w) + (j->n_before + token - first) * j->logits.n_labels;
}

static struct status add_windows(struct tag_text_job *j)
{
    struct encoded_texts *w = &j->windows;
    struct token_range window = {0};
    int64_t n = (int64_t)j->tokens.n;
    for (int64_t i = 0; i < n; i++) {
        FAIL_IF(!id_list_append(&w->ids, j->tokens.tokens[i].id), STATUS_MEMORY,
                "out of memory for the tokens of a text");
    }
    while (encoded_texts_next_window(&window, n, j->room, j->room - j->stride)) {
        TRY(encoded_texts_add_tokens(w, window, NULL));
    }
    return n > 0 ? status_ok() : encoded_texts_add_tokens(w, window, NULL);
}

struct status tag_text_job_make(struct tag_text_job *j, const struct session *s,
                                struct tokenizer_scratch *scratch, const struct text_bytes *text,
                                int64_t stride)
{
    const struct input_form *form = &s->frame.one;
    int64_t room = s->max_length - input_form_n_special(form);
    *j = (struct tag_text_job){.labels = &s->model->labels,
                               .tokenizer = s->tokenizer,
                               .room = room,
                               .stride = stride < 0 ? room / 4 : stride,
                               .n_before = form->before.n};
    FAIL_IF(j->stride >= room, STATUS_USAGE, "a stride of %lld tokens is not less than the %lld of a window",
            (long long)j->stride, (long long)room);
    TRY(encoded_texts_init(&j->windows, s->tokenizer, s->max_length, "a text to label"));
    j->windows.of_tokens = true;
    TRY(tokenizer_encode(scratch, &j->tokens, text->bytes, text->n));
    TRY(add_windows(j));
    TRY(class_logits_init(&j->logits, &j->windows, j->labels->n));
    j->request = class_logits_request(&j->logits);
    return status_ok();
}

void tag_text_job_fini(struct tag_text_job *j)
{
    class_logits_fini(&j->logits);
    encoded_texts_fini(&j->windows);
    token_list_fini(&j->tokens);
}

/* ---- a text's tokens ---- */

/* Tokens [first, end) with one label. */
struct tagged {
    int64_t first, end;
    int64_t label;
    double score;
};

/* State of a text while its answer is made. */
struct tagged_text {
    const struct tag_text_job *job;
    const char *text;
    int64_t n;              /* tokens */
    double *scores;         /* [n, labels] probabilities */
    int64_t *starts, *ends; /* [n] characters */
    struct tagged *found;   /* [n] */
    int64_t n_found;
};

static const struct token *token_of(const struct tagged_text *t, int64_t i)
{
    return &t->job->tokens.tokens[i];
}

static const char *label_name(const struct tagged_text *t, int64_t label)
{
    return label_names_get(t->job->labels->names, label);
}

static void set_scores(struct tagged_text *t)
{
    struct model_labels labels = *t->job->labels;
    struct class_reading *all = calloc((size_t)labels.n, sizeof *all);
    labels.problem = PROBLEM_SINGLE_LABEL;
    for (int64_t i = 0; all != NULL && i < t->n; i++) {
        class_logits_read(all, tag_text_logits(t->job, i), &labels);
        for (int64_t k = 0; k < labels.n; k++) {
            t->scores[i * labels.n + k] = all[k].score;
        }
    }
    free(all);
}

/* Places in characters; tokens begin in the order of the text. */
static void set_places(struct tagged_text *t)
{
    size_t at = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const struct token *k = token_of(t, i);
        n += k->start >= at ? utf8_count(t->text + at, k->start - at)
                            : -utf8_count(t->text + k->start, at - k->start);
        at = k->start;
        t->starts[i] = n;
        t->ends[i] = n + utf8_count(t->text + k->start, k->end - k->start);
    }
}

/* Whether a token is of the word before it.  An unknown one is a word. */
static bool continues_word(const struct tagged_text *t, int64_t i)
{
    int32_t id = token_of(t, i)->id;
    return i > 0 && id != t->job->tokenizer->special[SPECIAL_UNKNOWN] &&
           tokenizer_continues_word(t->job->tokenizer, id);
}

/* ---- words and entities ---- */

static int64_t best_of(const double *scores, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++) {
        best = scores[k] > scores[best] ? k : best;
    }
    return best;
}

/* The label of the word [first, end), by its first token, the mean of its tokens, or the surest. */
static struct tagged label_word(const struct tagged_text *t, int64_t first, int64_t end, enum tag_strategy s)
{
    int64_t n = t->job->labels->n;
    struct tagged w = {.first = first, .end = end, .label = best_of(t->scores + first * n, n)};
    w.score = t->scores[first * n + w.label];
    for (int64_t i = first + 1; s == TAG_MAX && i < end; i++) {
        int64_t label = best_of(t->scores + i * n, n);
        if (t->scores[i * n + label] > w.score) {
            w.label = label;
            w.score = t->scores[i * n + label];
        }
    }
    for (int64_t k = 0; s == TAG_AVERAGE && k < n; k++) {
        double mean = 0;
        for (int64_t i = first; i < end; i++) {
            mean += t->scores[i * n + k] / (double)(end - first);
        }
        if (k == 0 || mean > w.score) {
            w.label = k;
            w.score = mean;
        }
    }
    return w;
}

static void find_words(struct tagged_text *t, enum tag_strategy s)
{
    bool of_tokens = s == TAG_NONE || s == TAG_SIMPLE;
    for (int64_t first = 0, end; first < t->n; first = end) {
        end = first + 1;
        while (!of_tokens && end < t->n && continues_word(t, end)) {
            end++;
        }
        t->found[t->n_found++] = label_word(t, first, end, s);
    }
}

/* The type of a label: "PER" of "B-PER". */
static const char *type_of(const char *label)
{
    return strncmp(label, "B-", 2) == 0 || strncmp(label, "I-", 2) == 0 ? label + 2 : label;
}

/* Joins neighbours of one type, unless a label begins an entity; scores are means. */
static void group(struct tagged_text *t)
{
    int64_t n = 0, n_joined = 0;
    for (int64_t i = 0; i < t->n_found; i++) {
        const struct tagged w = t->found[i];
        const char *label = label_name(t, w.label);
        struct tagged *last = n == 0 ? NULL : &t->found[n - 1];
        if (last != NULL && strncmp(label, "B-", 2) != 0 &&
            strcmp(type_of(label), type_of(label_name(t, last->label))) == 0) {
            last->score = (last->score * (double)n_joined + w.score) / (double)(n_joined + 1);
            last->end = w.end;
            n_joined++;
        } else {
            t->found[n++] = w;
            n_joined = 1;
        }
    }
    t->n_found = n;
}

/* ---- the answer ---- */

static void append_token(struct buf *out, const struct tagged_text *t, int64_t i, bool is_first)
{
    const struct token *k = token_of(t, i);
    size_t n;
    const char *piece = tokenizer_piece(t->job->tokenizer, k->id, &n);
    if (k->id == t->job->tokenizer->special[SPECIAL_UNKNOWN]) {
        piece = t->text + k->start;
        n = k->end - k->start;
    }
    token_text_append_piece(out, piece, n, is_first);
}

static json_t *word_of(const struct tagged_text *t, const struct tagged *w)
{
    struct buf word = {0};
    for (int64_t i = w->first; i < w->end; i++) {
        append_token(&word, t, i, i == w->first);
    }
    return token_text_to_json(&word);
}

static json_t *tagged_to_json(const struct tagged_text *t, const struct tagged *w, bool is_token)
{
    const char *label = label_name(t, w->label), *dash = strchr(label, '-');
    json_t *o = json_pack("{s:s, s:f}", is_token ? "entity" : "entity_group",
                          is_token || dash == NULL ? label : dash + 1, "score", w->score);
    if (is_token) {
        json_object_set_new(o, "index", json_integer(w->first + t->job->n_before));
    }
    json_object_set_new(o, "word", word_of(t, w));
    json_object_set_new(o, "start", json_integer(t->starts[w->first]));
    json_object_set_new(o, "end", json_integer(t->ends[w->end - 1]));
    return o;
}

/* Whether a label, or the type of a group, is one that the caller does not want. */
static bool is_ignored(const json_t *list, const char *name)
{
    bool found = list == NULL && strcmp(name, "O") == 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *label = json_string_value(json_array_get(list, i));
        found = found || (label != NULL && strcmp(label, name) == 0);
    }
    return found;
}

static json_t *entities_to_json(struct tagged_text *t, enum tag_strategy s, const json_t *ignored)
{
    json_t *list = json_array();
    set_scores(t);
    set_places(t);
    find_words(t, s);
    if (s != TAG_NONE) {
        group(t);
    }
    for (int64_t i = 0; i < t->n_found; i++) {
        json_t *one = tagged_to_json(t, &t->found[i], s == TAG_NONE);
        const char *name = json_string_value(json_object_get(one, s == TAG_NONE ? "entity" : "entity_group"));
        if (!is_ignored(ignored, name)) {
            json_array_append(list, one);
        }
        json_decref(one);
    }
    return list;
}

json_t *tag_text_to_json(const struct tag_text_job *j, const char *text, enum tag_strategy strategy,
                         const json_t *ignored)
{
    size_t n = j->tokens.n + 1;
    struct tagged_text t = {.job = j,
                            .text = text,
                            .n = (int64_t)j->tokens.n,
                            .scores = calloc(n * (size_t)j->labels->n, sizeof *t.scores),
                            .starts = calloc(n, sizeof *t.starts),
                            .ends = calloc(n, sizeof *t.ends),
                            .found = calloc(n, sizeof *t.found)};
    bool has_room = t.scores != NULL && t.starts != NULL && t.ends != NULL && t.found != NULL;
    json_t *list = has_room ? entities_to_json(&t, strategy, ignored) : NULL;
    free(t.scores);
    free(t.starts);
    free(t.ends);
    free(t.found);
    return list;
}
