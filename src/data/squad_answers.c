#include "data/squad_answers.h"

#include "data/sorted_batches.h"
#include "data/squad_text.h"
#include "io/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A start and an end that fit. */
struct squad_span {
    int32_t start, end; /* positions in the feature */
    int32_t order;      /* number of the pair, for equal scores */
    double score;
};

struct status squad_answers_init(struct squad_answers *a, const struct squad_examples *e,
                                 const struct squad_features *f, const struct tokenizer *tokenizer,
                                 struct squad_answer_options o)
{
    *a = (struct squad_answers){.examples = e, .features = f, .options = o};
    FAIL_IF(o.n_best < 1 || o.n_best > SQUAD_MAX_N_BEST || o.max_answer_length < 1, STATUS_USAGE,
            "n_best_size is %lld, which must be from 1 to %d; max_answer_length is %lld, "
            "which must be at least 1",
            (long long)o.n_best, SQUAD_MAX_N_BEST, (long long)o.max_answer_length);
    size_t n_best = (size_t)o.n_best, n = (size_t)f->n;
    TRY(squad_align_init(&a->align, tokenizer));
    a->found = calloc(n * n_best + 1, sizeof *a->found);
    a->n_found = malloc((n + 1) * sizeof *a->n_found);
    a->null_logits = calloc(2 * n + 1, sizeof *a->null_logits);
    a->spans = calloc(n_best * n_best, sizeof *a->spans);
    a->best_starts = calloc(n_best, sizeof *a->best_starts);
    a->best_ends = calloc(n_best, sizeof *a->best_ends);
    a->results = calloc((size_t)e->n + 1, sizeof *a->results);
    if (a->found == NULL || a->n_found == NULL || a->null_logits == NULL || a->spans == NULL ||
        a->best_starts == NULL || a->best_ends == NULL || a->results == NULL) {
        squad_answers_fini(a);
        return status_error(STATUS_MEMORY, "out of memory for the %zu best answers of %zu features", n_best,
                            n);
    }
    for (size_t i = 0; i < n; i++) {
        a->n_found[i] = -1;
    }
    struct example_source source = squad_features_source(f);
    return sorted_batches_order(&a->order, &source);
}

void squad_answers_fini(struct squad_answers *a)
{
    squad_align_fini(&a->align);
    free(a->found);
    free(a->n_found);
    free(a->null_logits);
    free(a->spans);
    free(a->best_starts);
    free(a->best_ends);
    free(a->results);
    free(a->order);
    buf_fini(&a->texts);
    buf_fini(&a->best);
    *a = (struct squad_answers){0};
}

/* Columns of the logits [n, 2]: those of a start and of an end. */
enum { START, END };

/* The positions of the k largest logits of a side, the first of equals first; returns how many there are. */
static int64_t find_largest(int32_t *best, const float *logits, int side, int64_t n, int64_t k)
{
    int64_t n_best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (n_best == k && !(logits[2 * i + side] > logits[2 * best[k - 1] + side])) {
            continue;
        }
        int64_t at = n_best < k ? n_best++ : k - 1;
        for (; at > 0 && logits[2 * i + side] > logits[2 * best[at - 1] + side]; at--) {
            best[at] = best[at - 1];
        }
        best[at] = (int32_t)i;
    }
    return n_best;
}

