#include "ngram/kneser_ney.h"

#include "core/integers.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an n-gram: its token, count and probability; below the last level also where it continues, and
 * what it leaves to shorter contexts; while it is made, the n-gram without its first token, of two levels.
 * Bytes of a token while n-grams are made: struct counting. */
enum { LEVEL_BYTES = 12, INNER_BYTES = 8, SUFFIX_BYTES = 8, COUNTING_BYTES = 20 };

static const uint32_t NONE = UINT32_MAX;

/* The text, level after level: those n-grams of a level that end at each token make the next. */
struct counting {
    const int32_t *ids;
    int64_t n;
    uint32_t *by_token;                     /* [n] positions in the order of their tokens */
    uint32_t *sorted;                       /* [n] positions in the order of the n-grams that end there */
    uint32_t *ends;                         /* [n] where a key's positions end in `sorted` */
    uint32_t *at;                           /* [n] the n-gram of the level below that ends here, or NONE */
    uint32_t *next;                         /* [n] `at` of this level */
    uint32_t *suffix[NGRAM_MOST_ORDER + 1]; /* suffix of each n-gram of a level: without its first token */
};

/* An array of n and one elements of 4 bytes, all 0. */
static struct status allocate(void *array, int64_t n)
{
    void *bytes = calloc((size_t)n + 1, sizeof(uint32_t));
    memcpy(array, &bytes, sizeof bytes);
    return bytes != NULL ? status_ok()
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
    TRY(allocate(&c->by_token, c->n));
    TRY(allocate(&c->sorted, c->n));
    TRY(allocate(&c->ends, int_larger(c->n, n_words) + 1));
    TRY(allocate(&c->at, c->n));
    TRY(allocate(&c->next, c->n));
    sort_by(c, c->by_token, NULL, 0, n_words + 1);
    k->levels[0].n = 1;
    TRY(allocate(&k->levels[0].p, 1));
    k->levels[0].p[0] = (float)(1.0 / (double)n_words);
    return status_ok();
}

static void end(struct counting *c)
{
    free(c->by_token);
    free(c->sorted);
    free(c->ends);
    free(c->at);
    free(c->next);
    for (int m = 0; m <= NGRAM_MOST_ORDER; m++) {
        free(c->suffix[m]);
    }
}

/* Counts the m-grams of the text, in the order of their contexts, then of their tokens. */
static struct status count_level(struct kneser_ney *k, struct counting *c, int m)
{
    struct ngram_level *contexts = &k->levels[m - 1], *level = &k->levels[m];
    sort_by(c, c->sorted, c->by_token, m, contexts->n);
    int64_t n = c->ends[contexts->n - 1];
    TRY(allocate(&contexts->first, contexts->n));
    TRY(allocate(&level->token, n));
    TRY(allocate(&level->count, n));
    TRY(allocate(&c->suffix[m], n));
    memset(c->next, 0xff, (size_t)c->n * sizeof *c->next); /* NONE */
    for (int64_t h = 0, j = 0; h < contexts->n; h++) {
        contexts->first[h] = (uint32_t)level->n;
        for (; j < c->ends[h]; j++) {
            uint32_t i = c->sorted[j];
            if (level->n == contexts->first[h] || level->token[level->n - 1] != c->ids[i]) {
                level->token[level->n] = c->ids[i];
                c->suffix[m][level->n++] = m == 1 ? 0 : c->at[i];
            }
            level->count[level->n - 1]++;
            c->next[i] = (uint32_t)(level->n - 1);
        }
    }
    contexts->first[contexts->n] = (uint32_t)level->n;
    uint32_t *at = c->at;
    c->at = c->next;
    c->next = at;
    return status_ok();
}

/* The number of m-grams that begin with NGRAM_BEGIN; they are the first ones. */
static int64_t n_begins(const struct kneser_ney *k, int m)
{
    int64_t n = k->levels[1].token[0] == NGRAM_BEGIN;
    for (int level = 1; level < m; level++) {
        n = k->levels[level].first[n];
    }
    return n;
}

