#include "io/stored_runs.h"

#include <stdlib.h>

/* Room for one more; NULL without memory. */
static struct stored_piece *next(struct stored_runs *r)
{
    if (r->list != NULL && r->n < r->capacity) {
        return &r->list[r->n];
    }
    int64_t capacity = r->capacity == 0 ? 4 : 2 * r->capacity;
    struct stored_piece *list = realloc(r->list, (size_t)capacity * sizeof *list);
    r->failed = r->failed || list == NULL;
    if (list == NULL) {
        return NULL;
    }
    r->list = list;
    r->capacity = capacity;
    return &list[r->n];
}

void stored_runs_add(struct stored_runs *r, const unsigned char *data, int64_t n)
{
    struct stored_piece *last = r->n > 0 ? &r->list[r->n - 1] : NULL;
    if (last != NULL && last->data + (size_t)last->n * r->item_bytes == data) {
        last->n += n;
        return;
    }
    struct stored_piece *added = n > 0 ? next(r) : NULL;
    if (added != NULL) {
        *added = (struct stored_piece){data, n};
        r->n++;
    }
}

void stored_runs_add_tensor(struct stored_runs *r, const struct stored_tensor *t, int64_t first, int64_t n)
{
    CHECK(!t->has_crc && stored_tensor_is_dense(t), "%s is no run of elements", t->name);
    if (t->pieces == NULL) {
        stored_runs_add(r, t->data + (size_t)first * r->item_bytes, n);
        return;
    }
    for (const struct stored_piece *piece = t->pieces; n > 0; piece++) {
        int64_t here = piece->n - first < n ? piece->n - first : n;
        if (here > 0) {
            stored_runs_add(r, piece->data + (size_t)first * r->item_bytes, here);
            n -= here;
        }
        first = here > 0 ? 0 : first - piece->n;
    }
}

struct status stored_runs_take(struct stored_runs *r, struct stored_tensor *t, void **list)
{
    *list = NULL;
    if (!stored_tensor_make_dense(t, r->item_bytes) || r->failed) {
        free(r->list);
        *r = (struct stored_runs){0};
        return status_error(STATUS_MEMORY, "out of memory for the places of the tensor %s", t->name);
    }
    t->pieces = r->n > 1 ? r->list : NULL;
    t->data = t->storage = r->n > 0 ? r->list[0].data : t->data;
    t->storage_bytes = r->n > 0 ? (size_t)r->list[0].n * r->item_bytes : 0;
    *list = r->list;
    *r = (struct stored_runs){0};
    return status_ok();
}
