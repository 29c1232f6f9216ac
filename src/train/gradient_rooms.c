#include "train/gradient_rooms.h"

#include "core/integers.h"
#include "nn/model.h"

#include <stdlib.h>
#include <string.h>

/* Whether the last bucket has the input layer, and heads add to a parameter of it. */
static bool is_apart(const struct param_buckets *b, const char *tied)
{
    return tied != NULL && b->bounds[b->n] == MODEL_INPUT_LAYER;
}

/* All rooms but one that is apart begin at 0.  Returns the end of the largest. */
static int64_t find_rooms(struct gradient_rooms *r, const struct param_table *params,
                          const struct param_buckets *b)
{
    int64_t shared = 0, end = 0;
    for (int i = 0; i < b->n; i++) {
        int64_t from, to;
        param_buckets_range(b, i, params, &from, &to);
        bool apart = r->last_is_apart && i == b->n - 1;
        r->rooms[i].at = apart ? shared : 0;
        r->rooms[i].n = to - from;
        r->rooms[i].from = from;
        shared = int_larger(shared, to - from);
        end = int_larger(end, r->rooms[i].at + r->rooms[i].n);
    }
    return end;
}

/* Layers without a backward are in no bucket.  Nothing is written to their places, but to that of a tied
 * parameter, by heads: its layer comes after all rooms. */
static void place_frozen(struct gradient_rooms *r, const struct param_table *params, int64_t lowest,
                         const char *tied)
{
    int64_t end = r->places.n_elements;
    for (int i = 0; i < params->n && params->params[i].layer < lowest; i++) {
        int64_t from, to, layer = params->params[i].layer;
        param_table_range(params, layer, layer + 1, &from, &to);
        int64_t at = tied != NULL && layer == MODEL_INPUT_LAYER ? end : 0;
        r->places.params[i].offset = at + params->params[i].offset - from;
        r->places.n_elements = int_larger(r->places.n_elements, at + to - from);
    }
}

static void place_bucket(struct gradient_rooms *r, const struct param_table *params,
                         const struct param_buckets *b, int bucket, int64_t *n_cleared)
{
    struct gradient_room *room = &r->rooms[bucket];
    int64_t from, to;
    param_buckets_range(b, bucket, params, &from, &to);
    room->first_cleared = *n_cleared;
    for (int i = 0; i < params->n; i++) {
        struct param *p = &r->places.params[i];
        if (p->layer < b->bounds[bucket + 1] || p->layer >= b->bounds[bucket]) {
            continue;
        }
        room->first_param = room->n_params == 0 ? i : room->first_param;
        room->n_params++;
        p->offset += room->at - from;
        if (!p->by_product || p->rate == 0) {
            r->cleared[(*n_cleared)++] = (struct optim_span){.offset = p->offset, .n = param_count(p)};
        }
    }
    room->n_cleared = *n_cleared - room->first_cleared;
}

struct status gradient_rooms_init(struct gradient_rooms *r, const struct param_table *params,
                                  const struct param_buckets *buckets, const char *tied)
{
    size_t n = (size_t)params->n;
    int64_t n_cleared = 0;
    *r = (struct gradient_rooms){.n_rooms = buckets->n, .last_is_apart = is_apart(buckets, tied)};
    r->places.params = malloc(n * sizeof *r->places.params);
    r->cleared = malloc(n * sizeof *r->cleared);
    FAIL_IF(r->places.params == NULL || r->cleared == NULL, STATUS_MEMORY,
            "out of memory for the places of %d gradients", params->n);
    memcpy(r->places.params, params->params, n * sizeof *params->params);
    r->places.n = r->places.capacity = params->n;
    r->places.part = params->part;
    r->places.n_elements = find_rooms(r, params, buckets);
    place_frozen(r, params, buckets->bounds[buckets->n], tied);
    for (int i = 0; i < buckets->n; i++) {
        place_bucket(r, params, buckets, i, &n_cleared);
    }
    return status_ok();
}

void gradient_rooms_fini(struct gradient_rooms *r)
{
    param_table_fini(&r->places);
    free(r->cleared);
    *r = (struct gradient_rooms){0};
}

void gradient_rooms_carve(struct gradient_rooms *r, struct arena *a, enum dtype dtype)
{
    r->flat = arena_carve_1d(a, dtype, r->places.n_elements);
}

tensor gradient_rooms_view(const struct gradient_rooms *r, int bucket)
{
    return tensor_slice(r->flat, r->rooms[bucket].at, r->rooms[bucket].n);
}

bool gradient_rooms_cut(const struct gradient_rooms *r, int bucket, const struct update *update, tensor grad,
                        tensor *kept, tensor *passing)
{
    const struct gradient_room *room = &r->rooms[bucket];
    update_cut(update, room->from, room->from + room->n);
    int64_t begin = update->cut[update->rank], n = update->cut[update->rank + 1] - begin;
    if (n == 0) {
        return false;
    }
    *kept = tensor_slice(grad, room->from + begin - update->shard.begin, n);
    *passing = tensor_slice(gradient_rooms_view(r, bucket), begin, n);
    return true;
}

static void clear(const struct gradient_rooms *r, struct exec *x, int bucket)
{
    const struct gradient_room *room = &r->rooms[bucket];
    x->ops->clear(x, r->flat, r->cleared + room->first_cleared, room->n_cleared);
}

void gradient_rooms_begin(const struct gradient_rooms *r, struct exec *x)
{
    clear(r, x, 0);
    if (r->last_is_apart && r->n_rooms > 1) {
        clear(r, x, r->n_rooms - 1);
    }
}

void gradient_rooms_leave(const struct gradient_rooms *r, struct exec *x, int bucket)
{
    int next = bucket + 1;
    if (next < r->n_rooms && !(r->last_is_apart && next == r->n_rooms - 1)) {
        clear(r, x, next);
    }
}
