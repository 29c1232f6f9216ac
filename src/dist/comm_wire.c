#include "dist/comm_wire.h"

#include "core/clock.h"
#include "core/log.h"
#include "dist/node_calls.h"
#include "dist/reduce.h"
#include "dist/wire_ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ranks may start at different times, however little they may wait for each other afterwards. */
static const double OPENING_S = 60;

/* What a rank tells the others when they meet. */
struct hello {
    char version[32];
    size_t call_bytes; /* of another build it may be another */
    char node[128];    /* the same for processes of one node */
    uint64_t run;      /* of rank 0: no other run on these nodes has it */
};

/* A message that was sent, and may be under way. */
struct outgoing {
    struct outgoing *next;
    int n_ops;
    struct wire_op *ops; /* [n_ops] */
    int64_t bytes;
    char data[];
};

struct comm_wire {
    struct wire_ranks ranks;
    char *piece;            /* [COMM_WIRE_PIECE_BYTES] */
    const void **from;      /* [size] */
    struct hello *hellos;   /* [size] */
    struct outgoing *first; /* messages under way */
};

/* ---- pieces of a tensor ---- */

/* Elements of a tensor, of which each rank has a part: [begin(r), begin(r + 1)). */
struct piece {
    char *data;
    int64_t n;
    enum dtype dtype;
};

static int64_t part_begin(const struct wire_ranks *w, const struct piece *p, int r)
{
    return p->n * r / w->wire.size;
}

static char *part_data(const struct wire_ranks *w, const struct piece *p, int r)
{
    return p->data + (size_t)part_begin(w, p, r) * dtype_bytes(p->dtype);
}

static size_t part_bytes(const struct wire_ranks *w, const struct piece *p, int r)
{
    return (size_t)(part_begin(w, p, r + 1) - part_begin(w, p, r)) * dtype_bytes(p->dtype);
}

/* The k-th rank after and before this one: each rank begins with another. */
static int after(const struct wire_ranks *w, int k)
{
    return (w->wire.rank + k) % w->wire.size;
}

static int before(const struct wire_ranks *w, int k)
{
    return (w->wire.rank + w->wire.size - k) % w->wire.size;
}

/* Each rank's part goes to all others, but not to `whole`, which has them all (-1: nobody has). */
static struct status share_parts(struct wire_ranks *w, const struct piece *p, int whole, const char *doing)
{
    int rank = w->wire.rank;
    for (int k = 1; k < w->wire.size; k++) {
        int to = after(w, k), from = before(w, k);
        if (rank != whole) {
            wire_ranks_receive(w, from, WIRE_DATA, part_data(w, p, from), part_bytes(w, p, from));
        }
        if (to != whole) {
            wire_ranks_send(w, to, WIRE_DATA, part_data(w, p, rank), part_bytes(w, p, rank));
        }
    }
    return wire_ranks_wait(w, doing);
}

static struct status reduce_piece(struct comm_wire *c, const struct piece *p, reduction *reduce,
                                  const char *doing)
{
    struct wire_ranks *w = &c->ranks;
    int rank = w->wire.rank;
    size_t bytes = part_bytes(w, p, rank);
    for (int k = 1; k < w->wire.size; k++) {
        int to = after(w, k), from = before(w, k);
        c->from[from] = c->piece + (size_t)from * bytes;
        wire_ranks_receive(w, from, WIRE_DATA, c->piece + (size_t)from * bytes, bytes);
        wire_ranks_send(w, to, WIRE_DATA, part_data(w, p, to), part_bytes(w, p, to));
    }
    TRY(wire_ranks_wait(w, doing));
    c->from[rank] = part_data(w, p, rank);
    reduce(part_data(w, p, rank), c->from, w->wire.size, 0, (int64_t)(bytes / dtype_bytes(p->dtype)),
           p->dtype);
    return share_parts(w, p, -1, doing);
}

/* Elements of a piece: the parts of all ranks, the largest of which is rounded up, fit into the buffer. */
static int64_t piece_elements(const struct comm_wire *c, enum dtype dtype)
{
    int64_t size = c->ranks.wire.size;
    return COMM_WIRE_PIECE_BYTES / (int64_t)dtype_bytes(dtype) / size * size;
}

