#include "dist/wire_ranks.h"

#include "core/clock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A rank that waits looks again at once, then lets others run first, and at last sleeps, an eighth of the
 * time that it has waited so far: short waits end soon, and long ones cost no processor. */
static const int64_t SPIN_NS = 30000, YIELD_NS = 300000, SHORTEST_SLEEP_NS = 50000,
                     LONGEST_SLEEP_NS = 1000000;

/* What a rank sent before it left may still be on its way when its note is there. */
static const int64_t LEFT_NS = 200000000;

/* How often a waiting rank looks whether the processes of its node are there: a few system calls. */
static const int64_t LOOK_NS = 5000000;

/* A rank that waits for rank 0's answer lets rank 0 find out first who did not come. */
static const int64_t ANSWER_NS = 1000000000;

/* How long a failing rank tries to tell those that do not listen; mpirun may end it a second after it has
 * lost another. */
static const double TELL_S = 0.3;

static void pause_after(const struct wire_ranks *w, int64_t idle_ns)
{
    if (idle_ns < SPIN_NS && !w->is_crowded) {
        return;
    }
    if (idle_ns < YIELD_NS) {
        sched_yield();
        return;
    }
    int64_t ns = idle_ns / 8;
    ns = ns < SHORTEST_SLEEP_NS ? SHORTEST_SLEEP_NS : ns > LONGEST_SLEEP_NS ? LONGEST_SLEEP_NS : ns;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* ---- errors ---- */

static void store(struct wire_ranks *w, struct status s)
{
    if (failed(s) && !failed(w->failure)) {
        w->failure = s;
    }
}

/* An OK status goes without the room for its message. */
static size_t status_bytes(const struct status *s)
{
    return failed(*s) ? sizeof *s : offsetof(struct status, message);
}

/* Sends `told` to all others, and waits a moment for the messages to leave. */
static void tell(struct wire_ranks *w, struct status told)
{
    int64_t start = clock_ns();
    bool pending = true;
    w->told = told;
    for (int r = 0; r < w->wire.size; r++) {
        w->told_ops[r].pending = false;
        if (r != w->wire.rank && !w->is_gone[r]) {
            w->wire.type->send(w->wire.state, &w->told_ops[r], r, WIRE_NOTE, &w->told, status_bytes(&told));
        }
    }
    while (pending && clock_since_s(start) < TELL_S) {
        pending = false;
        for (int r = 0; r < w->wire.size; r++) {
            w->wire.type->test(w->wire.state, &w->told_ops[r]);
            pending = pending || w->told_ops[r].pending;
        }
        if (pending) {
            pause_after(w, clock_ns() - start);
        }
    }
}

struct status wire_ranks_fail(struct wire_ranks *w, struct status s)
{
    if (!failed(w->failure)) {
        w->failure = s;
        tell(w, s);
    }
    return w->failure;
}

static struct status listen(struct wire_ranks *w)
{
    w->note = status_ok();
    return w->wire.type->receive(w->wire.state, &w->note_op, WIRE_ANY, WIRE_NOTE, &w->note, sizeof w->note);
}

static void hear_notes(struct wire_ranks *w)
{
    while (!failed(w->failure)) {
        store(w, w->wire.type->test(w->wire.state, &w->note_op));
        if (failed(w->failure) || w->note_op.pending) {
            return;
        }
        if (failed(w->note)) {
            w->failure = w->note;
            return;
        }
        w->left_ns[w->note_op.from] = clock_ns();
        store(w, listen(w));
    }
}

/* ---- waiting ---- */

void wire_ranks_send(struct wire_ranks *w, int to, enum wire_tag tag, const void *bytes, size_t n)
{
    if (n > 0 && !failed(w->failure)) {
        w->whom[w->n_ops] = to;
        store(w, w->wire.type->send(w->wire.state, &w->ops[w->n_ops++], to, tag, bytes, n));
    }
}

void wire_ranks_receive(struct wire_ranks *w, int from, enum wire_tag tag, void *bytes, size_t n)
{
    if (n > 0 && !failed(w->failure)) {
        w->whom[w->n_ops] = from;
        store(w, w->wire.type->receive(w->wire.state, &w->ops[w->n_ops++], from, tag, bytes, n));
    }
}

/* Moves all messages on; returns how many are still pending. */
static int test_all(struct wire_ranks *w)
{
    int n = 0;
    for (int i = 0; i < w->n_ops; i++) {
        store(w, w->wire.type->test(w->wire.state, &w->ops[i]));
        n += w->ops[i].pending;
    }
    return n;
}

/* A wait that has begun: for what, and for whom. */
struct wait {
    const char *doing;
    bool (*awaits)(const struct wire_ranks *w, int rank);
    int64_t start_ns, looked_ns; /* when it last looked whether all live */
};

/* "1, 3": whom the rank still waits for, each once, and at most what fits. */
static void put_missing(const struct wire_ranks *w, const struct wait *t, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int r = 0; r < w->wire.size && used + 16 < bytes; r++) {
        if (t->awaits(w, r)) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%d", used > 0 ? ", " : "", r);
        }
    }
}

