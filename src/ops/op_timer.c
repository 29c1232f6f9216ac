#include "ops/op_timer.h"

#include "core/clock.h"

#include <stdlib.h>
#include <string.h>

/* Calls between two readings of the marks: about ten steps of a large model. */
enum { MAX_PENDING = 1 << 14 };

static void add_to_total(struct op_total *total, const struct op_event *e)
{
    total->n_calls++;
    total->ns += e->end_ns - e->start_ns;
    total->flops += e->call.flops;
    total->bytes += e->call.bytes;
}

static void note(struct op_timer *t, const struct op_event *e)
{
    if (e->call.slot != OP_TIMER_COPY) {
        add_to_total(&t->totals[e->call.slot], e);
    }
    if (t->n_events < t->capacity) {
        t->events[t->n_events++] = *e;
    } else {
        t->n_left_out++;
    }
}

/* Marks: 0 is the origin, 1 + 2 i and 2 + 2 i are before and after pending call i. */
static int64_t mark_of(int64_t i)
{
    return 1 + 2 * i;
}

/* Sets the origin while the device is idle: the mark is reached between the two readings of the host's
 * clock. */
static void set_origin(struct op_timer *t)
{
    struct exec *x = t->x;
    exec_synchronize(x);
    int64_t before = clock_ns();
    x->device->clock->mark(x->context, 0);
    exec_synchronize(x);
    t->origin_ns = before + (clock_ns() - before) / 2;
    t->last_ns = before;
}

/* A device's clock is coarser than the host's: consecutive calls must not overlap because of its rounding. */
static bool read_marks(struct op_timer *t, struct op_event *e, int64_t i)
{
    const struct device_clock *clock = t->x->device->clock;
    int64_t since, took, m = mark_of(i);
    if (failed(clock->elapsed(t->x->context, 0, m, &since)) ||
        failed(clock->elapsed(t->x->context, m, m + 1, &took))) {
        return false;
    }
    e->start_ns = t->origin_ns + since > t->last_ns ? t->origin_ns + since : t->last_ns;
    e->end_ns = e->start_ns + took;
    t->last_ns = e->end_ns;
    return true;
}

static void settle(struct op_timer *t)
{
    exec_synchronize(t->x);
    for (int64_t i = 0; i < t->n_pending; i++) {
        if (!failed(t->x->status) && read_marks(t, &t->pending[i], i)) {
            note(t, &t->pending[i]);
        } else {
            t->n_left_out++;
        }
    }
    t->n_pending = 0;
}

static void begin(struct op_timer *t)
{
    const struct exec *x = t->x;
    if (t->n_pending == MAX_PENDING) {
        settle(t);
        set_origin(t);
    }
    struct op_event *e = &t->pending[t->n_pending];
    e->called_ns = clock_ns();
    if (x->device->clock != NULL) {
        x->device->clock->mark(x->context, mark_of(t->n_pending));
    }
}

static void end(struct op_timer *t, const struct op_call *call)
{
    const struct exec *x = t->x;
    struct op_event *e = &t->pending[t->n_pending];
    int64_t now = clock_ns();
    *e = (struct op_event){*call, x->layer, x->layer_index, e->called_ns, now, e->called_ns, now};
    if (x->device->clock != NULL) {
        x->device->clock->mark(x->context, mark_of(t->n_pending) + 1);
        t->n_pending++;
    } else {
        note(t, e);
    }
}

static void before_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)x, (void)call;
    begin((struct op_timer *)w);
}

static void after_call(struct op_watch *w, struct exec *x, const struct op_call *call)
{
    (void)x;
    end((struct op_timer *)w, call);
}

static void around_copy(void *timer, size_t bytes, bool given)
{
    if (given) {
        end(timer, &(struct op_call){.slot = OP_TIMER_COPY, .bytes = (double)bytes});
    } else {
        begin(timer);
    }
}

struct status op_timer_init(struct op_timer *t, struct exec *x, int64_t capacity)
{
    const struct device_clock *clock = x->device->clock;
    int64_t n_pending = clock == NULL ? 1 : MAX_PENDING;
    *t = (struct op_timer){.x = x, .capacity = capacity};
    t->events = calloc((size_t)capacity + 1, sizeof *t->events);
    t->pending = calloc((size_t)n_pending, sizeof *t->pending);
    op_timer_clear(t);
    struct status s =
        t->events == NULL || t->pending == NULL
            ? status_error(STATUS_MEMORY, "out of memory for the times of %lld calls", (long long)capacity)
            : status_ok();
    if (!failed(s) && clock != NULL) {
        s = clock->open(x->context, mark_of(n_pending));
    }
    if (failed(s)) {
        op_timer_fini(t);
    }
    return s;
}

void op_timer_fini(struct op_timer *t)
{
    if (t->x != NULL && t->x->device->clock != NULL) {
        t->x->device->clock->close(t->x->context);
    }
    free(t->events);
    free(t->pending);
    *t = (struct op_timer){0};
}

void op_timer_attach(struct op_timer *t)
{
    struct exec *x = t->x;
    op_watch_init(&t->watch, x->ops);
    t->watch.before = before_call;
    t->watch.after = after_call;
    if (x->device->clock != NULL) {
        set_origin(t);
    }
    x->ops = &t->watch.table;
    x->sending = around_copy;
    x->sending_context = t;
}

void op_timer_detach(struct op_timer *t)
{
    CHECK(t->x->ops == &t->watch.table, "ops are not timed");
    settle(t);
    t->x->ops = t->watch.inner;
    t->x->sending = NULL;
}

void op_timer_clear(struct op_timer *t)
{
    t->n_events = t->n_left_out = t->n_pending = 0;
    for (int i = 0; i < OP_WATCH_N_OPS; i++) {
        t->totals[i] = (struct op_total){.op = op_watch_name(i)};
    }
}