static struct piece piece_at(const struct comm_wire *c, tensor t, int64_t first)
{
    int64_t most = piece_elements(c, t.dtype), left = tensor_count(t) - first;
    return (struct piece){(char *)t.data + (size_t)first * dtype_bytes(t.dtype), left < most ? left : most,
                          t.dtype};
}

/* ---- messages under way ---- */

static bool has_arrived(struct comm_wire *c, struct outgoing *m)
{
    const struct wire *wire = &c->ranks.wire;
    bool pending = false;
    for (int i = 0; i < m->n_ops; i++) {
        wire->type->test(wire->state, &m->ops[i]);
        pending = pending || m->ops[i].pending;
    }
    return !pending;
}

static void forget(struct outgoing *m)
{
    free(m->ops);
    free(m);
}

static void forget_arrived(struct comm_wire *c)
{
    struct outgoing **place = &c->first;
    while (*place != NULL) {
        struct outgoing *m = *place;
        if (has_arrived(c, m)) {
            *place = m->next;
            forget(m);
        } else {
            place = &m->next;
        }
    }
}

/* A copy of t; NULL if there is no memory. */
static struct outgoing *outgoing_of(tensor t)
{
    int64_t bytes = (int64_t)tensor_bytes(t);
    int n_ops = 1 + (int)((bytes + COMM_WIRE_PIECE_BYTES - 1) / COMM_WIRE_PIECE_BYTES);
    struct outgoing *m = malloc(sizeof *m + (size_t)bytes);
    struct wire_op *ops = calloc((size_t)n_ops, sizeof *ops);
    if (m == NULL || ops == NULL) {
        free(m);
        free(ops);
        return NULL;
    }
    *m = (struct outgoing){.n_ops = n_ops, .ops = ops, .bytes = bytes};
    memcpy(m->data, t.data, (size_t)bytes);
    return m;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct status begin_message(struct comm_wire *c, struct outgoing *m, int to)
{
    const struct wire *wire = &c->ranks.wire;
    TRY(wire->type->send(wire->state, &m->ops[0], to, WIRE_HEAD, &m->bytes, sizeof m->bytes));
    for (int i = 1; i < m->n_ops; i++) {
        int64_t first = (int64_t)(i - 1) * COMM_WIRE_PIECE_BYTES;
        TRY(wire->type->send(wire->state, &m->ops[i], to, WIRE_BODY, m->data + first,
                             (size_t)smaller(m->bytes - first, COMM_WIRE_PIECE_BYTES)));
    }
    return status_ok();
}

/* ---- the table ---- */

static struct status meet(struct comm_wire *c, struct comm_call call)
{
    forget_arrived(c);
    return wire_ranks_meet(&c->ranks, &call);
}

static struct status agree(void *state, struct status mine)
{
    return meet(state, (struct comm_call){.kind = CALL_AGREE, .status = mine});
}

static struct status reduce_all(struct comm_wire *c, struct comm_call call, tensor t, reduction *reduce)
{
    TRY(meet(c, call));
    if (c->ranks.is_one_node) {
        return node_calls_reduce(&c->ranks, t, reduce, c->from, comm_call_name(call.kind));
    }
    for (int64_t i = 0; i < tensor_count(t); i += piece_elements(c, t.dtype)) {
        struct piece p = piece_at(c, t, i);
        TRY(reduce_piece(c, &p, reduce, comm_call_name(call.kind)));
    }
    return status_ok();
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    return reduce_all(state, comm_call_of(CALL_ALL_REDUCE_SUM, x, t), t, reduce_sum);
}

static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    return reduce_all(state, comm_call_of(CALL_ALL_REDUCE_MAX, x, t), t, reduce_max);
}

