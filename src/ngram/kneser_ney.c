#include "ngram/kneser_ney.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;

/* The text, level after level: those n-grams of a level that end at each token make the next. */
struct counting {
    const int32_t *ids;
    int64_t n;
    uint32_t *by_token; /* [n] positions in the order of their tokens */
    uint32_t *sorted;   /* [n] positions in the order of the n-grams that end there */
    uint32_t *at;       /* [n] the n-gram of the level below that ends here, or NONE */
    uint32_t *next;     /* [n] `at` of this level */
    uint32_t *ends;     /* [larger of n and n_words + 1, and one] where a key's positions end in `sorted` */
};
enum { COUNTING_ARRAYS = 5 };

/* Allocates the n-grams of a level, and one more, where the continuations of the last end. */
static struct status allocate_level(struct ngram_level *level, int64_t n)
{
    level->grams = calloc((size_t)n + 1, sizeof *level->grams);
    return level->grams != NULL ? status_ok()
                                : status_error(STATUS_MEMORY, "out of memory for %lld n-grams", (long long)n);
}

/* The key that positions are sorted by: the n-gram of m - 1 tokens before, NONE if there is none; for level 0
 * the token. */
static uint32_t key_of(const struct counting *c, uint32_t i, int m)
{
    if (m <= 1) {
        return m == 0 ? (uint32_t)(c->ids[i] + 1) : 0;
    }
    return i == 0 || c->ids[i] == NGRAM_BEGIN ? NONE : c->at[i - 1];
}

/* Sorts positions by their keys below n_keys, and leaves out those without one; equal ones keep their
 * order. */
static void sort_by(struct counting *c, uint32_t *to, const uint32_t *from, int m, int64_t n_keys)
{
    memset(c->ends, 0, ((size_t)n_keys + 1) * sizeof *c->ends);
    for (int64_t j = 0; j < c->n; j++) {
        uint32_t key = key_of(c, (uint32_t)j, m);
        c->ends[key == NONE ? 0 : key + 1] += key != NONE;
    }
    for (int64_t key = 0; key < n_keys; key++) {
        c->ends[key + 1] += c->ends[key];
    }
    for (int64_t j = 0; j < c->n; j++) {
        uint32_t i = from == NULL ? (uint32_t)j : from[j], key = key_of(c, i, m);
        if (key != NONE) {
            to[c->ends[key]++] = i;
        }
    }
}

static struct status begin(struct kneser_ney *k, struct counting *c, int64_t n_words)
{
    bool has_token = false;
    FAIL_IF(c->n >= UINT32_MAX, STATUS_DATA, "%lld tokens are more than n-grams are counted of (%lld)",
            (long long)c->n, (long long)UINT32_MAX - 1);
    for (int64_t i = 0; i < c->n; i++) {
        FAIL_IF(c->ids[i] != NGRAM_BEGIN && (c->ids[i] < 0 || c->ids[i] >= n_words), STATUS_DATA,
                "token %lld is %d, but the vocabulary has %lld pieces", (long long)i, c->ids[i],
                (long long)n_words);
        has_token = has_token || c->ids[i] != NGRAM_BEGIN;
    }
    FAIL_IF(!has_token, STATUS_DATA, "there is no token to count");
    int64_t n = (COUNTING_ARRAYS - 1) * c->n + int_larger(c->n, n_words + 1) + 1;
    c->by_token = calloc((size_t)n, sizeof *c->by_token);
    FAIL_IF(c->by_token == NULL, STATUS_MEMORY, "out of memory for %lld tokens", (long long)c->n);
    c->sorted = c->by_token + c->n;
    c->at = c->sorted + c->n;
    c->next = c->at + c->n;
    c->ends = c->next + c->n;
    sort_by(c, c->by_token, NULL, 0, n_words + 1);
    k->levels[0].n = 1;
    TRY(allocate_level(&k->levels[0], 1));
    k->levels[0].grams[0].p = (float)(1.0 / (double)n_words);
    return status_ok();
}

/* Counts the m-grams of the text, in the order of their contexts, then of their tokens. */
static struct status count_level(struct kneser_ney *k, struct counting *c, int m)
{
    struct ngram_level *contexts = &k->levels[m - 1], *level = &k->levels[m];
    sort_by(c, c->sorted, c->by_token, m, contexts->n);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): kneser_ney_init frees what counting has */
    TRY(allocate_level(level, contexts->n > 0 ? c->ends[contexts->n - 1] : 0));
    memset(c->next, 0xff, (size_t)c->n * sizeof *c->next); /* NONE */
    for (int64_t h = 0, j = 0; h < contexts->n; h++) {
        uint32_t first = contexts->grams[h].first = (uint32_t)level->n;
        for (; j < c->ends[h]; j++) {
            uint32_t i = c->sorted[j];
            if (level->n == first || level->grams[level->n - 1].token != c->ids[i]) {
                level->grams[level->n++] =
                    (struct ngram){.token = c->ids[i], .suffix = m == 1 ? 0 : c->at[i]};
            }
            level->grams[level->n - 1].count++;
            c->next[i] = (uint32_t)(level->n - 1);
        }
    }
    contexts->grams[contexts->n].first = (uint32_t)level->n;
    uint32_t *at = c->at;
    c->at = c->next;
    c->next = at;
    return status_ok();
}

/* The number of m-grams that begin with NGRAM_BEGIN; they are the first ones. */
static int64_t n_begins(const struct kneser_ney *k, int m)
{
    int64_t n = k->levels[1].grams[0].token == NGRAM_BEGIN;
    for (int level = 1; level < m; level++) {
        n = k->levels[level].grams[n].first;
    }
    return n;
}

