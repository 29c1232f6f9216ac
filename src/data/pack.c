#include "data/pack.h"

#include "core/array.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* Sequences that are in no row yet, in a list for each length, in their order. */
struct shelves {
    const struct pack_problem *problem;
    int most;
    int64_t *first; /* [row_length + 1] by length */
    int64_t *next;  /* [n] */
    int64_t *count; /* [row_length + 1] */
    int64_t n_left, tokens_left;
    double owed; /* rows of three that should have been made, minus those that were */
};

static void fill_shelves(struct shelves *s)
{
    const struct pack_problem *p = s->problem;
    for (int64_t l = 0; l <= p->row_length; l++) {
        s->first[l] = NONE;
    }
    for (int64_t i = p->n - 1; i >= 0; i--) {
        int64_t l = p->lengths[i];
        s->next[i] = s->first[l];
        s->first[l] = i;
        s->count[l]++;
        s->tokens_left += l;
    }
    s->n_left = p->n;
}

/* Moves the first sequence of this length into the row. */
static void take(struct shelves *s, int64_t length, struct pack_row *r)
{
    int64_t i = s->first[length];
    s->first[length] = s->next[i];
    s->count[length]--;
    s->n_left--;
    s->tokens_left -= length;
    r->sequences[r->n++] = i;
    r->length += (int32_t)length;
    r->masked += s->problem->masked[i];
}

/* Whether the row has space for the predictions of the first sequence of this length and of the first of
 * another. */
static bool fits(const struct shelves *s, const struct pack_row *r, int64_t length, int64_t other)
{
    const int32_t *masked = s->problem->masked;
    int64_t i = s->first[length], j = other > 0 ? s->first[other] : NONE;
    if (j == i && i != NONE) {
        j = s->next[i];
    }
    return i != NONE && (other == 0 || j != NONE) &&
           r->masked + masked[i] + (other > 0 ? masked[j] : 0) <= s->problem->row_masked;
}

/* Finds two sequences that fill the row, the shorter one as short as possible. */
static bool add_two(struct shelves *s, struct pack_row *r)
{
    int64_t room = s->problem->row_length - r->length;
    for (int64_t a = 1; a <= room - a; a++) {
        if (s->count[a] > 0 && fits(s, r, a, room - a)) {
            take(s, a, r);
            take(s, room - a, r);
            return true;
        }
    }
    return false;
}

/* Finds the longest that fits. */
static void add_longest(struct shelves *s, struct pack_row *r)
{
    for (int64_t l = s->problem->row_length - r->length; l > 0; l--) {
        if (s->count[l] > 0 && fits(s, r, l, 0)) {
            take(s, l, r);
            return;
        }
    }
}

/* The sequences left need some least number of rows, by their tokens or by their number.  If that means more
 * than two sequences a row, so many rows of three must be made before the short sequences have no partners
 * left. */
static bool owes_three(struct shelves *s)
{
    double by_tokens = (double)s->tokens_left / (double)s->problem->row_length;
    double by_number = (double)s->n_left / PACK_MOST;
    s->owed += (double)s->n_left / (by_tokens > by_number ? by_tokens : by_number) - 2;
    s->owed = s->owed < -3 ? -3 : s->owed > 3 ? 3 : s->owed; /* forgets the distant past */
    return s->owed >= 0.5;
}

/* Begins with a sequence of the longest length. */
static void fill_row(struct shelves *s, int64_t longest, struct pack_row *r)
{
    bool more = longest < s->problem->row_length && s->most > 1 && s->n_left > 1;
    bool three = more && s->most == PACK_MOST && owes_three(s);
    take(s, longest, r);
    if (three && add_two(s, r)) {
        s->owed--;
        return;
    }
    for (int n = r->n; more && n < s->most; n++) {
        add_longest(s, r);
    }
}

static void fill_rows(struct shelves *s, struct pack_row *rows, int64_t *n_rows)
{
    int64_t longest = s->problem->row_length;
    fill_shelves(s);
    while (s->n_left > 0) {
        while (s->count[longest] == 0) {
            longest--;
        }
        fill_row(s, longest, &rows[(*n_rows)++]);
    }
}

struct status pack_sequences(struct pack_row **rows, int64_t *n_rows, const struct pack_problem *p)
{
    size_t n = (size_t)p->n, lengths = (size_t)p->row_length + 1;
    struct shelves s = {.problem = p,
                        .most = p->most > 0 ? p->most : PACK_MOST,
                        .first = calloc(lengths, sizeof *s.first),
                        .count = calloc(lengths, sizeof *s.count),
                        .next = calloc(n, sizeof *s.next)};
    *n_rows = 0;
    *rows = calloc(n, sizeof **rows);
    bool complete = *rows != NULL && s.first != NULL && s.count != NULL && s.next != NULL;
    if (complete) {
        fill_rows(&s, *rows, n_rows);
    }
    free(s.first);
    free(s.count);
    free(s.next);
    if (!complete) {
        free(*rows);
        return status_error(STATUS_MEMORY, "out of memory for packing %lld sequences", (long long)p->n);
    }
    return status_ok();
}

/* ---- lists of lengths ---- */

struct status pack_strategies_count(struct pack_strategies *s, const struct pack_row *row,
                                    const int32_t *lengths)
{
    uint64_t key = 0;
    for (int k = 0; k < row->n; k++) {
        key |= (uint64_t)lengths[row->sequences[k]] << (20 * (PACK_MOST - 1 - k));
    }
    int64_t low = 0, high = s->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->sorted[middle].lengths < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < s->n && s->sorted[low].lengths == key) {
        s->sorted[low].n++;
        return status_ok();
    }
    FAIL_IF(!ARRAY_RESERVE(s->sorted, s->capacity, s->n + 1), STATUS_MEMORY,
            "out of memory for %lld lists of lengths", (long long)s->n + 1);
    memmove(s->sorted + low + 1, s->sorted + low, (size_t)(s->n - low) * sizeof *s->sorted);
    s->sorted[low] = (struct pack_strategy){key, 1};
    s->n++;
    return status_ok();
}

void pack_strategies_top(const struct pack_strategies *s, int64_t top[PACK_STRATEGIES_TOP])
{
    for (int k = 0; k < PACK_STRATEGIES_TOP; k++) {
        int64_t best = -1;
        for (int64_t i = 0; i < s->n; i++) {
            bool taken = false;
            for (int j = 0; j < k; j++) {
                taken |= top[j] == i;
            }
            if (!taken && (best < 0 || s->sorted[i].n > s->sorted[best].n)) {
                best = i;
            }
        }
        top[k] = best;
    }
}

void pack_strategies_fini(struct pack_strategies *s)
{
    free(s->sorted);
    *s = (struct pack_strategies){0};
}