/* Of each rank's rows the bytes [done, done + COMM_WIRE_PIECE_BYTES), as far as it has so many. */
static struct status gather_some(struct comm_wire *c, tensor t, const int64_t *bounds, size_t row_bytes,
                                 int64_t done)
{
    struct wire_ranks *w = &c->ranks;
    for (int r = 0; r < w->wire.size; r++) {
        int64_t left = (bounds[r + 1] - bounds[r]) * (int64_t)row_bytes - done;
        size_t bytes = left > 0 ? (size_t)smaller(left, COMM_WIRE_PIECE_BYTES) : 0;
        char *data = (char *)t.data + (size_t)bounds[r] * row_bytes + done;
        for (int k = 1; k < w->wire.size && r == w->wire.rank; k++) {
            wire_ranks_send(w, after(w, k), WIRE_DATA, data, bytes);
        }
        if (r != w->wire.rank) {
            wire_ranks_receive(w, r, WIRE_DATA, data, bytes);
        }
    }
    return wire_ranks_wait(w, comm_call_name(CALL_ALL_GATHER));
}

static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    struct comm_wire *c = state;
    int64_t most = 0;
    size_t row_bytes = t.dims[0] == 0 ? 0 : tensor_bytes(t) / (size_t)t.dims[0];
    TRY(meet(c, comm_call_gather(x, t, bounds, c->ranks.wire.size)));
    if (c->ranks.is_one_node) {
        return node_calls_gather(&c->ranks, t, bounds);
    }
    for (int r = 0; r < c->ranks.wire.size; r++) {
        int64_t bytes = (bounds[r + 1] - bounds[r]) * (int64_t)row_bytes;
        most = bytes > most ? bytes : most;
    }
    for (int64_t done = 0; done < most; done += COMM_WIRE_PIECE_BYTES) {
        TRY(gather_some(c, t, bounds, row_bytes, done));
    }
    return status_ok();
}

/* The root gives each rank its part, and the parts go to all. */
static struct status broadcast(void *state, struct exec *x, tensor t, int root)
{
    struct comm_wire *c = state;
    struct wire_ranks *w = &c->ranks;
    const char *doing = comm_call_name(CALL_BROADCAST);
    TRY(meet(c, comm_call_broadcast(x, t, root)));
    if (w->is_one_node) {
        return node_calls_broadcast(w, t, root);
    }
    for (int64_t i = 0; i < tensor_count(t); i += piece_elements(c, t.dtype)) {
        struct piece p = piece_at(c, t, i);
        int rank = w->wire.rank;
        for (int k = 1; k < w->wire.size && rank == root; k++) {
            wire_ranks_send(w, after(w, k), WIRE_DATA, part_data(w, &p, after(w, k)),
                            part_bytes(w, &p, after(w, k)));
        }
        if (rank != root) {
            wire_ranks_receive(w, root, WIRE_DATA, part_data(w, &p, rank), part_bytes(w, &p, rank));
        }
        TRY(wire_ranks_wait(w, doing));
        TRY(share_parts(w, &p, root, doing));
    }
    return status_ok();
}

/* This rank's error, told to all; or that of another, if one was heard of before. */
static struct status fail_named(struct comm_wire *c, struct status mine)
{
    return wire_ranks_fail(&c->ranks, comm_named(mine, c->ranks.wire.rank, c->ranks.wire.size));
}

static struct status send(void *state, struct exec *x, struct status mine, tensor t, int to)
{
    struct comm_wire *c = state;
    forget_arrived(c);
    mine = failed(mine) ? mine : comm_call_host(x);
    if (failed(mine) || failed(c->ranks.failure)) {
        return fail_named(c, mine);
    }
    struct outgoing *m = outgoing_of(t);
    if (m == NULL) {
        return fail_named(
            c, status_error(STATUS_MEMORY, "out of memory for a message of %zu bytes", tensor_bytes(t)));
    }
    m->next = c->first;
    c->first = m;
    struct status s = begin_message(c, m, to);
    return failed(s) ? fail_named(c, s) : status_ok();
}