static int compare_spans(const void *left, const void *right)
{
    const struct squad_span *a = left;
    const struct squad_span *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/* The valid pairs of one of the best starts and one of the best ends, the best pair first. */
static int64_t find_spans(struct squad_answers *a, int64_t feature, const float *logits)
{
    int64_t length = encoded_texts_length(&a->features->texts, feature), n = 0;
    int64_t n_starts = find_largest(a->best_starts, logits, START, length, a->options.n_best);
    int64_t n_ends = find_largest(a->best_ends, logits, END, length, a->options.n_best);
    for (int64_t i = 0; i < n_starts; i++) {
        int32_t s = a->best_starts[i];
        if (squad_feature_word(a->features, feature, s) < 0 ||
            !squad_feature_is_max_context(a->features, feature, s)) {
            continue;
        }
        for (int64_t j = 0; j < n_ends; j++) {
            int32_t e = a->best_ends[j];
            bool fits = squad_feature_word(a->features, feature, e) >= 0 && e >= s &&
                        e - s < a->options.max_answer_length;
            if (fits) {
                double score = (double)logits[2 * s + START] + (double)logits[2 * e + END];
                a->spans[n] = (struct squad_span){s, e, (int32_t)n, score};
                n++;
            }
        }
    }
    qsort(a->spans, (size_t)n, sizeof *a->spans, compare_spans);
    return n;
}

/* The words of the context that a span comes from, narrowed to the text of its pieces. */
static struct status place_span(struct squad_answers *a, struct squad_candidate *c, int64_t feature,
                                const struct squad_span *s)
{
    const struct squad_features *f = a->features;
    const struct squad_feature *w = &f->features[feature];
    const struct squad_context *context = squad_example_context(a->examples, w->example);
    const struct squad_word *words = a->examples->words + context->first_word;
    int64_t shift =
        encoded_texts_get(&f->texts, feature)->b.first - encoded_texts_second_at(&f->texts, feature);
    c->start = words[squad_feature_word(f, feature, s->start)].start;
    c->end = words[squad_feature_word(f, feature, s->end)].end;
    return squad_align_find(&a->align, &c->start, &c->end, squad_context_text(a->examples, context),
                            f->texts.ids.ids + shift + s->start, s->end - s->start + 1);
}

/* Appends the text of a candidate to a->texts and returns whether it is new there.  Texts are end to end,
 * each with a NUL. */
static bool is_new_text(struct squad_answers *a, int64_t example, const struct squad_candidate *c)
{
    size_t at = a->texts.n;
    squad_answers_text(&a->texts, a, example, c);
    buf_putc(&a->texts, '\0');
    if (a->texts.failed) {
        return true; /* reported by the caller */
    }
    for (size_t i = 0; i < at; i += strlen(a->texts.data + i) + 1) {
        if (strcmp(a->texts.data + i, a->texts.data + at) == 0) {
            a->texts.n = at;
            return false;
        }
    }
    return true;
}

struct status squad_answers_add(struct squad_answers *a, int64_t feature, const float *logits)
{
    int32_t example = a->features->features[feature].example;
    for (int64_t i = 0; i < encoded_texts_length(&a->features->texts, feature); i++) {
        FAIL_IF(!isfinite(logits[2 * i + START]) || !isfinite(logits[2 * i + END]), STATUS_NUMERIC,
                "the logits of question %.100s are not finite at position %lld",
                squad_example_id(a->examples, example), (long long)i);
    }
    int64_t n_spans = find_spans(a, feature, logits);
    struct squad_candidate *found = a->found + feature * a->options.n_best;
    int32_t n = 0;
    buf_clear(&a->texts);
    for (int64_t i = 0; i < n_spans && n < a->options.n_best; i++) {
        const struct squad_span *s = &a->spans[i];
        found[n] = (struct squad_candidate){.start_logit = logits[2 * s->start + START],
                                            .end_logit = logits[2 * s->end + END]};
        TRY(place_span(a, &found[n], feature, s));
        n += is_new_text(a, example, &found[n]);
        TRY(buf_status(&a->texts));
    }
    a->n_found[feature] = n;
    a->null_logits[2 * feature] = logits[START];
    a->null_logits[2 * feature + 1] = logits[END];
    return status_ok();
}

static double score_of(const struct squad_candidate *c)
{
    return (double)c->start_logit + (double)c->end_logit;
}

/* Moves the k best of c[0..n) to the front, best first and the first of equals first; returns how many. */
static int64_t keep_best(struct squad_candidate *c, int64_t n, int64_t k)
{
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i++) {
        struct squad_candidate moved = c[i];
        if (n_kept == k && !(score_of(&moved) > score_of(&c[k - 1]))) {
            continue;
        }
        int64_t at = n_kept < k ? n_kept++ : k - 1;
        for (; at > 0 && score_of(&moved) > score_of(&c[at - 1]); at--) {
            c[at] = c[at - 1];
        }
        c[at] = moved;
    }
    return n_kept;
}

static void set_probabilities(struct squad_candidate *c, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        c[i].probability = exp(score_of(&c[i]) - score_of(&c[0]));
        sum += c[i].probability;
    }
    for (int64_t i = 0; i < n; i++) {
        c[i].probability /= sum;
    }
}

/* The null answer of a question: the logits of the window where it scores lowest. */
static struct squad_candidate find_null(const struct squad_answers *a, int64_t example)
{
    struct squad_candidate null = {.start = SQUAD_PLACE_NULL, .end = SQUAD_PLACE_NULL};
    const int64_t *first = a->features->first_features + example;
    for (int64_t i = first[0]; i < first[1]; i++) {
        struct squad_candidate c = null;
        c.start_logit = a->null_logits[2 * i];
        c.end_logit = a->null_logits[2 * i + 1];
        null = i == first[0] || score_of(&c) < score_of(&null) ? c : null;
    }
    return null;
}

/* The index of the answer among the n best; -1: none. */
static int32_t choose(const struct squad_answers *a, struct squad_result *r,
                      const struct squad_candidate *best, const struct squad_candidate *null)
{
    if (!a->options.version_2) {
        return 0;
    }
    int32_t k = 0;
    while (k < r->n && best[k].start == SQUAD_PLACE_NULL) {
        k++;
    }
    if (k == r->n) {
        return -1;
    }
    r->null_diff = score_of(null) - (double)best[k].start_logit - (double)best[k].end_logit;
    return r->null_diff > a->options.null_score_diff_threshold ? -1 : k;
}

