#include "cmd/blimp_report.h"

#include "core/log.h"

#include <stdlib.h>

static void count(struct blimp_tally *t, double good, double bad)
{
    t->n++;
    t->n_right += good > bad;
    t->n_ties += good == bad;
}

/* The scores of a pair.  Sentences with the same tokens have the same one, whatever rounding made of them in
 * their batches. */
static double good_of(const struct likelihood *texts, int64_t pair)
{
    return likelihood_get(texts, 2 * pair);
}

static double bad_of(const struct likelihood *texts, int64_t pair)
{
    return likelihood_get(texts,
                          likelihood_same_tokens(texts, 2 * pair, 2 * pair + 1) ? 2 * pair : 2 * pair + 1);
}

struct status blimp_report_init(struct blimp_report *r, const struct sentence_pairs *pairs,
                                const struct likelihood *texts)
{
    *r = (struct blimp_report){.pairs = pairs, .texts = texts};
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        r->levels[level] = calloc((size_t)pairs->n_groups[level] + 1, sizeof *r->levels[level]);
        if (r->levels[level] == NULL) {
            blimp_report_fini(r);
            return status_error(STATUS_MEMORY, "out of memory for %lld paradigms",
                                (long long)pairs->n_groups[level]);
        }
    }
    for (int64_t i = 0; i < pairs->n; i++) {
        const struct sentence_pair *pair = sentence_pairs_get(pairs, i);
        double good = good_of(texts, i), bad = bad_of(texts, i);
        count(&r->all, good, bad);
        for (int level = 0; level < PAIR_N_LEVELS; level++) {
            if (pair->group[level] >= 0) {
                count(&r->levels[level][pair->group[level]], good, bad);
            }
        }
        r->n_same += likelihood_same_tokens(texts, 2 * i, 2 * i + 1);
    }
    return status_ok();
}

void blimp_report_fini(struct blimp_report *r)
{
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        free(r->levels[level]);
    }
    *r = (struct blimp_report){0};
}

static double percent(const struct blimp_tally *t)
{
    return 100 * (double)t->n_right / (double)t->n;
}

/* The mean over paradigms, however many pairs each has. */
static double mean_of_paradigms(const struct blimp_report *r)
{
    int64_t n = r->pairs->n_groups[PAIR_PARADIGM];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += percent(&r->levels[PAIR_PARADIGM][i]);
    }
    return sum / (double)n;
}

enum { NAME_COLUMNS = 56 };

static void append_row(struct buf *b, const char *name, const struct blimp_tally *t)
{
    size_t end = b->n + NAME_COLUMNS;
    log_append_text(b, name);
    buf_printf(b, "%*s  %7lld  %7.2f  %6lld\n", b->n < end ? (int)(end - b->n) : 0, "", (long long)t->n,
               percent(t), (long long)t->n_ties);
}

void blimp_report_append(struct buf *b, const struct blimp_report *r)
{
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        int64_t n = r->pairs->n_groups[level];
        if (n > 0) {
            buf_printf(b, "%-*s  %7s  %7s  %6s\n", NAME_COLUMNS, pair_level_names[level].word, "pairs",
                       "right %", "ties");
        }
        for (int64_t i = 0; i < n; i++) {
            append_row(b, sentence_pairs_group(r->pairs, (enum pair_level)level, i)->name,
                       &r->levels[level][i]);
        }
        buf_puts(b, n > 0 ? "\n" : "");
    }
    append_row(b, "all pairs", &r->all);
    buf_printf(b, "%-*s  %7lld  %7.2f\n", NAME_COLUMNS, "mean of paradigms",
               (long long)r->pairs->n_groups[PAIR_PARADIGM], mean_of_paradigms(r));
}

static json_t *tally_json(const struct blimp_tally *t)
{
    return json_pack("{s:I, s:f, s:I}", "pairs", (json_int_t)t->n, "accuracy", percent(t), "ties",
                     (json_int_t)t->n_ties);
}

/* A group with the names of the groups above it. */
static json_t *group_json(const struct blimp_report *r, int level, int64_t i)
{
    json_t *object = tally_json(&r->levels[level][i]);
    const struct pair_group *g = sentence_pairs_group(r->pairs, (enum pair_level)level, i);
    for (int above = 1; level == PAIR_PARADIGM && above < PAIR_N_LEVELS; above++) {
        if (g->of[above] >= 0) {
            json_object_set_new(
                object, pair_level_names[above].word,
                json_text(sentence_pairs_group(r->pairs, (enum pair_level)above, g->of[above])->name));
        }
    }
    return object;
}

json_t *blimp_report_json(const struct blimp_report *r)
{
    json_t *root = tally_json(&r->all);
    json_object_set_new(root, "mean_of_paradigms", json_real(mean_of_paradigms(r)));
    json_object_set_new(root, "same_tokens", json_integer(r->n_same));
    for (int level = 0; level < PAIR_N_LEVELS; level++) {
        json_t *groups = json_object();
        for (int64_t i = 0; i < r->pairs->n_groups[level]; i++) {
            json_object_set_new(groups, sentence_pairs_group(r->pairs, (enum pair_level)level, i)->name,
                                group_json(r, level, i));
        }
        json_object_set_new(root, pair_level_names[level].word, groups);
    }
    return root;
}

struct status blimp_report_scores(struct buf *b, const struct blimp_report *r)
{
    for (int64_t i = 0; i < r->pairs->n; i++) {
        const struct sentence_pair *pair = sentence_pairs_get(r->pairs, i);
        json_t *line =
            json_pack("{s:o, s:I, s:f, s:f, s:I, s:I}", "file", json_text(r->pairs->paths[pair->file]),
                      "line", (json_int_t)pair->line, "good", good_of(r->texts, i), "bad",
                      bad_of(r->texts, i), "good_tokens", (json_int_t)likelihood_tokens(r->texts, 2 * i),
                      "bad_tokens", (json_int_t)likelihood_tokens(r->texts, 2 * i + 1));
        char *text = line == NULL ? NULL : json_dumps(line, JSON_COMPACT);
        json_decref(line);
        if (text == NULL) {
            return status_error(STATUS_MEMORY, "out of memory for the scores of %lld pairs",
                                (long long)r->pairs->n);
        }
        buf_puts(b, text);
        buf_putc(b, '\n');
        free(text);
    }
    return buf_status(b);
}
