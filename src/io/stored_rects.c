#include "io/stored_rects.h"

#include "core/array.h"

#include <stdlib.h>

static void add(struct stored_rects *r, const struct stored_rect *rect)
{
    r->failed = r->failed || !ARRAY_RESERVE(r->list, r->capacity, r->n + 1);
    if (!r->failed) {
        r->list[r->n++] = *rect;
    }
}

void stored_rects_add(struct stored_rects *r, const int64_t at[2], const struct stored_tensor *t,
                      const int64_t from[2], const int64_t n[2])
{
    const struct stored_rect wanted = {.at = {from[0], from[1]}, .n = {n[0], n[1]}};
    for (int64_t i = 0; i < stored_tensor_rects(t); i++) {
        struct stored_rect rect = stored_tensor_rect(t, i);
        if (stored_rect_cut(&rect, &wanted, dtype_bytes(t->dtype))) {
            rect.at[0] += at[0] - from[0];
            rect.at[1] += at[1] - from[1];
            add(r, &rect);
        }
    }
}

void stored_rects_add_run(struct stored_rects *r, const struct stored_part *run, const unsigned char *data,
                          size_t item_bytes)
{
    struct stored_rect rects[3];
    int n = stored_rect_split(rects, run->begin, run->end, run->n[1]);
    for (int i = 0; i < n; i++) {
        struct stored_rect *rect = &rects[i];
        rect->data = data + (size_t)(rect->at[0] * run->n[1] + rect->at[1] - run->begin) * item_bytes;
        rect->steps[0] = run->n[1];
        rect->steps[1] = 1;
        rect->at[0] += run->at[0];
        rect->at[1] += run->at[1];
        add(r, rect);
    }
}

struct status stored_rects_take(struct stored_rects *r, struct stored_tensor *t, void **list)
{
    *list = NULL;
    if (!stored_tensor_make_dense(t, dtype_bytes(t->dtype)) || r->failed) {
        free(r->list);
        *r = (struct stored_rects){0};
        return status_error(STATUS_MEMORY, "out of memory for the places of the tensor %s", t->name);
    }
    t->rects = r->list;
    t->n_rects = r->n;
    t->turned = false;
    t->data = r->n > 0 ? r->list[0].data : t->data;
    *list = r->list;
    *r = (struct stored_rects){0};
    return status_ok();
}
