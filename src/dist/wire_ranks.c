#include "dist/wire_ranks.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank that waits for rank 0's answer lets rank 0 find out first who did not come. */
static const int64_t ANSWER_NS = 1000000000;

/* ---- waiting ---- */

static int number_of(const struct wire_ranks *w, int rank)
{
    return comm_number(&w->numbers, rank);
}

struct status wire_ranks_begin(struct wire_ranks *w, struct wire_op *op, int to, enum wire_tag tag,
                               const void *bytes, size_t n)
{
    return w->wire.type->send(w->wire.state, op, number_of(w, to), w->number * WIRE_TAGS + (int)tag, bytes,
                              n);
}

void wire_ranks_send(struct wire_ranks *w, int to, enum wire_tag tag, const void *bytes, size_t n)
{
    if (n > 0 && !failed(w->watch->failure)) {
        w->sent_bytes += tag == WIRE_DATA ? (int64_t)n : 0;
        w->whom[w->n_ops] = to;
        wire_watch_store(w->watch, wire_ranks_begin(w, &w->ops[w->n_ops++], to, tag, bytes, n));
    }
}

void wire_ranks_receive(struct wire_ranks *w, int from, enum wire_tag tag, void *bytes, size_t n)
{
    if (n > 0 && !failed(w->watch->failure)) {
        struct wire_op *op = &w->ops[w->n_ops];
        w->whom[w->n_ops++] = from;
        wire_watch_store(w->watch, w->wire.type->receive(w->wire.state, op, number_of(w, from),
                                                         w->number * WIRE_TAGS + (int)tag, bytes, n));
    }
}

/* Moves all messages on; returns how many are still pending. */
static int test_all(struct wire_ranks *w)
{
    int n = 0;
    for (int i = 0; i < w->n_ops; i++) {
        wire_watch_store(w->watch, w->wire.type->test(w->wire.state, &w->ops[i]));
        n += w->ops[i].pending;
    }
    return n;
}

/* A wait that has begun: its call and the ranks that it awaits. */
struct wait {
    const char *doing;
    bool (*awaits)(const struct wire_ranks *w, int rank);
    int64_t start_ns;
};

/* "1, 3": the ranks that this one still waits for, each once, as far as they fit. */
static void put_missing(const struct wire_ranks *w, const struct wait *t, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int r = 0; r < w->wire.size && used + 16 < bytes; r++) {
        if (t->awaits(w, r)) {
            used +=
                (size_t)snprintf(text + used, bytes - used, "%s%d", used > 0 ? ", " : "", number_of(w, r));
        }
    }
}

/* Whether the wait is for a rank of the world. */
static bool awaits_number(const struct wire_ranks *w, const struct wait *t, int number)
{
    int past = number - w->numbers.first, rank = past / w->numbers.stride;
    return past >= 0 && past % w->numbers.stride == 0 && rank < w->wire.size && t->awaits(w, rank);
}

/* A rank that has ended without notice ends the wait for any rank: that one may be gone too, on a node where
 * nobody sees it. */
static void judge_left(struct wire_ranks *w, const struct wait *t, int64_t now)
{
    struct wire_watch *watch = w->watch;
    for (int r = 0; r < watch->wire.size; r++) {
        if (wire_watch_has_left(watch, r, now) && (watch->is_gone[r] || awaits_number(w, t, r))) {
            wire_watch_fail(watch,
                            status_error(STATUS_IO, "rank %d of %d has %s, and others wait for it in %s", r,
                                         watch->wire.size, watch->is_gone[r] ? "ended" : "left", t->doing));
        }
    }
}

static void judge_time(struct wire_ranks *w, const struct wait *t, int64_t now)
{
    char missing[160];
    if (now - t->start_ns > w->deadline_ns + (w->is_asking ? ANSWER_NS : 0)) {
        put_missing(w, t, missing, sizeof missing);
        wire_watch_fail(w->watch, status_error(STATUS_IO, "rank %d of %d waited %.1f s in %s for ranks: %s",
                                               number_of(w, w->wire.rank), w->numbers.world,
                                               (double)w->deadline_ns * 1e-9, t->doing, missing));
    }
}

/* Ends the wait by an error that was heard of, or that it finds. */
static void judge(struct wire_ranks *w, const struct wait *t)
{
    int64_t now = clock_ns();
    wire_watch_look(w->watch, now);
    judge_left(w, t, now);
    judge_time(w, t, now);
}

static bool awaits_message(const struct wire_ranks *w, int rank)
{
    for (int i = 0; i < w->n_ops; i++) {
        if (w->ops[i].pending && w->whom[i] == rank) {
            return true;
        }
    }
    return false;
}

struct status wire_ranks_wait(struct wire_ranks *w, const char *doing)
{
    struct wait t = {doing, awaits_message, clock_ns()};
    int64_t moved = t.start_ns;
    int n_before = test_all(w), n = n_before;
    while (n > 0 && !failed(w->watch->failure)) {
        judge(w, &t);
        n = test_all(w);
        moved = n < n_before ? clock_ns() : moved;
        n_before = n;
        if (n > 0 && !failed(w->watch->failure)) {
            wire_watch_pause(clock_ns() - moved, w->is_crowded);
        }
    }
    for (int i = 0; i < w->n_ops; i++) {
        w->wire.type->drop(w->wire.state, &w->ops[i]);
    }
    w->n_ops = 0;
    return w->watch->failure;
}

