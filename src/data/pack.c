#include "data/pack.h"

#include <stdlib.h>

enum { NONE = -1 };

/* The rows that have room, in a list for each number of free tokens. */
struct shelves {
    const struct pack_problem *problem;
    struct pack_row *rows;
    int64_t n_rows;
    int64_t *first; /* [row_length + 1] by free tokens */
    int64_t *next;  /* [n] of each row */
};

/* The sequences by descending length, in a stable order: a counting sort. */
static void sort_by_length(int64_t *order, int64_t *ends, const struct pack_problem *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        ends[p->row_length - p->lengths[i]]++;
    }
    for (int64_t k = 0, sum = 0; k <= p->row_length; k++) {
        int64_t count = ends[k];
        ends[k] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < p->n; i++) {
        order[ends[p->row_length - p->lengths[i]]++] = i;
    }
}

/* Takes the row in which the sequence fits best from its list; NONE: there is no such row. */
static int64_t take_row(struct shelves *s, int64_t sequence)
{
    const struct pack_problem *p = s->problem;
    for (int64_t room = p->lengths[sequence]; room <= p->row_length; room++) {
        int64_t row = s->first[room];
        if (row != NONE && s->rows[row].masked + p->masked[sequence] <= p->row_masked) {
            s->first[room] = s->next[row];
            return row;
        }
    }
    return NONE;
}

static void put_sequence(struct shelves *s, int64_t sequence)
{
    const struct pack_problem *p = s->problem;
    int64_t row = take_row(s, sequence);
    if (row == NONE) {
        row = s->n_rows++;
    }
    struct pack_row *r = &s->rows[row];
    r->sequences[r->n++] = sequence;
    r->length += p->lengths[sequence];
    r->masked += p->masked[sequence];
    int64_t room = p->row_length - r->length;
    if (r->n < (p->most > 0 ? p->most : PACK_MOST) && room > 0) {
        s->next[row] = s->first[room];
        s->first[room] = row;
    }
}

struct status pack_sequences(struct pack_row **rows, int64_t *n_rows, const struct pack_problem *p)
{
    size_t n = (size_t)p->n, shelves = (size_t)p->row_length + 1;
    struct shelves s = {.problem = p,
                        .rows = calloc(n, sizeof *s.rows),
                        .first = calloc(shelves, sizeof *s.first),
                        .next = calloc(n, sizeof *s.next)};
    int64_t *order = calloc(n, sizeof *order), *ends = calloc(shelves, sizeof *ends);
    bool complete = s.rows != NULL && s.first != NULL && s.next != NULL && order != NULL && ends != NULL;
    if (complete) {
        for (size_t k = 0; k < shelves; k++) {
            s.first[k] = NONE;
        }
        sort_by_length(order, ends, p);
        for (size_t i = 0; i < n; i++) {
            put_sequence(&s, order[i]);
        }
    }
    free(order);
    free(ends);
    free(s.first);
    free(s.next);
    if (!complete) {
        free(s.rows);
        return status_error(STATUS_MEMORY, "out of memory for packing %lld sequences", (long long)p->n);
    }
    *rows = s.rows;
    *n_rows = s.n_rows;
    return status_ok();
}
