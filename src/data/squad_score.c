#include "data/squad_score.h"

#include "core/log.h"
#include "data/squad_text.h"
#include "text/letter_case.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* A text as the metric compares it: words without case, punctuation and articles, with one space between
 * them. */
struct words {
    struct buf text;
    struct buf starts; /* const char *: the words, sorted */
    size_t n;
};

struct scorer {
    struct buf lower, plain; /* scratch of normalise */
    struct words prediction, truth;
    bool version_2;
};

/* Whether a sigma ends a word (Final_Sigma, the same chapter): a letter is before it (`before`), and none
 * after it. text[0..n) follows the sigma. */
static bool is_final_sigma(bool before, const char *text, size_t n)
{
    for (size_t at = 0; at < n && before;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
        if (!letter_case_is_ignored(c)) {
            return !letter_case_has(c);
        }
    }
    return before;
}

static void put_char(struct buf *out, uint32_t c)
{
    char bytes[UTF8_MAX_BYTES];
    buf_append(out, bytes, (size_t)utf8_write(bytes, c));
}

/* Appends the text in lower case, as str.lower(), without ASCII punctuation. */
static void put_lower(struct buf *out, const char *text, size_t n)
{
    bool after_letter = false; /* skipping case-ignorable characters */
    for (size_t at = 0; at < n;) {
        uint32_t c;
        at += (size_t)utf8_decode(&c, text + at, n - at);
        if (c == 0x3A3) {
            put_char(out, is_final_sigma(after_letter, text + at, n - at) ? 0x3C2 : 0x3C3);
        } else if (c == 0x130) { /* the one letter whose lower case is two code points: i and a dot above */
            buf_puts(out, "i\xCC\x87");
        } else if (c >= 0x80 || c == 0 || strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", (int)c) == NULL) {
            put_char(out, letter_case_lower(c));
        }
        after_letter = letter_case_is_ignored(c) ? after_letter : letter_case_has(c);
    }
}

/* Appends the text with a space instead of "a", "an" and "the"; a word is a run of letters and digits. */
static void put_without_articles(struct buf *out, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t c;
        size_t end = at + (size_t)utf8_decode(&c, text + at, n - at);
        bool word = letter_case_is_word(c);
        while (word && end < n) {
            size_t n_bytes = (size_t)utf8_decode(&c, text + end, n - end);
            if (!letter_case_is_word(c)) {
                break;
            }
            end += n_bytes;
        }
        const char *run = text + at;
        size_t n_run = end - at;
        bool article = (n_run == 1 && *run == 'a') || (n_run == 2 && memcmp(run, "an", 2) == 0) ||
                       (n_run == 3 && memcmp(run, "the", 3) == 0);
        buf_append(out, article ? " " : run, article ? 1 : n_run);
        at = end;
    }
}

static int compare_words(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(*a, *b);
}

static const char *const *word_list(const struct words *w)
{
    return (const char *const *)(const void *)w->starts.data;
}

/* Normalises a text into words: w->text has them in order, each ended by a NUL, and w->starts sorted. */
static struct status normalise(struct scorer *s, struct words *w, const char *text, size_t n)
{
    buf_clear(&s->lower);
    buf_clear(&s->plain);
    buf_clear(&w->text);
    buf_clear(&w->starts);
    put_lower(&s->lower, text, n);
    put_without_articles(&s->plain, buf_text(&s->lower), s->lower.n);
    squad_text_join_words(&w->text, buf_text(&s->plain), s->plain.n);
    TRY(buf_status(&s->lower));
    TRY(buf_status(&s->plain));
    TRY(buf_status(&w->text));
    for (size_t at = 0; at < w->text.n;) {
        char *word = w->text.data + at;
        size_t n_word = strcspn(word, " ");
        buf_append(&w->starts, &(const char *){word}, sizeof word);
        word[n_word] = '\0';
        at += n_word + 1;
    }
    TRY(buf_status(&w->starts));
    w->n = w->starts.n / sizeof(char *);
    if (w->n > 1) {
        qsort(w->starts.data, w->n, sizeof(char *), compare_words);
    }
    return status_ok();
}

static bool is_exact(const struct words *a, const struct words *b)
{
    return a->text.n == b->text.n && (a->text.n == 0 || memcmp(a->text.data, b->text.data, a->text.n) == 0);
}