/* Counts of level m become the number of different tokens before each n-gram; those that begin a document
 * keep theirs. */
static void count_predecessors(struct kneser_ney *k, int m)
{
    const struct ngram_level *longer = &k->levels[m + 1];
    struct ngram *grams = k->levels[m].grams;
    for (int64_t i = n_begins(k, m); i < k->levels[m].n; i++) {
        grams[i].count = 0;
    }
    for (int64_t i = 0; i < longer->n; i++) {
        grams[longer->grams[i].suffix].count++;
    }
}

static int64_t class_of(uint32_t count)
{
    return int_smaller(count, 3);
}

static void set_discounts(struct ngram_level *level)
{
    static const double assumed[4] = {0, 0.5, 1, 1.5};
    double n[5] = {0}, *d = level->discounts;
    for (int64_t i = 0; i < level->n; i++) {
        n[level->grams[i].count <= 4 ? level->grams[i].count : 0]++;
    }
    for (int k = 1; k <= 3; k++) {
        d[k] = n[k] > 0 ? k - (k + 1) * n[1] / (n[1] + 2 * n[2]) * n[k + 1] / n[k] : 0;
        level->assumed |= n[k + 1] == 0 || d[k] <= 0 || d[k] >= k;
    }
    if (level->assumed) {
        memcpy(d, assumed, sizeof assumed);
    }
}

/* Sets p of the n-grams that continue context h of level m - 1, and the part left to the shorter context. */
static void set_continuations(struct kneser_ney *k, int m, int64_t h)
{
    const struct ngram_level *contexts = &k->levels[m - 1], *level = &k->levels[m];
    int64_t first = contexts->grams[h].first, last = contexts->grams[h + 1].first;
    double all = 0, rest = 0;
    for (int64_t i = first; i < last; i++) {
        all += level->grams[i].count;
        rest += level->discounts[class_of(level->grams[i].count)];
    }
    rest = all > 0 ? rest / all : 1;
    contexts->grams[h].rest = (float)rest;
    for (int64_t i = first; i < last; i++) {
        struct ngram *g = &level->grams[i];
        double own = g->count - level->discounts[class_of(g->count)];
        g->p = (float)((all > 0 ? own / all : 0) + rest * contexts->grams[g->suffix].p);
    }
}

/* Level m, whose own counts are there: it takes the next one to know what its n-grams follow. */
static struct status finish_level(struct kneser_ney *k, struct counting *c, int m)
{
    if (m < k->order) {
        TRY(count_level(k, c, m + 1));
        count_predecessors(k, m);
    }
    if (m == 1 && n_begins(k, 1) > 0) {
        k->levels[1].grams[0].count = 0; /* NGRAM_BEGIN alone is never predicted */
    }
    set_discounts(&k->levels[m]);
    for (int64_t h = 0; h < k->levels[m - 1].n; h++) {
        set_continuations(k, m, h);
    }
    return status_ok();
}

struct status kneser_ney_init(struct kneser_ney *k, const int32_t *ids, int64_t n_ids, int order,
                              int64_t n_words)
{
    struct counting c = {.ids = ids, .n = n_ids};
    CHECK(order >= 1 && order <= NGRAM_MOST_ORDER, "order %d", order);
    *k = (struct kneser_ney){.order = order};
    struct status s = begin(k, &c, n_words);
    s = failed(s) ? s : count_level(k, &c, 1);
    for (int m = 1; m <= order && !failed(s); m++) {
        s = finish_level(k, &c, m);
    }
    free(c.by_token);
    return s;
}

void kneser_ney_fini(struct kneser_ney *k)
{
    for (int m = 0; m <= NGRAM_MOST_ORDER; m++) {
        free(k->levels[m].grams);
    }
    *k = (struct kneser_ney){0};
}

/* The n-gram of level m + 1 that continues n-gram i of level m with this token; -1: there is none. */
static int64_t find(const struct kneser_ney *k, int m, int64_t i, int32_t token)
{
    const struct ngram *grams = k->levels[m + 1].grams;
    int64_t low = k->levels[m].grams[i].first, high = k->levels[m].grams[i + 1].first, last = high;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        low = grams[middle].token < token ? middle + 1 : low;
        high = grams[middle].token < token ? high : middle;
    }
    return low < last && grams[low].token == token ? low : -1;
}

double kneser_ney_p(const struct kneser_ney *k, const int32_t *context, int64_t n, int32_t token)
{
    double rest = 1;
    for (int64_t m = int_smaller(n, k->order - 1); m >= 0; m--) {
        int64_t h = 0; /* context[n - m..n) of level m; -1: the text has none */
        for (int i = 0; i < m && h >= 0; i++) {
            h = find(k, i, h, context[n - m + i]);
        }
        int64_t found = h < 0 ? -1 : find(k, (int)m, h, token);
        if (found >= 0) {
            return rest * k->levels[m + 1].grams[found].p;
        }
        rest *= h < 0 ? 1 : k->levels[m].grams[h].rest;
    }
    return rest * k->levels[0].grams[0].p;
}

size_t kneser_ney_most_bytes(int64_t n_ids, int order)
{
    return (size_t)n_ids * ((size_t)order * sizeof(struct ngram) + COUNTING_ARRAYS * sizeof(uint32_t));
}

size_t kneser_ney_bytes(const struct kneser_ney *k)
{
    size_t bytes = 0;
    for (int m = 1; m <= k->order; m++) {
        bytes += (size_t)k->levels[m].n * sizeof(struct ngram);
    }
    return bytes;
}
