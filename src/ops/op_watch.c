#include "ops/op_watch.h"

#include "ops/op_slots.h"

#include <string.h>

enum slot {
#define SLOT_OF(slot, ...) SLOT_##slot,
    OP_SLOTS(SLOT_OF) N_SLOTS
};

_Static_assert((int)N_SLOTS == (int)OP_WATCH_N_OPS, "the header tells how many ops there are");
static const char *const names[] = {
#define NAME_OF(slot, ...) #slot,
    OP_SLOTS(NAME_OF)};

static struct op_call call_of(enum slot slot, const struct exec_totals *cost, const tensor *shapes,
                              int n_shapes)
{
    struct op_call c = {.slot = slot, .flops = cost->flops, .bytes = cost->bytes, .n_shapes = n_shapes};
    for (int i = 0; i < n_shapes; i++) {
        c.shapes[i] = (struct op_shape){.dtype = shapes[i].dtype, .n_dims = shapes[i].n_dims};
        memcpy(c.shapes[i].dims, shapes[i].dims, (size_t)shapes[i].n_dims * sizeof shapes[i].dims[0]);
    }
    return c;
}

/* The inner table runs the call; it may be a watch too. */
static void begin(struct op_watch *w, struct exec *x, const struct op_call *c)
{
    x->served_by = x->served_why = NULL;
    x->ops = w->inner;
    if (w->before != NULL) {
        w->before(w, x, c);
    }
}

static void end(struct op_watch *w, struct exec *x, const struct op_call *c)
{
    w->after(w, x, c);
    x->ops = &w->table;
}

#define COUNT(...) (int)(sizeof((const tensor[]){__VA_ARGS__}) / sizeof(tensor))

#define WATCHED(slot, parameters, arguments, ...)                                                            \
    static void watched_##slot(struct exec *x, OP_UNPACK parameters)                                         \
    {                                                                                                        \
        struct op_watch *watch = (struct op_watch *)x->ops;                                                  \
        struct exec counted = {.device = x->device, .layer = x->layer, .layer_index = x->layer_index};       \
        ops_plan.slot(&counted, OP_UNPACK arguments);                                                        \
        struct op_call call =                                                                                \
            call_of(SLOT_##slot, &counted.totals, (const tensor[]){__VA_ARGS__}, COUNT(__VA_ARGS__));        \
        begin(watch, x, &call);                                                                              \
        watch->inner->slot(x, OP_UNPACK arguments);                                                          \
        end(watch, x, &call);                                                                                \
    }

OP_SLOTS(WATCHED)

static const struct ops watched = {.name = "watched",
#define ENTRY_OF(slot, ...) .slot = watched_##slot,
                                   OP_SLOTS(ENTRY_OF)};

void op_watch_init(struct op_watch *w, const struct ops *inner)
{
    *w = (struct op_watch){.table = watched, .inner = inner};
    w->table.name = inner->name;
}

const char *op_watch_name(int slot)
{
    return names[slot];
}

bool op_watch_is(const struct ops *ops)
{
    return ops->fill == watched.fill;
}

static void wait_after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)w;
    exec_queued(x, op_watch_name(call->slot));
    exec_synchronize(x);
}

void op_sync_init(struct op_watch *w, const struct ops *inner)
{
    op_watch_init(w, inner);
    w->after = wait_after_call;
}