/* The harmonic mean of precision and recall of the words, each counted as often as it occurs. */
static double f1_of(const struct scorer *s)
{
    const struct words *p = &s->prediction, *t = &s->truth;
    if (s->version_2 && (p->n == 0 || t->n == 0)) {
        return p->n == t->n;
    }
    int64_t n_same = 0;
    for (size_t i = 0, j = 0; i < p->n && j < t->n;) {
        int order = strcmp(word_list(p)[i], word_list(t)[j]);
        n_same += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    if (n_same == 0) {
        return 0;
    }
    double precision = 1.0 * (double)n_same / (double)p->n;
    double recall = 1.0 * (double)n_same / (double)t->n;
    return 2 * precision * recall / (precision + recall);
}

/* The best score of a question over its answers.  By the rules of v2, answers that consist of articles and
 * punctuation do not count, and a question without any other answer has the answer "". */
static struct status score_question(struct scorer *s, double *exact, double *f1,
                                    const struct squad_examples *e, int64_t i, const char *prediction)
{
    const struct squad_example *x = &e->examples[i];
    TRY(normalise(s, &s->prediction, prediction, strlen(prediction)));
    *exact = 0;
    *f1 = 0;
    bool any = false;
    for (int64_t k = x->first_answer; k <= x->first_answer + x->n_answers; k++) {
        bool last = k == x->first_answer + x->n_answers; /* the empty answer, if there was no other */
        if (last && (any || !s->version_2)) {
            break;
        }
        TRY(normalise(s, &s->truth, last ? "" : squad_answer_text(e, k),
                      last ? 0 : (size_t)e->answers[k].n_bytes));
        if (s->version_2 && s->truth.n == 0 && !last) {
            continue;
        }
        any = true;
        double match = is_exact(&s->prediction, &s->truth), overlap = f1_of(s);
        *exact = match > *exact ? match : *exact;
        *f1 = overlap > *f1 ? overlap : *f1;
    }
    return status_ok();
}

static void add_to_part(struct squad_part *part, double exact, double f1)
{
    part->n++;
    part->exact_match += exact;
    part->f1 += f1;
}

/* Makes percentages of sums. */
static void end_part(struct squad_part *part)
{
    if (part->n > 0) {
        part->exact_match = 100.0 * part->exact_match / (double)part->n;
        part->f1 = 100.0 * part->f1 / (double)part->n;
    }
}

static struct status score_all(struct scorer *s, struct squad_scores *scores, const struct squad_examples *e,
                               const json_t *predictions, const char *source)
{
    struct squad_part all = {0};
    for (int64_t i = 0; i < e->n; i++) {
        const char *id = squad_example_id(e, i);
        const char *text = NULL;
        double exact = 0, f1 = 0;
        struct squad_part *part = e->examples[i].n_answers > 0 ? &scores->answerable : &scores->unanswerable;
        TRY(json_get_string(predictions, source, id, false, &text));
        if (text == NULL) {
            scores->n_missing++;
            log_warning("Unanswered question %s will receive score 0.", id);
        } else {
            TRY(score_question(s, &exact, &f1, e, i, text));
        }
        add_to_part(&all, exact, f1);
        add_to_part(part, exact, f1);
    }
    end_part(&all);
    end_part(&scores->answerable);
    end_part(&scores->unanswerable);
    scores->n = all.n;
    scores->exact_match = all.exact_match;
    scores->f1 = all.f1;
    scores->version_2 = s->version_2;
    return status_ok();
}

struct status squad_score(struct squad_scores *s, const struct squad_examples *e, const json_t *predictions,
                          const char *source)
{
    *s = (struct squad_scores){0};
    FAIL_IF(!json_is_object(predictions), STATUS_DATA,
            "%s: the file must hold one JSON object {\"id\": \"answer\"}", source);
    struct scorer scorer = {.version_2 = e->has_impossible};
    struct status status = score_all(&scorer, s, e, predictions, source);
    buf_fini(&scorer.lower);
    buf_fini(&scorer.plain);
    buf_fini(&scorer.prediction.text);
    buf_fini(&scorer.prediction.starts);
    buf_fini(&scorer.truth.text);
    buf_fini(&scorer.truth.starts);
    return status;
}

struct status squad_score_files(struct squad_scores *s, const char *dataset_path, const char *encoding,
                                const char *predictions_path)
{
    struct squad_examples e;
    json_t *predictions;
    TRY(json_read_object(&predictions, predictions_path));
    struct status status =
        squad_examples_open(&e, dataset_path, (struct squad_read_options){.encoding = encoding});
    if (!failed(status)) {
        status = squad_score(s, &e, predictions, predictions_path);
        squad_examples_fini(&e);
    }
    json_decref(predictions);
    return status;
}

void squad_score_to_text(struct buf *out, const struct squad_scores *s)
{
    buf_puts(out, "{\"exact_match\": ");
    squad_text_json_real(out, s->exact_match);
    buf_puts(out, ", \"f1\": ");
    squad_text_json_real(out, s->f1);
    buf_puts(out, "}");
}

static void add_row(json_t *rows, const char *name, struct squad_part part)
{
    json_array_append_new(rows,
                          json_pack("[s, f, f, I]", name, part.exact_match, part.f1, (json_int_t)part.n));
}

void squad_score_tables(json_t *tables, const struct squad_scores *s)
{
    json_t *rows = json_array();
    add_row(rows, "all", (struct squad_part){s->exact_match, s->f1, s->n});
    if (s->version_2) {
        add_row(rows, "with an answer", s->answerable);
        add_row(rows, "without an answer", s->unanswerable);
    }
    json_array_append_new(tables, json_pack("{s:s, s:[s, s, s, s], s:o}", "title", "Questions", "columns",
                                            "questions", "exact match", "F1", "number", "rows", rows));
}