static void look_who_lives(struct wire_ranks *w, struct wait *t, int64_t now)
{
    if (!w->has_window || now - t->looked_ns < LOOK_NS) {
        return;
    }
    t->looked_ns = now;
    for (int r = 0; r < w->wire.size; r++) {
        if (w->seats[r] >= 0 && w->left_ns[r] == 0 && !node_window_is_alive(&w->window, w->seats[r])) {
            w->left_ns[r] = now;
            w->is_gone[r] = true;
        }
    }
}

/* One that has ended without a word ends the wait for any other too, which may be gone as well, on a node
 * where nobody sees it. */
static void judge_left(struct wire_ranks *w, const struct wait *t, int64_t now)
{
    for (int r = 0; r < w->wire.size; r++) {
        if (w->left_ns[r] > 0 && now - w->left_ns[r] > LEFT_NS && (w->is_gone[r] || t->awaits(w, r))) {
            wire_ranks_fail(w, status_error(STATUS_IO, "rank %d of %d has %s, and others wait for it in %s",
                                            r, w->wire.size, w->is_gone[r] ? "ended" : "left", t->doing));
        }
    }
}

static void judge_time(struct wire_ranks *w, const struct wait *t, int64_t now)
{
    char missing[160];
    if (now - t->start_ns > w->deadline_ns + (w->is_asking ? ANSWER_NS : 0)) {
        put_missing(w, t, missing, sizeof missing);
        wire_ranks_fail(w, status_error(STATUS_IO, "rank %d of %d waited %.1f s in %s for ranks: %s",
                                        w->wire.rank, w->wire.size, (double)w->deadline_ns * 1e-9, t->doing,
                                        missing));
    }
}

/* A rank that is silent is of no use to anybody, whoever waits for it; who has left may be. */
static void judge_silence(struct wire_ranks *w)
{
    int r = w->heartbeat == NULL ? -1 : heartbeat_silent(w->heartbeat);
    if (r >= 0 && (w->left_ns[r] == 0 || w->is_gone[r]) && !failed(w->failure)) {
        w->is_gone[r] = true;
        wire_ranks_fail(w, heartbeat_loss(w->heartbeat, r));
    }
}

/* Ends the wait by an error that was heard of, or that it finds. */
static void judge(struct wire_ranks *w, struct wait *t)
{
    int64_t now = clock_ns();
    look_who_lives(w, t, now);
    hear_notes(w);
    judge_left(w, t, now);
    judge_silence(w);
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
    struct wait t = {doing, awaits_message, clock_ns(), 0};
    int64_t moved = t.start_ns;
    int n_before = test_all(w), n = n_before;
    t.looked_ns = t.start_ns;
    while (n > 0 && !failed(w->failure)) {
        judge(w, &t);
        n = test_all(w);
        moved = n < n_before ? clock_ns() : moved;
        n_before = n;
        if (n > 0 && !failed(w->failure)) {
            pause_after(w, clock_ns() - moved);
        }
    }
    for (int i = 0; i < w->n_ops; i++) {
        w->wire.type->drop(w->wire.state, &w->ops[i]);
    }
    w->n_ops = 0;
    return w->failure;
}

static bool awaits_coming(const struct wire_ranks *w, int rank)
{
    return w->seats[rank] >= 0 && !node_window_has_come(&w->window, w->seats[rank]);
}

