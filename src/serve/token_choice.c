#include "serve/token_choice.h"

#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

struct status token_choice_init(struct token_choice *c, int64_t n_tokens)
{
    *c = (struct token_choice){.changes = calloc((size_t)n_tokens + 1, sizeof *c->changes),
                               .n_tokens = n_tokens};
    return c->changes != NULL ? status_ok()
                              : status_error(STATUS_MEMORY, "out of memory for a choice of %lld tokens",
                                             (long long)n_tokens);
}

void token_choice_fini(struct token_choice *c)
{
    free(c->changes);
    *c = (struct token_choice){0};
}

void token_choice_begin(struct token_choice *c, struct choice_parts parts)
{
    c->parts = parts;
    c->n_rows = c->n_changes = 0;
    ((int32_t *)parts.starts.data)[0] = 0;
}

static float *change_at(const struct token_choice *c, int64_t i)
{
    return (float *)c->parts.changes.data + i * CHANGE_N_COLUMNS;
}

/* The change of a token in this row, which may be new; NULL: it is no token, or the array of changes is
 * full. */
static float *change_of(struct token_choice *c, int32_t id, bool *has_room)
{
    if (id < 0 || id >= c->n_tokens) {
        return NULL;
    }
    if (c->changes[id] == 0) {
        if (c->n_changes == c->parts.changes.dims[0]) {
            *has_room = false;
            return NULL;
        }
        c->changes[id] = (int32_t)++c->n_changes;
        memset(change_at(c, c->n_changes - 1), 0, CHANGE_N_COLUMNS * sizeof(float));
        change_at(c, c->n_changes - 1)[CHANGE_ID] = (float)id;
    }
    return change_at(c, c->changes[id] - 1);
}

/* Adds the changes of a row.  False: they do not fit. */
static bool add_changes(struct token_choice *c, const struct token_choice_options *o, struct token_past past)
{
    bool has_room = true, repeats = o->repetition_penalty != 1,
         counts = o->presence_penalty != 0 || o->frequency_penalty != 0;
    for (int64_t i = 0; i < o->n_biases && has_room; i++) {
        float *change = change_of(c, o->biases[i].id, &has_room);
        if (change != NULL) {
            change[CHANGE_ADD] = o->biases[i].add;
        }
    }
    for (size_t i = repeats ? 0 : counts ? past.n_read : past.n; i < past.n && has_room; i++) {
        float *change = change_of(c, past.ids[i], &has_room);
        if (change != NULL) {
            change[CHANGE_WAS] = 1;
            change[CHANGE_N_NEW] += i >= past.n_read;
        }
    }
    return has_room;
}

static void put_options(double *to, const struct token_question *q)
{
    const struct token_choice_options *o = q->options;
    to[CHOICE_LABEL] = q->label;
    to[CHOICE_N_RATED] = q->n_rated;
    to[CHOICE_RANDOM] = q->random;
    to[CHOICE_TEMPERATURE] = o->temperature;
    to[CHOICE_TOP_K] = (double)o->top_k;
    to[CHOICE_TOP_P] = o->top_p;
    to[CHOICE_MIN_P] = o->min_p;
    to[CHOICE_REPETITION] = o->repetition_penalty;
    to[CHOICE_FREQUENCY] = o->frequency_penalty;
    to[CHOICE_PRESENCE] = o->presence_penalty;
}

bool token_choice_add(struct token_choice *c, const struct token_question *q)
{
    int64_t first = c->n_changes;
    bool has_room = q->label >= 0 || add_changes(c, q->options, q->past);
    for (int64_t i = first; i < c->n_changes; i++) { /* the next row has its own */
        c->changes[(int32_t)change_at(c, i)[CHANGE_ID]] = 0;
    }
    if (!has_room) {
        c->n_changes = first;
        return false;
    }
    put_options((double *)c->parts.options.data + c->n_rows * CHOICE_N_OPTIONS, q);
    ((int32_t *)c->parts.starts.data)[++c->n_rows] = (int32_t)c->n_changes;
    return true;
}
