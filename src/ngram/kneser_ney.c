#include "ngram/kneser_ney.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an n-gram: its token, count and probability; below the last level also where it continues, and
 * what it leaves to shorter contexts; while it is made, the n-gram without its first token, of two levels. */
enum { LEVEL_BYTES = 12, INNER_BYTES = 8, LINK_BYTES = 8, SORTING_BYTES = 9 };

/* Of each m-gram, the (m - 1)-gram without its first token. */
struct links {
    uint32_t *of[NGRAM_MOST_ORDER + 1];
};

static struct status allocate_floats(float **to, int64_t n)
{
    *to = malloc(((size_t)n + 1) * sizeof **to);
    return *to != NULL ? status_ok()
                       : status_error(STATUS_MEMORY, "out of memory for the probabilities of %lld n-grams",
                                      (long long)n);
}

/* ---- counts ---- */

static struct status link_level(struct links *l, const struct ngram_trie *t, int m)
{
    const struct ngram_level *contexts = &t->levels[m - 1], *level = &t->levels[m];
    uint32_t *link = l->of[m] = calloc((size_t)level->n + 1, sizeof *link);
    if (link == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for %lld n-grams", (long long)level->n);
    }
    for (int64_t h = 0; h < contexts->n; h++) {
        for (int64_t i = contexts->first[h]; i < contexts->first[h + 1]; i++) {
            link[i] = m == 1 ? 0 : (uint32_t)ngram_trie_find(t, m - 2, l->of[m - 1][h], level->token[i]);
        }
    }
    return status_ok();
}

/* Counts of level m become the number of different tokens before each n-gram; those that begin a document
 * keep theirs, and NGRAM_BEGIN alone, which is never predicted, has none. */
static void count_predecessors(struct ngram_trie *t, const struct links *l, int m)
{
    struct ngram_level *level = &t->levels[m];
    int64_t kept = ngram_trie_n_begins(t, m);
    memset(level->count + kept, 0, (size_t)(level->n - kept) * sizeof *level->count);
    for (int64_t i = 0; i < t->levels[m + 1].n; i++) {
        level->count[l->of[m + 1][i]]++;
    }
}

static void forget_begin(struct ngram_trie *t)
{
    if (ngram_trie_n_begins(t, 1) > 0) {
        t->levels[1].count[0] = 0;
    }
}

/* ---- discounts ---- */

static int64_t class_of(uint32_t count)
{
    return int_smaller(count, 3);
}

static struct kneser_ney_discounts discounts_of(const struct ngram_level *level)
{
    double n[5] = {0};
    struct kneser_ney_discounts d = {{0, 0.5, 1, 1.5}, true}, found = {{0}, false};
    for (int64_t i = 0; i < level->n; i++) {
        n[level->count[i] <= 4 ? level->count[i] : 0]++;
    }
    for (int k = 1; k <= 3; k++) {
        found.of[k] = n[k] > 0 ? k - (k + 1) * n[1] / (n[1] + 2 * n[2]) * n[k + 1] / n[k] : 0;
        if (n[k + 1] == 0 || found.of[k] <= 0 || found.of[k] >= k) {
            return d;
        }
    }
    return found;
}

/* ---- probabilities ---- */

/* The n-grams that continue context h of level m - 1, and what is left to the shorter context. */
static void set_continuations(struct kneser_ney *k, const struct links *l, int m, int64_t h)
{
    const struct ngram_level *contexts = &k->trie.levels[m - 1], *level = &k->trie.levels[m];
    const double *discount = k->discounts[m].of;
    int64_t begin = contexts->first[h], end = contexts->first[h + 1];
    double all = 0, rest = 0;
    for (int64_t i = begin; i < end; i++) {
        all += level->count[i];
        rest += discount[class_of(level->count[i])];
    }
    rest = all > 0 ? rest / all : 1;
    k->rest[m - 1][h] = (float)rest;
    for (int64_t i = begin; i < end; i++) {
        double own = level->count[i] - discount[class_of(level->count[i])];
        k->p[m][i] = (float)((all > 0 ? own / all : 0) + rest * k->p[m - 1][l->of[m][i]]);
    }
}