struct status wire_ranks_come(struct wire_ranks *w, const char *doing)
{
    struct wait t = {doing, awaits_coming, clock_ns(), 0};
    int64_t idle_ns = 0;
    t.looked_ns = t.start_ns;
    node_window_come(&w->window);
    while (!failed(w->failure) && !node_window_wait(&w->window, idle_ns, w->is_crowded)) {
        idle_ns = clock_ns() - t.start_ns;
        if (idle_ns > YIELD_NS) {
            judge(w, &t);
        }
    }
    return w->failure;
}

bool wire_ranks_is_late(struct wire_ranks *w, int64_t start_ns)
{
    hear_notes(w);
    judge_silence(w);
    return failed(w->failure) || clock_ns() - start_ns > w->deadline_ns;
}

/* ---- meetings ---- */

/* A call without an error goes without the room for its message. */
static size_t call_bytes(const struct comm_call *c)
{
    return offsetof(struct comm_call, status) + status_bytes(&c->status);
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
    w->verdict = comm_call_judge(w->calls, w->wire.size);
    for (int r = 1; r < w->wire.size; r++) {
        wire_ranks_send(w, r, WIRE_VERDICT, &w->verdict, status_bytes(&w->verdict));
    }
    return wire_ranks_wait(w, doing);
}

_Static_assert(sizeof(struct comm_call) <= NODE_WINDOW_CALL_BYTES, "a call fits into its place");

/* All read what all say. */
static struct status meet_here(struct wire_ranks *w, const char *doing)
{
    memcpy(node_window_next_call(&w->window), &w->mine, call_bytes(&w->mine));
    TRY(wire_ranks_come(w, doing));
    for (int r = 0; r < w->wire.size; r++) {
        const struct comm_call *said = node_window_call(&w->window, w->seats[r]);
        w->calls[r].status = status_ok();
        memcpy(&w->calls[r], said, call_bytes(said));
    }
    w->verdict = comm_call_judge(w->calls, w->wire.size);
    return status_ok();
}

struct status wire_ranks_meet(struct wire_ranks *w, const struct comm_call *call)
{
    const char *doing = comm_call_name(call->kind);
    hear_notes(w);
    if (failed(w->failure)) {
        return w->failure;
    }
    w->mine = *call;
    TRY(w->is_one_node ? meet_here(w, doing) : w->wire.rank == 0 ? answer(w, doing) : ask(w, doing));
    store(w, w->verdict);
    return w->failure;
}

/* ---- begin and end ---- */

struct status wire_ranks_init(struct wire_ranks *w, const struct wire *wire, double deadline_s)
{
    size_t n = (size_t)wire->size;
    *w = (struct wire_ranks){.wire = *wire,
                             .deadline_ns = (int64_t)(deadline_s * 1e9),
                             .told_ops = calloc(n, sizeof *w->told_ops),
                             .left_ns = calloc(n, sizeof *w->left_ns),
                             .is_gone = calloc(n, sizeof *w->is_gone),
                             .window = {.fd = -1},
                             .seats = calloc(n, sizeof *w->seats),
                             .calls = calloc(n, sizeof *w->calls),
                             .ops = calloc(2 * n, sizeof *w->ops),
                             .whom = calloc(2 * n, sizeof *w->whom)};
    if (w->told_ops == NULL || w->left_ns == NULL || w->is_gone == NULL || w->seats == NULL ||
        w->calls == NULL || w->ops == NULL || w->whom == NULL) {
        w->failure = status_error(STATUS_MEMORY, "out of memory for %d ranks", wire->size);
    }
    store(w, failed(w->failure) ? w->failure : listen(w));
    return w->failure;
}

void wire_ranks_leave(struct wire_ranks *w, struct status why)
{
    hear_notes(w);
    if (failed(why)) {
        wire_ranks_fail(w, comm_named(why, w->wire.rank, w->wire.size));
    } else if (!failed(w->failure)) {
        tell(w, why);
    }
}

void wire_ranks_fini(struct wire_ranks *w)
{
    w->wire.type->drop(w->wire.state, &w->note_op);
    w->wire.type->close(w->wire.state, !failed(w->failure));
    node_window_close(&w->window);
    free(w->told_ops);
    free(w->left_ns);
    free(w->is_gone);
    free(w->seats);
    free(w->calls);
    free(w->ops);
    free(w->whom);
    *w = (struct wire_ranks){0};
}