static struct status receive(void *state, struct exec *x, struct status mine, tensor t, int from)
{
    struct comm_wire *c = state;
    struct wire_ranks *w = &c->ranks;
    int64_t theirs = -1, bytes = (int64_t)tensor_bytes(t);
    forget_arrived(c);
    mine = failed(mine) ? mine : comm_call_host(x);
    if (failed(mine) || failed(w->failure)) {
        return fail_named(c, mine);
    }
    wire_ranks_receive(w, from, WIRE_HEAD, &theirs, sizeof theirs);
    TRY(wire_ranks_wait(w, "a message"));
    if (theirs != bytes) {
        return wire_ranks_fail(w, status_error(STATUS_INTERNAL,
                                               "rank %d receives %lld bytes from rank %d, which sent %lld",
                                               w->wire.rank, (long long)bytes, from, (long long)theirs));
    }
    for (int64_t done = 0; done < bytes; done += COMM_WIRE_PIECE_BYTES) {
        wire_ranks_receive(w, from, WIRE_BODY, (char *)t.data + done,
                           (size_t)smaller(bytes - done, COMM_WIRE_PIECE_BYTES));
        TRY(wire_ranks_wait(w, "a message"));
    }
    return status_ok();
}

/* At the end of the work, messages under way are waited for: their receivers may still come. */
static void leave(void *state, struct status why)
{
    struct comm_wire *c = state;
    int64_t start = clock_ns();
    forget_arrived(c);
    while (c->first != NULL && !failed(why) && !wire_ranks_is_late(&c->ranks, start)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        forget_arrived(c);
    }
    wire_ranks_leave(&c->ranks, why);
}

static const struct comm_type type = {
    .name = "MPI",
    .agree = agree,
    .all_reduce_sum = all_reduce_sum,
    .all_reduce_max = all_reduce_max,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .send = send,
    .receive = receive,
    .leave = leave,
};

/* ---- begin and end ---- */

/* Containers of one machine have its boot id, but names, networks and perhaps /dev/shm of their own. */
static void name_node(char *text, size_t n)
{
    char boot[40] = "", host[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f != NULL) {
        boot[fread(boot, 1, 36, f)] = '\0';
        fclose(f);
    }
    gethostname(host, sizeof host - 1);
    snprintf(text, n, "%s %s", host, boot);
}

static struct status compare_builds(const struct comm_wire *c)
{
    for (int r = 1; r < c->ranks.wire.size; r++) {
        const struct hello *first = &c->hellos[0], *h = &c->hellos[r];
        if (strcmp(h->version, first->version) != 0 || h->call_bytes != first->call_bytes) {
            return status_error(
                STATUS_UNAVAILABLE,
                "rank %d is kiln %s, but rank 0 is kiln %s, or of another build: all nodes need "
                "the same program",
                r, h->version, first->version);
        }
    }
    return status_ok();
}

/* Rank 0 hears who all are, and tells all. */
static struct status greet(struct comm_wire *c)
{
    struct wire_ranks *w = &c->ranks;
    struct hello *mine = &c->hellos[w->wire.rank];
    size_t size = (size_t)w->wire.size;
    snprintf(mine->version, sizeof mine->version, "%s", KILN_VERSION);
    mine->call_bytes = sizeof(struct comm_call);
    mine->run = (uint64_t)clock_ns() << 22 ^ (uint64_t)getpid();
    name_node(mine->node, sizeof mine->node);
    for (int r = 1; r < w->wire.size && w->wire.rank == 0; r++) {
        wire_ranks_receive(w, r, WIRE_HELLO, &c->hellos[r], sizeof *mine);
    }
    if (w->wire.rank != 0) {
        wire_ranks_send(w, 0, WIRE_HELLO, mine, sizeof *mine);
    }
    TRY(wire_ranks_wait(w, "the beginning"));
    for (int r = 1; r < w->wire.size && w->wire.rank == 0; r++) {
        wire_ranks_send(w, r, WIRE_HELLO, c->hellos, size * sizeof *mine);
    }
    if (w->wire.rank != 0) {
        wire_ranks_receive(w, 0, WIRE_HELLO, c->hellos, size * sizeof *mine);
    }
    TRY(wire_ranks_wait(w, "the beginning"));
    return compare_builds(c);
}