static struct status merge(struct squad_answers *a, int64_t example)
{
    struct squad_result *r = &a->results[example];
    const int64_t *first = a->features->first_features + example;
    size_t begin = a->best.n;
    for (int64_t i = first[0]; i < first[1]; i++) {
        CHECK(a->n_found[i] >= 0, "feature %lld was not added", (long long)i);
        buf_append(&a->best, a->found + i * a->options.n_best, (size_t)a->n_found[i] * sizeof *a->found);
    }
    struct squad_candidate null = find_null(a, example);
    struct squad_candidate empty = {.start = SQUAD_PLACE_EMPTY, .end = SQUAD_PLACE_EMPTY};
    if (a->options.version_2) {
        buf_append(&a->best, &null, sizeof null);
    } else if (a->best.n == begin) {
        buf_append(&a->best, &empty, sizeof empty);
    }
    TRY(buf_status(&a->best));
    struct squad_candidate *best = (struct squad_candidate *)(void *)(a->best.data + begin);
    int64_t n = keep_best(best, (int64_t)((a->best.n - begin) / sizeof *best), a->options.n_best);
    a->best.n = begin + (size_t)n * sizeof *best;
    set_probabilities(best, n);
    r->first = (int64_t)(begin / sizeof *best);
    r->n = (int32_t)n;
    r->answer = choose(a, r, best, &null);
    return status_ok();
}

struct status squad_answers_finish(struct squad_answers *a)
{
    for (int64_t i = 0; i < a->examples->n; i++) {
        TRY(merge(a, i));
    }
    return status_ok();
}

const struct squad_candidate *squad_answers_candidate(const struct squad_answers *a, int64_t example,
                                                      int64_t k)
{
    return (const struct squad_candidate *)(const void *)a->best.data + a->results[example].first + k;
}

void squad_answers_text(struct buf *out, const struct squad_answers *a, int64_t example,
                        const struct squad_candidate *c)
{
    if (c->start < 0) {
        buf_puts(out, c->start == SQUAD_PLACE_EMPTY ? "empty" : "");
        return;
    }
    const char *text = squad_context_text(a->examples, squad_example_context(a->examples, example));
    bool after_space = false;
    for (size_t at = (size_t)c->start; at < (size_t)c->end;) {
        size_t n_space = squad_space_bytes(text + at, (size_t)c->end - at);
        if (n_space == 0) {
            if (after_space) {
                buf_putc(out, ' ');
            }
            buf_putc(out, text[at]);
        }
        after_space = n_space > 0;
        at += n_space > 0 ? n_space : 1;
    }
}

static void put_text(struct buf *out, struct buf *scratch, const struct squad_answers *a, int64_t example,
                     const struct squad_candidate *c)
{
    buf_clear(scratch);
    squad_answers_text(scratch, a, example, c);
    squad_text_json_string(out, scratch->data, scratch->n);
}

static void put_nbest(struct buf *out, struct buf *scratch, const struct squad_answers *a, int64_t example)
{
    buf_puts(out, "[\n");
    for (int32_t k = 0; k < a->results[example].n; k++) {
        const struct squad_candidate *c = squad_answers_candidate(a, example, k);
        buf_puts(out, k > 0 ? ",\n        {\n            \"text\": " : "        {\n            \"text\": ");
        put_text(out, scratch, a, example, c);
        buf_puts(out, ",\n            \"probability\": ");
        squad_text_json_real(out, c->probability);
        buf_puts(out, ",\n            \"start_logit\": ");
        squad_text_json_real(out, (double)c->start_logit);
        buf_puts(out, ",\n            \"end_logit\": ");
        squad_text_json_real(out, (double)c->end_logit);
        buf_puts(out, "\n        }");
    }
    buf_puts(out, "\n    ]");
}

/* Writes one of the two files, which are small enough to be built in memory. */
static struct status write_file(const struct squad_answers *a, const char *path, bool nbest)
{
    const struct squad_candidate none = {.start = SQUAD_PLACE_NULL};
    struct buf out = {0}, scratch = {0};
    buf_puts(&out, "{");
    for (int64_t i = 0; i < a->examples->n; i++) {
        buf_puts(&out, i > 0 ? ",\n    " : "\n    ");
        squad_text_json_string(&out, squad_example_id(a->examples, i),
                               (size_t)a->examples->examples[i].id_bytes);
        buf_puts(&out, ": ");
        int32_t k = a->results[i].answer;
        if (nbest) {
            put_nbest(&out, &scratch, a, i);
        } else {
            put_text(&out, &scratch, a, i, k < 0 ? &none : squad_answers_candidate(a, i, k));
        }
    }
    buf_puts(&out, a->examples->n > 0 ? "\n}\n" : "}\n");
    struct status s = failed(buf_status(&scratch)) ? buf_status(&scratch) : buf_status(&out);
    s = failed(s) ? s : file_write_atomic(path, out.data, out.n);
    buf_fini(&out);
    buf_fini(&scratch);
    return s;
}

struct status squad_answers_write(const struct squad_answers *a, const char *predictions_path,
                                  const char *nbest_path)
{
    if (predictions_path != NULL) {
        TRY(write_file(a, predictions_path, false));
    }
    return nbest_path != NULL ? write_file(a, nbest_path, true) : status_ok();
}