static bool awaits_coming(const struct wire_ranks *w, int rank)
{
    return w->seats[rank] >= 0 && !node_window_has_come(&w->window, w->seats[rank]);
}

struct status wire_ranks_come(struct wire_ranks *w, const char *doing)
{
    struct wait t = {doing, awaits_coming, clock_ns()};
    int64_t idle_ns = 0;
    node_window_come(&w->window);
    while (!failed(w->watch->failure) && !node_window_wait(&w->window, idle_ns, w->is_crowded)) {
        idle_ns = clock_ns() - t.start_ns;
        if (idle_ns > WIRE_YIELD_NS) {
            judge(w, &t);
        }
    }
    return w->watch->failure;
}

bool wire_ranks_is_late(struct wire_ranks *w, int64_t start_ns)
{
    wire_watch_look(w->watch, clock_ns());
    return failed(w->watch->failure) || clock_ns() - start_ns > w->deadline_ns;
}

/* ---- meetings ---- */

/* A call without an error is sent without the bytes of its message. */
static size_t call_bytes(const struct comm_call *c)
{
    return offsetof(struct comm_call, status) + wire_status_bytes(&c->status);
}

static struct status ask(struct wire_ranks *w, const char *doing)
{
    w->verdict = status_ok();
    wire_ranks_send(w, 0, WIRE_CALL, &w->mine, call_bytes(&w->mine));
    wire_ranks_receive(w, 0, WIRE_VERDICT, &w->verdict, sizeof w->verdict);
    w->is_asking = true;
    struct status s = wire_ranks_wait(w, doing);
    w->is_asking = false;
    return s;
}

static struct status answer(struct wire_ranks *w, const char *doing)
{
    w->calls[0] = w->mine;
    for (int r = 1; r < w->wire.size; r++) {
        w->calls[r].status = status_ok();
        wire_ranks_receive(w, r, WIRE_CALL, &w->calls[r], sizeof w->calls[r]);
    }
    TRY(wire_ranks_wait(w, doing));
    w->verdict = comm_call_judge(w->calls, w->wire.size, &w->numbers);
    for (int r = 1; r < w->wire.size; r++) {
        wire_ranks_send(w, r, WIRE_VERDICT, &w->verdict, wire_status_bytes(&w->verdict));
    }
    return wire_ranks_wait(w, doing);
}

_Static_assert(sizeof(struct comm_call) <= NODE_WINDOW_SLOT_BYTES, "a call fits into a slot");

/* Every rank reads the calls of all ranks. */
static struct status meet_here(struct wire_ranks *w, const char *doing)
{
    memcpy(node_window_next_slot(&w->window), &w->mine, call_bytes(&w->mine));
    TRY(wire_ranks_come(w, doing));
    for (int r = 0; r < w->wire.size; r++) {
        const struct comm_call *said = node_window_slot(&w->window, w->seats[r]);
        w->calls[r].status = status_ok();
        memcpy(&w->calls[r], said, call_bytes(said));
    }
    w->verdict = comm_call_judge(w->calls, w->wire.size, &w->numbers);
    return status_ok();
}

struct status wire_ranks_meet(struct wire_ranks *w, const struct comm_call *call)
{
    const char *doing = comm_call_name(call->kind);
    struct wire_watch *watch = w->watch;
    wire_watch_hear(watch);
    if (failed(call->status) && watch->has_parts) {
        return wire_watch_fail(watch, comm_named_by(call->status, &w->numbers, w->wire.rank));
    }
    if (failed(watch->failure)) {
        return watch->failure;
    }
    if (watch->has_left) { /* others may be in another call, which is not this one */
        return status_error(STATUS_INTERNAL, "rank %d of %d has left, and calls", number_of(w, w->wire.rank),
                            w->numbers.world);
    }
    w->mine = *call;
    TRY(w->is_one_node ? meet_here(w, doing) : w->wire.rank == 0 ? answer(w, doing) : ask(w, doing));
    if (failed(w->verdict) && watch->has_parts) { /* the other parts have not heard it */
        return wire_watch_fail(watch, w->verdict);
    }
    wire_watch_store(watch, w->verdict);
    return watch->failure;
}

/* ---- begin and end ---- */

struct status wire_ranks_init(struct wire_ranks *w, const struct wire *wire, struct wire_watch *watch,
                              const struct comm *comm, int number, int64_t deadline_ns)
{
    size_t n = (size_t)comm->size;
    CHECK(number < WIRE_RANKS_PARTS, "part %d of a world", number);
    *w = (struct wire_ranks){.wire = *wire,
                             .watch = watch,
                             .numbers = comm->numbers,
                             .number = number,
                             .deadline_ns = deadline_ns,
                             .window = {.fd = -1},
                             .seats = calloc(n, sizeof *w->seats),
                             .calls = calloc(n, sizeof *w->calls),
                             .ops = calloc(2 * n, sizeof *w->ops),
                             .whom = calloc(2 * n, sizeof *w->whom)};
    w->wire.rank = comm->rank;
    w->wire.size = comm->size;
    return w->seats == NULL || w->calls == NULL || w->ops == NULL || w->whom == NULL
               ? status_error(STATUS_MEMORY, "out of memory for %d ranks", comm->size)
               : status_ok();
}

void wire_ranks_fini(struct wire_ranks *w)
{
    node_window_close(&w->window);
    free(w->seats);
    free(w->calls);
    free(w->ops);
    free(w->whom);
    *w = (struct wire_ranks){0};
}