static struct status add_level(struct kneser_ney *k, struct links *l, int m)
{
    struct ngram_trie *t = &k->trie;
    if (m < t->order) {
        TRY(link_level(l, t, m + 1));
        count_predecessors(t, l, m);
    }
    if (m == 1) {
        forget_begin(t);
    }
    k->discounts[m] = discounts_of(&t->levels[m]);
    TRY(allocate_floats(&k->p[m], t->levels[m].n));
    TRY(allocate_floats(&k->rest[m - 1], t->levels[m - 1].n));
    for (int64_t h = 0; h < t->levels[m - 1].n; h++) {
        set_continuations(k, l, m, h);
    }
    free(l->of[m]);
    l->of[m] = NULL;
    return status_ok();
}

static struct status add_levels(struct kneser_ney *k, struct links *l)
{
    TRY(allocate_floats(&k->p[0], 1));
    k->p[0][0] = (float)(1.0 / (double)k->n_words);
    TRY(link_level(l, &k->trie, 1));
    for (int m = 1; m <= k->trie.order; m++) {
        TRY(add_level(k, l, m));
    }
    return status_ok();
}

static bool has_token(const int32_t *ids, int64_t n)
{
    int64_t i = 0;
    while (i < n && ids[i] == NGRAM_BEGIN) {
        i++;
    }
    return i < n;
}

struct status kneser_ney_init(struct kneser_ney *k, const int32_t *ids, int64_t n_ids, int order,
                              int64_t n_words)
{
    struct links l = {0};
    *k = (struct kneser_ney){.n_words = n_words};
    TRY(has_token(ids, n_ids) ? status_ok() : status_error(STATUS_DATA, "there is no token to count"));
    TRY(ngram_trie_init(&k->trie, ids, n_ids, order, n_words));
    struct status s = add_levels(k, &l);
    for (int m = 0; m <= NGRAM_MOST_ORDER; m++) {
        free(l.of[m]);
    }
    return s;
}

void kneser_ney_fini(struct kneser_ney *k)
{
    ngram_trie_fini(&k->trie);
    for (int m = 0; m <= NGRAM_MOST_ORDER; m++) {
        free(k->p[m]);
        free(k->rest[m]);
    }
    *k = (struct kneser_ney){0};
}

/* The n-gram context[0..n) of level n; -1: the text has none. */
static int64_t find_context(const struct kneser_ney *k, const int32_t *context, int64_t n)
{
    int64_t at = 0;
    for (int m = 0; m < n && at >= 0; m++) {
        at = ngram_trie_find(&k->trie, m, at, context[m]);
    }
    return at;
}

double kneser_ney_p(const struct kneser_ney *k, const int32_t *context, int64_t n, int32_t token)
{
    double rest = 1;
    for (int64_t m = int_smaller(n, k->trie.order - 1); m >= 0; m--) {
        int64_t h = find_context(k, context + n - m, m);
        int64_t found = h < 0 ? -1 : ngram_trie_find(&k->trie, (int)m, h, token);
        if (found >= 0) {
            return rest * k->p[m + 1][found];
        }
        rest *= h < 0 ? 1 : k->rest[m][h];
    }
    return rest * k->p[0][0];
}

size_t kneser_ney_most_bytes(int64_t n_ids, int order)
{
    int64_t a_token = (int64_t)LEVEL_BYTES * order + INNER_BYTES * (order - 1) + LINK_BYTES + SORTING_BYTES;
    return (size_t)(n_ids * a_token);
}

size_t kneser_ney_bytes(const struct kneser_ney *k)
{
    int64_t bytes = 0;
    for (int m = 1; m <= k->trie.order; m++) {
        bytes += k->trie.levels[m].n * (LEVEL_BYTES + (m < k->trie.order ? INNER_BYTES : 0));
    }
    return (size_t)bytes;
}