static void find_place(struct comm *comm, struct comm_wire *c)
{
    comm->local_rank = comm->n_local = 0;
    for (int r = 0; r < comm->size; r++) {
        bool is_here = strcmp(c->hellos[r].node, c->hellos[comm->rank].node) == 0;
        c->ranks.seats[r] = is_here ? comm->n_local : -1;
        comm->n_local += is_here;
        comm->local_rank += is_here && r < comm->rank;
    }
    c->ranks.is_crowded = comm->n_local > sysconf(_SC_NPROCESSORS_ONLN);
}

/* Sets *all to whether `mine` is true on all ranks. */
static struct status all_can(struct comm_wire *c, bool mine, bool *all)
{
    struct wire_ranks *w = &c->ranks;
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    float lacks = mine ? 0 : 1;
    TRY(all_reduce_max(c, &host, tensor_1d(&lacks, DTYPE_F32, 1)));
    *all = lacks == 0;
    return w->failure;
}

/* Opens the memory of each node's ranks.  Without it they use messages, which take longer. */
static struct status open_window(const struct comm *comm, struct comm_wire *c, bool shares)
{
    struct wire_ranks *w = &c->ranks;
    char name[96];
    bool all_made, all_joined;
    int first = 0;
    while (w->seats[first] != 0) {
        first++;
    }
    snprintf(name, sizeof name, "/kiln-%llx-%d", (unsigned long long)c->hellos[0].run, first);
    struct status s = shares ? status_ok() : status_error(STATUS_UNAVAILABLE, "KILN_COMM_WINDOW is 0");
    if (comm->local_rank == 0 && shares) {
        s = node_window_create(&w->window, name, comm->n_local);
    }
    TRY(all_can(c, !failed(s), &all_made));
    if (comm->local_rank != 0 && all_made) {
        s = node_window_join(&w->window, name, comm->local_rank, comm->n_local);
    }
    TRY(all_can(c, !failed(s), &all_joined));
    if (comm->local_rank == 0) {
        node_window_remove_name(name);
    }
    if (!all_joined) {
        node_window_close(&w->window);
    }
    if (failed(s)) {
        log_warning("rank %d of %d: %s; ranks of a node do without, and their sums take longer", comm->rank,
                    comm->size, s.message);
    }
    w->has_window = all_joined;
    w->is_one_node = all_joined && comm->n_local == comm->size;
    return status_ok();
}

struct status comm_wire_open(struct comm *comm, const struct wire *wire,
                             const struct comm_wire_options *options)
{
    struct comm_wire *c = calloc(1, sizeof *c);
    if (c == NULL) {
        wire->type->close(wire->state, false);
        return status_error(STATUS_MEMORY, "out of memory for %d ranks", wire->size);
    }
    *comm = (struct comm){.type = &type, .rank = wire->rank, .size = wire->size, .state = c};
    struct status s = wire_ranks_init(&c->ranks, wire, options->deadline_s);
    c->piece = malloc(COMM_WIRE_PIECE_BYTES);
    c->from = calloc((size_t)wire->size, sizeof *c->from);
    c->hellos = calloc((size_t)wire->size, sizeof *c->hellos);
    if (!failed(s) && (c->piece == NULL || c->from == NULL || c->hellos == NULL)) {
        s = status_error(STATUS_MEMORY, "out of memory for what ranks exchange");
    }
    c->ranks.deadline_ns = (int64_t)(1e9 * fmax(options->deadline_s, OPENING_S));
    s = failed(s) ? s : greet(c);
    if (!failed(s)) {
        find_place(comm, c);
        s = open_window(comm, c, options->shares_memory);
    }
    c->ranks.deadline_ns = (int64_t)(1e9 * options->deadline_s);
    if (failed(s)) {
        leave(c, s);
        comm_wire_close(comm);
        return s;
    }
    return status_ok();
}

void comm_wire_close(struct comm *comm)
{
    struct comm_wire *c = comm->state;
    wire_ranks_fini(&c->ranks);
    while (c->first != NULL) {
        struct outgoing *m = c->first;
        c->first = m->next;
        forget(m);
    }
    free(c->piece);
    free(c->from);
    free(c->hellos);
    free(c);
}

const char *comm_wire_library(const struct comm *comm)
{
    const struct comm_wire *c = comm->state;
    return c->ranks.wire.library;
}
