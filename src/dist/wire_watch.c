#include "dist/wire_watch.h"

#include "core/clock.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

static const int64_t SHORTEST_SLEEP_NS = 50000, LONGEST_SLEEP_NS = 1000000;

/* Time for messages that a rank sent before it left: its note may arrive first. */
static const int64_t LEFT_NS = 200000000;

/* Time between two looks of a waiting rank whether the processes of its node are there, which takes a few
 * system calls. */
static const int64_t LOOK_NS = 5000000;

/* Time in which a failing rank tries to send its error to those that do not listen; mpirun may end it a
 * second after it has lost another. */
static const double TELL_S = 0.3;

void wire_watch_pause(int64_t idle_ns, bool is_crowded)
{
    if (idle_ns < WIRE_SPIN_NS && !is_crowded) {
        return;
    }
    if (idle_ns < WIRE_YIELD_NS) {
        sched_yield();
        return;
    }
    int64_t ns = idle_ns / 8;
    ns = ns < SHORTEST_SLEEP_NS ? SHORTEST_SLEEP_NS : ns > LONGEST_SLEEP_NS ? LONGEST_SLEEP_NS : ns;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

void wire_watch_store(struct wire_watch *w, struct status s)
{
    if (failed(s) && !failed(w->failure)) {
        w->failure = s;
    }
}

size_t wire_status_bytes(const struct status *s)
{
    return failed(*s) ? sizeof *s : offsetof(struct status, message);
}

/* Sends `told` to all others, and waits a moment for the messages to leave. */
static void tell(struct wire_watch *w, struct status told)
{
    int64_t start = clock_ns();
    bool pending = true;
    w->told = told;
    for (int r = 0; r < w->wire.size; r++) {
        w->told_ops[r].pending = false;
        if (r != w->wire.rank && !w->is_gone[r]) {
            w->wire.type->send(w->wire.state, &w->told_ops[r], r, WIRE_NOTE, &w->told,
                               wire_status_bytes(&told));
        }
    }
    while (pending && clock_since_s(start) < TELL_S) {
        pending = false;
        for (int r = 0; r < w->wire.size; r++) {
            w->wire.type->test(w->wire.state, &w->told_ops[r]);
            pending = pending || w->told_ops[r].pending;
        }
        if (pending) {
            wire_watch_pause(clock_ns() - start, false);
        }
    }
}

struct status wire_watch_fail(struct wire_watch *w, struct status s)
{
    if (!failed(w->failure)) {
        w->failure = s;
        tell(w, s);
    }
    return w->failure;
}

static struct status listen(struct wire_watch *w)
{
    w->note = status_ok();
    return w->wire.type->receive(w->wire.state, &w->note_op, WIRE_ANY, WIRE_NOTE, &w->note, sizeof w->note);
}

void wire_watch_hear(struct wire_watch *w)
{
    while (!failed(w->failure)) {
        wire_watch_store(w, w->wire.type->test(w->wire.state, &w->note_op));
        if (failed(w->failure) || w->note_op.pending) {
            return;
        }
        if (failed(w->note)) {
            w->failure = w->note;
            return;
        }
        w->left_ns[w->note_op.from] = clock_ns();
        wire_watch_store(w, listen(w));
    }
}

static void look_who_lives(struct wire_watch *w, int64_t now)
{
    if (w->window == NULL || now - w->looked_ns < LOOK_NS) {
        return;
    }
    w->looked_ns = now;
    for (int r = 0; r < w->wire.size; r++) {
        if (w->seats[r] >= 0 && w->left_ns[r] == 0 && !node_window_is_alive(w->window, w->seats[r])) {
            w->left_ns[r] = now;
            w->is_gone[r] = true;
        }
    }
}

/* A rank that is silent is of no use to anybody, whoever waits for it; a rank that has left may be. */
static void judge_silence(struct wire_watch *w)
{
    int r = w->heartbeat == NULL ? -1 : heartbeat_silent(w->heartbeat);
    if (r >= 0 && (w->left_ns[r] == 0 || w->is_gone[r]) && !failed(w->failure)) {
        w->is_gone[r] = true;
        wire_watch_fail(w, heartbeat_loss(w->heartbeat, r));
    }
}

void wire_watch_look(struct wire_watch *w, int64_t now)
{
    look_who_lives(w, now);
    wire_watch_hear(w);
    judge_silence(w);
}

bool wire_watch_has_left(const struct wire_watch *w, int rank, int64_t now)
{
    return w->left_ns[rank] > 0 && now - w->left_ns[rank] > LEFT_NS;
}

void wire_watch_leave(struct wire_watch *w, struct status why)
{
    wire_watch_hear(w);
    w->has_left = true;
    if (failed(why)) {
        wire_watch_fail(w, why);
    } else if (!failed(w->failure)) {
        tell(w, why);
    }
}

struct status wire_watch_init(struct wire_watch *w, const struct wire *wire)
{
    size_t n = (size_t)wire->size;
    *w = (struct wire_watch){.wire = *wire,
                             .told_ops = calloc(n, sizeof *w->told_ops),
                             .left_ns = calloc(n, sizeof *w->left_ns),
                             .is_gone = calloc(n, sizeof *w->is_gone)};
    if (w->told_ops == NULL || w->left_ns == NULL || w->is_gone == NULL) {
        w->failure = status_error(STATUS_MEMORY, "out of memory for %d ranks", wire->size);
    }
    wire_watch_store(w, failed(w->failure) ? w->failure : listen(w));
    return w->failure;
}

void wire_watch_fini(struct wire_watch *w)
{
    w->wire.type->drop(w->wire.state, &w->note_op);
    w->wire.type->close(w->wire.state, !failed(w->failure));
    free(w->told_ops);
    free(w->left_ns);
    free(w->is_gone);
    *w = (struct wire_watch){0};
}
