#include "ops/op_timer.h"

#include "core/clock.h"
#include "ops/op_slots.h"

#include <stdlib.h>
#include <string.h>

enum slot {
#define SLOT_OF(slot, ...) SLOT_##slot,
    OP_SLOTS(SLOT_OF) N_SLOTS
};

_Static_assert((int)N_SLOTS == (int)OP_TIMER_N_OPS, "the header tells how many ops there are");
static const char *const names[] = {
#define NAME_OF(slot, ...) #slot,
    OP_SLOTS(NAME_OF)};

static struct op_timer *timer_of(const struct exec *x)
{
    return (struct op_timer *)x->ops;
}

static void note(struct op_timer *t, enum slot slot, const struct exec *x, int64_t start_ns,
                 const struct exec_totals *cost, const tensor *shapes, int n_shapes)
{
    struct op_total *total = &t->totals[slot];
    struct op_event e = {
        .op = names[slot],
        .layer = x->layer,
        .layer_index = x->layer_index,
        .start_ns = start_ns,
        .end_ns = clock_ns(),
        .flops = cost->flops,
        .bytes = cost->bytes,
        .n_shapes = n_shapes,
    };
    for (int i = 0; i < n_shapes; i++) {
        e.shapes[i] = (struct op_shape){.dtype = shapes[i].dtype, .n_dims = shapes[i].n_dims};
        memcpy(e.shapes[i].dims, shapes[i].dims, sizeof shapes[i].dims);
    }
    total->n_calls++;
    total->ns += e.end_ns - start_ns;
    total->flops += e.flops;
    total->bytes += e.bytes;
    if (t->n_events < t->capacity) {
        t->events[t->n_events++] = e;
    } else {
        t->n_left_out++;
    }
}

#define COUNT(...) (int)(sizeof((const tensor[]){__VA_ARGS__}) / sizeof(tensor))

#define TIMED(slot, parameters, arguments, ...)                                                              \
    static void timed_##slot(struct exec *x, OP_UNPACK parameters)                                           \
    {                                                                                                        \
        struct op_timer *t = timer_of(x);                                                                    \
        struct exec counted = {.layer = x->layer, .layer_index = x->layer_index};                            \
        ops_plan.slot(&counted, OP_UNPACK arguments);                                                        \
        int64_t start_ns = clock_ns();                                                                       \
        t->inner->slot(x, OP_UNPACK arguments);                                                              \
        note(t, SLOT_##slot, x, start_ns, &counted.totals, (const tensor[]){__VA_ARGS__},                    \
             COUNT(__VA_ARGS__));                                                                            \
    }

OP_SLOTS(TIMED)

static const struct ops timed = {.name = "timed",
#define ENTRY_OF(slot, ...) .slot = timed_##slot,
                                 OP_SLOTS(ENTRY_OF)};

struct status op_timer_init(struct op_timer *t, int64_t capacity)
{
    *t = (struct op_timer){.table = timed, .capacity = capacity};
    t->events = calloc((size_t)capacity + 1, sizeof *t->events);
    if (t->events == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the times of %lld calls", (long long)capacity);
    }
    op_timer_clear(t);
    return status_ok();
}

void op_timer_fini(struct op_timer *t)
{
    free(t->events);
    t->events = NULL;
}

void op_timer_attach(struct op_timer *t, struct exec *x)
{
    CHECK(x->ops != &t->table, "ops are timed already");
    t->inner = x->ops;
    x->ops = &t->table;
}

void op_timer_detach(struct op_timer *t, struct exec *x)
{
    CHECK(x->ops == &t->table, "ops are not timed");
    x->ops = t->inner;
}

void op_timer_clear(struct op_timer *t)
{
    t->n_events = t->n_left_out = 0;
    for (int i = 0; i < OP_TIMER_N_OPS; i++) {
        t->totals[i] = (struct op_total){.op = names[i]};
    }
}

bool op_timer_knows(const char *op)
{
    for (int i = 0; i < OP_TIMER_N_OPS; i++) {
        if (strcmp(names[i], op) == 0) {
            return true;
        }
    }
    return false;
}