/* Counts of level m become the number of different tokens before each n-gram; those that begin a document
 * keep theirs. */
static void count_predecessors(struct kneser_ney *k, const struct counting *c, int m)
{
    struct ngram_level *level = &k->levels[m];
    int64_t kept = n_begins(k, m);
    memset(level->count + kept, 0, (size_t)(level->n - kept) * sizeof *level->count);
    for (int64_t i = 0; i < k->levels[m + 1].n; i++) {
        level->count[c->suffix[m + 1][i]]++;
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
        n[level->count[i] <= 4 ? level->count[i] : 0]++;
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
static void set_continuations(struct kneser_ney *k, const uint32_t *suffix, int m, int64_t h)
{
    const struct ngram_level *contexts = &k->levels[m - 1], *level = &k->levels[m];
    int64_t first = contexts->first[h], last = contexts->first[h + 1];
    double all = 0, rest = 0;
    for (int64_t i = first; i < last; i++) {
        all += level->count[i];
        rest += level->discounts[class_of(level->count[i])];
    }
    rest = all > 0 ? rest / all : 1;
    contexts->rest[h] = (float)rest;
    for (int64_t i = first; i < last; i++) {
        double own = level->count[i] - level->discounts[class_of(level->count[i])];
        level->p[i] = (float)((all > 0 ? own / all : 0) + rest * contexts->p[suffix[i]]);
    }
}

/* Level m, whose own counts are there: it takes the next one to know what its n-grams follow. */
static struct status finish_level(struct kneser_ney *k, struct counting *c, int m)
{
    if (m < k->order) {
        TRY(count_level(k, c, m + 1));
        count_predecessors(k, c, m);
    }
    if (m == 1 && n_begins(k, 1) > 0) {
        k->levels[1].count[0] = 0; /* NGRAM_BEGIN alone is never predicted */
    }
    set_discounts(&k->levels[m]);
    TRY(allocate(&k->levels[m].p, k->levels[m].n));
    TRY(allocate(&k->levels[m - 1].rest, k->levels[m - 1].n));
    for (int64_t h = 0; h < k->levels[m - 1].n; h++) {
        set_continuations(k, c->suffix[m], m, h);
    }
    free(c->suffix[m]);
    c->suffix[m] = NULL;
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
    end(&c);
    return s;
}

void kneser_ney_fini(struct kneser_ney *k)
{
    for (int m = 0; m <= NGRAM_MOST_ORDER; m++) {
        struct ngram_level *l = &k->levels[m];
        void *const arrays[] = {l->token, l->first, l->count, l->p, l->rest};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
            free(arrays[i]);
        }
    }
    *k = (struct kneser_ney){0};
}

/* The n-gram of level m + 1 that continues n-gram i of level m with this token; -1: there is none. */
static int64_t find(const struct kneser_ney *k, int m, int64_t i, int32_t token)
{
    const int32_t *tokens = k->levels[m + 1].token;
    int64_t low = k->levels[m].first[i], high = k->levels[m].first[i + 1], last = high;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        low = tokens[middle] < token ? middle + 1 : low;
        high = tokens[middle] < token ? high : middle;
    }
    return low < last && tokens[low] == token ? low : -1;
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
            return rest * k->levels[m + 1].p[found];
        }
        rest *= h < 0 ? 1 : k->levels[m].rest[h];
    }
    return rest * k->levels[0].p[0];
}

size_t kneser_ney_most_bytes(int64_t n_ids, int order)
{
    int64_t a_token =
        (int64_t)LEVEL_BYTES * order + INNER_BYTES * (order - 1) + SUFFIX_BYTES + COUNTING_BYTES;
    return (size_t)(n_ids * a_token);
}

size_t kneser_ney_bytes(const struct kneser_ney *k)
{
    int64_t bytes = 0;
    for (int m = 1; m <= k->order; m++) {
        bytes += k->levels[m].n * (LEVEL_BYTES + (m < k->order ? INNER_BYTES : 0));
    }
    return (size_t)bytes;
}
