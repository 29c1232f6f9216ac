/* Sums over several nodes take two stages where the ranks of each node are neighbours and a power of two of
 * them: the ranks of a node add up through shared memory, then the ranks with the same place on each node add
 * up over the wire (the column).  Both stages are levels of one tree over all ranks, so the bits do not
 * depend on how ranks are placed on nodes.  Sums in bf16 take one stage, since they are rounded once.
 *
 * A part is a communicator whose messages have tags of their own, with a window of its own where it
 * has several ranks of a node; the watch, which hears of errors and lost ranks, is that of the world. */
#include "dist/comm_wire.h"

#include "core/clock.h"
#include "core/entropy.h"
#include "core/host.h"
#include "core/integers.h"
#include "core/log.h"
#include "dist/wire_group.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ranks may start at different times, however little they may wait for each other afterwards. */
static const double OPENING_S = 60;

/* Facts about a rank that all ranks get at the start. */
struct hello {
    char version[32];
    size_t call_bytes;              /* sizeof(struct comm_call), which may differ in another build */
    char node[128];                 /* the same for processes of one node */
    uint64_t run;                   /* random number of rank 0, in names that others may see */
    struct heartbeat_secret secret; /* rank 0's secret is used */
    struct heartbeat_place heartbeat;
};

/* A message that was sent, and may be under way. */
struct outgoing {
    struct outgoing *next;
    struct wire_op op;
    char data[];
};

struct comm_wire {
    struct wire_ranks ranks;
    struct comm_wire *world; /* itself, unless it is a part */
    int n_numbers;           /* numbers of parts that this rank knows to be taken; kept in the world only */
    int most_sharing;        /* most ranks that share memory; 0: none do */
    struct wire_watch watch; /* kept in the world only, as the heartbeat and the messages under way */
    struct heartbeat heartbeat;
    struct outgoing *first;
    struct wire_group all;    /* all ranks */
    struct wire_group node;   /* ranks that share memory, if they are all ranks or nodes are blocks */
    struct wire_group column; /* one rank of each node, in the same place: in use if nodes are blocks */
    /* each node has the same number of neighbouring ranks, a power of two, which share memory */
    bool are_blocks;
    char *room;           /* memory for messages of groups [WIRE_GROUP_PIECE_BYTES] */
    struct hello *hellos; /* [size] */
};

/* ---- messages ---- */

/* A send does not wait for its receiver, so its copy is freed at a later call, once the receiver has
 * it. */
static void forget_arrived(struct comm_wire *c)
{
    const struct wire *wire = &c->ranks.wire;
    struct outgoing **place = &c->world->first;
    while (*place != NULL) {
        struct outgoing *m = *place;
        wire->type->test(wire->state, &m->op);
        if (m->op.pending) {
            place = &m->next;
        } else {
            *place = m->next;
            free(m);
        }
    }
}

/* Begins to send a copy. */
static struct status post(struct comm_wire *c, int to, enum wire_tag tag, const void *bytes, int64_t n)
{
    struct outgoing *m = malloc(sizeof *m + (size_t)n);
    FAIL_IF(m == NULL, STATUS_MEMORY, "out of memory for a message of %lld bytes", (long long)n);
    *m = (struct outgoing){.next = c->world->first};
    c->world->first = m;
    memcpy(m->data, bytes, (size_t)n);
    return wire_ranks_begin(&c->ranks, &m->op, to, tag, m->data, (size_t)n);
}

/* The size goes first, under a tag of its own, so that the receiver can compare it; the data follow in
 * pieces, since a wire sends at most INT_MAX bytes at once. */
static struct status send(struct comm_wire *c, tensor t, int to)
{
    int64_t bytes = (int64_t)tensor_bytes(t);
    c->ranks.sent_bytes += bytes;
    TRY(post(c, to, WIRE_HEAD, &bytes, sizeof bytes));
    for (int64_t done = 0; done < bytes; done += WIRE_GROUP_PIECE_BYTES) {
        TRY(post(c, to, WIRE_BODY, (char *)t.data + done, int_smaller(bytes - done, WIRE_GROUP_PIECE_BYTES)));
    }
    return status_ok();
}

static struct status receive(struct comm_wire *c, tensor t, int from)
{
    struct wire_ranks *w = &c->ranks;
    int64_t theirs = -1, bytes = (int64_t)tensor_bytes(t);
    wire_ranks_receive(w, from, WIRE_HEAD, &theirs, sizeof theirs);
    TRY(wire_ranks_wait(w, "a message"));
    if (theirs != bytes) {
        return wire_watch_fail(w->watch,
                               status_error(STATUS_INTERNAL,
                                            "rank %d receives %lld bytes from rank %d, which sent %lld",
                                            comm_number(&w->numbers, w->wire.rank), (long long)bytes,
                                            comm_number(&w->numbers, from), (long long)theirs));
    }
    for (int64_t done = 0; done < bytes; done += WIRE_GROUP_PIECE_BYTES) {
        wire_ranks_receive(w, from, WIRE_BODY, (char *)t.data + done,
                           (size_t)int_smaller(bytes - done, WIRE_GROUP_PIECE_BYTES));
        TRY(wire_ranks_wait(w, "a message"));
    }
    return status_ok();
}

/* ---- the table ---- */

/* bf16 is rounded once, so sums of nodes are not added up. */
static struct wire_group *group_of(struct comm_wire *c, bool in_levels)
{
    return c->ranks.is_one_node || (c->are_blocks && in_levels) ? &c->node : &c->all;
}

static struct status reduce_all(struct comm_wire *c, enum comm_call_kind kind, tensor t)
{
    struct wire_group *g = group_of(c, t.dtype != DTYPE_BF16);
    return wire_group_reduce(&c->ranks, g, g == &c->node && c->are_blocks ? &c->column : NULL, t.data,
                             tensor_count(t), t.dtype, kind == CALL_ALL_REDUCE_SUM ? reduce_sum : reduce_max,
                             comm_call_name(kind));
}

/* Gathers in two steps where nodes are blocks.  The first step is between nodes: after it each node has the
 * rows of all ranks, spread over its own ranks.  The second step is within the node. */
static struct status gather(struct comm_wire *c, tensor t, const int64_t *bounds)
{
    struct wire_group *g = group_of(c, true);
    if (c->are_blocks) {
        TRY(wire_group_gather(&c->ranks, &c->column, t, bounds, c->column.first));
    }
    for (int r = 0; r < c->all.n; r += g->n) {
        TRY(wire_group_gather(&c->ranks, g, t, bounds, r));
    }
    return status_ok();
}

/* The reverse of a gathering: the first step is within nodes, where each rank adds up the parts of all ranks
 * with its place, and the second is between nodes. */
static struct status scatter(struct comm_wire *c, tensor t, const int64_t *bounds)
{
    struct wire_group *g = group_of(c, t.dtype != DTYPE_BF16);
    for (int r = 0; r < c->all.n; r += g->n) {
        TRY(wire_group_scatter(&c->ranks, g, t, bounds, r));
    }
    return g == &c->node && c->are_blocks
               ? wire_group_scatter(&c->ranks, &c->column, t, bounds, c->column.first)
               : status_ok();
}

/* Sends this rank's error to all and returns it; or returns the error of another rank, if one was heard of
 * before. */
static struct status fail_named(struct comm_wire *c, struct status mine)
{
    const struct wire_ranks *w = &c->ranks;
    return wire_watch_fail(w->watch, comm_named_by(mine, &w->numbers, w->wire.rank));
}

static struct status call(void *state, struct exec *x, const struct comm_call *mine, tensor t,
                          const int64_t *bounds)
{
    struct comm_wire *c = state;
    struct comm_call call = *mine;
    bool is_message = call.kind == CALL_SEND || call.kind == CALL_RECEIVE;
    forget_arrived(c);
    call.status = comm_call_host(mine, x);
    if (is_message && (failed(call.status) || failed(c->ranks.watch->failure))) {
        return fail_named(c, call.status);
    }
    TRY(is_message ? status_ok() : wire_ranks_meet(&c->ranks, &call));
    switch (call.only_agrees ? CALL_AGREE : call.kind) {
    case CALL_AGREE: return status_ok();
    case CALL_ALL_REDUCE_SUM:
    case CALL_ALL_REDUCE_MAX:
    case CALL_ALL_REDUCE_MAX_SIGNED: return reduce_all(c, call.kind, t);
    case CALL_ALL_GATHER: return gather(c, t, bounds);
    case CALL_REDUCE_SCATTER_SUM: return scatter(c, t, bounds);
    case CALL_BROADCAST:
        return wire_group_broadcast(&c->ranks, group_of(c, false), t.data, (int64_t)tensor_bytes(t),
                                    call.root);
    case CALL_RECEIVE: return receive(c, t, call.root);
    case CALL_SEND: break;
    }
    struct status s = send(c, t, call.root);
    return failed(s) ? fail_named(c, s) : s;
}

static int64_t sent(const void *state)
{
    return ((const struct comm_wire *)state)->ranks.sent_bytes;
}

/* Waits, at the end of the work, for messages under way: their receivers may still come. */
static void leave(void *state, struct status why)
{
    struct comm_wire *c = state;
    int64_t start = clock_ns();
    if (c->world != c) { /* without an error only the world is left */
        if (failed(why)) {
            fail_named(c, why);
        }
        return;
    }
    forget_arrived(c);
    while (c->first != NULL && !failed(why) && !wire_ranks_is_late(&c->ranks, start)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        forget_arrived(c);
    }
    wire_watch_leave(&c->watch, comm_named_by(why, &c->ranks.numbers, c->ranks.wire.rank));
}

static struct status lost(void *state)
{
    struct heartbeat *h = &((struct comm_wire *)state)->world->heartbeat;
    int r = heartbeat_silent(h);
    return r < 0 ? status_ok() : heartbeat_loss(h, r);
}

static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *part);

static const struct comm_type type = {
    .name = "MPI",
    .call = call,
    .lost = lost,
    .sent = sent,
    .leave = leave,
    .split = split,
    .close_part = comm_wire_close,
};

/* ---- begin and end ---- */

static struct status compare_builds(const struct comm_wire *c)
{
    for (int r = 1; r < c->ranks.wire.size; r++) {
        const struct hello *first = &c->hellos[0], *h = &c->hellos[r];
        FAIL_IF(strcmp(h->version, first->version) != 0 || h->call_bytes != first->call_bytes,
                STATUS_UNAVAILABLE,
                "rank %d runs kiln %s, but rank 0 runs kiln %s or another build: install the "
                "same program on all nodes",
                r, h->version, first->version);
    }
    return status_ok();
}

/* Rank 0 receives the hello of each rank, and sends all of them to all. */
static struct status greet(struct comm_wire *c)
{
    struct wire_ranks *w = &c->ranks;
    struct hello *mine = &c->hellos[w->wire.rank];
    size_t size = (size_t)w->wire.size;
    snprintf(mine->version, sizeof mine->version, "%s", KILN_VERSION);
    mine->call_bytes = sizeof(struct comm_call);
    FAIL_IF(!entropy_draw(&mine->run, sizeof mine->run) || !entropy_draw(&mine->secret, sizeof mine->secret),
            STATUS_IO, "the system gives rank %d no random bytes for its secret: %s", w->wire.rank,
            strerror(errno));
    snprintf(mine->node, sizeof mine->node, "%s", host_node().text);
    mine->heartbeat = c->heartbeat.places[w->wire.rank];
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

static void begin_heartbeat(struct comm_wire *c)
{
    for (int r = 0; r < c->ranks.wire.size; r++) {
        c->heartbeat.places[r] = c->hellos[r].heartbeat;
    }
    heartbeat_start(&c->heartbeat, &c->hellos[0].secret);
    c->watch.heartbeat = &c->heartbeat;
}

static bool is_same_node(const struct comm_wire *c, int r, int q)
{
    return strcmp(c->hellos[r].node, c->hellos[q].node) == 0;
}

/* The number of lower ranks on the node of rank r. */
static int place_on_node(const struct comm_wire *c, int r)
{
    int n = 0;
    for (int q = 0; q < r; q++) {
        n += is_same_node(c, q, r);
    }
    return n;
}

/* Ranks share memory with those of their node, or, as if a node had only so many, with the next ones. */
static void find_seats(const struct comm *comm, struct comm_wire *c)
{
    struct wire_ranks *w = &c->ranks;
    int place = place_on_node(c, comm->rank), most = c->most_sharing > 0 ? c->most_sharing : 1, n = 0;
    w->n_seats = 0;
    for (int r = 0; r < comm->size; r++) {
        bool is_here = is_same_node(c, r, comm->rank), shares = is_here && n / most == place / most;
        w->seats[r] = shares ? n % most : -1;
        w->n_seats += shares;
        n += is_here;
    }
}

static void find_place(struct comm *comm, struct comm_wire *c)
{
    comm->local_rank = place_on_node(c, comm->rank);
    comm->n_local = 0;
    for (int r = 0; r < comm->size; r++) {
        comm->n_local += is_same_node(c, r, comm->rank);
    }
    c->ranks.is_crowded = comm->n_local > sysconf(_SC_NPROCESSORS_ONLN);
    find_seats(comm, c);
}

/* Whether the memory of each node is that of n_seats neighbours, so that sums of nodes are subtrees of the
 * sum of all. */
static bool nodes_are_blocks(const struct comm_wire *c)
{
    const struct wire_ranks *w = &c->ranks;
    int n = w->n_seats, size = w->wire.size, most = c->most_sharing;
    bool are = n > 1 && n < size && (n & (n - 1)) == 0 && size % n == 0;
    for (int r = 0; r < size && are; r++) {
        int first = r / n * n;
        are = is_same_node(c, r, first) && place_on_node(c, r) % most == r % n &&
              place_on_node(c, first) / most == place_on_node(c, r) / most;
    }
    return are;
}

/* Sets *all to whether `mine` is true on all ranks. */
static struct status all_can(const struct comm *c, bool mine, bool *all)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    float lacks = mine ? 0 : 1;
    comm_all_reduce_max(c, &host, tensor_1d(&lacks, DTYPE_F32, 1));
    *all = lacks == 0;
    return host.status;
}

/* Opens the memory of each node's ranks.  Without it they use messages, which take longer. */
static struct status open_window(const struct comm *comm, struct comm_wire *c)
{
    struct wire_ranks *w = &c->ranks;
    char name[96];
    bool all_made, all_joined;
    int first = 0, seat = w->seats[comm->rank], n = w->n_seats;
    c->node = (struct wire_group){comm->rank - seat, 1, n, seat, .shares = true};
    c->column = (struct wire_group){seat, n, comm->size / n, comm->rank / n, .room = c->room};
    while (w->seats[first] != 0) {
        first++;
    }
    snprintf(name, sizeof name, "/kiln-%llx-%d-%d", (unsigned long long)c->hellos[0].run, w->number, first);
    struct status s = c->most_sharing > 0 || c->world != c /* the warning comes once, from the world */
                          ? status_ok()
                          : status_error(STATUS_UNAVAILABLE, "KILN_COMM_WINDOW is 0");
    s = failed(s) ? s : wire_group_init(&c->node);
    s = failed(s) ? s : wire_group_init(&c->column);
    if (seat == 0 && n > 1 && !failed(s)) { /* one alone on its node needs no memory with others */
        s = node_window_create(&w->window, name, n);
    }
    TRY(all_can(comm, !failed(s), &all_made));
    if (seat != 0 && all_made) {
        s = node_window_join(&w->window, name, seat, n);
    }
    TRY(all_can(comm, !failed(s), &all_joined));
    if (seat == 0) {
        node_window_remove_name(name);
    }
    if (!all_joined) {
        node_window_close(&w->window);
    }
    if (failed(s)) {
        log_warning(
            "rank %d of %d: %s; ranks of one node exchange messages instead, so their sums take longer",
            comm_number(&comm->numbers, comm->rank), comm->numbers.world, s.message);
    }
    w->is_one_node = w->window.memory != NULL && n == comm->size;
    return all_can(comm, all_joined && nodes_are_blocks(c), &c->are_blocks);
}

/* Allocates a communicator, the `number`-th part of the wire. */
static struct status allocate(struct comm_wire *c, const struct comm *comm, const struct wire *wire,
                              int number, int64_t deadline_ns)
{
    c->room = malloc(WIRE_GROUP_PIECE_BYTES);
    c->hellos = calloc((size_t)comm->size, sizeof *c->hellos);
    c->all = (struct wire_group){0, 1, comm->size, comm->rank, .room = c->room};
    struct status s = wire_ranks_init(&c->ranks, wire, &c->world->watch, comm, number, deadline_ns);
    struct status t = wire_group_init(&c->all);
    s = failed(s) ? s : t;
    return failed(s) || (c->room != NULL && c->hellos != NULL)
               ? s
               : status_error(STATUS_MEMORY, "out of memory for what ranks exchange");
}

static struct status open_world(struct comm *comm, struct comm_wire *c, const struct wire *wire,
                                const struct comm_wire_options *options)
{
    int64_t deadline_ns = (int64_t)(1e9 * options->deadline_s);
    struct status s = wire_watch_init(&c->watch, wire);
    struct status t = allocate(c, comm, wire, 0, (int64_t)(1e9 * fmax(options->deadline_s, OPENING_S)));
    s = failed(s) ? s : t;
    t = heartbeat_open(&c->heartbeat, wire->rank, wire->size, options->silence_s);
    s = failed(s) ? s : t;
    TRY(failed(s) ? s : greet(c));
    begin_heartbeat(c);
    find_place(comm, c);
    TRY(open_window(comm, c));
    c->watch.window = c->ranks.window.memory == NULL ? NULL : &c->ranks.window;
    c->watch.seats = c->ranks.seats;
    c->ranks.deadline_ns = deadline_ns;
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
    *comm = (struct comm){
        .type = &type, .rank = wire->rank, .size = wire->size, .numbers = {0, 1, wire->size}, .state = c};
    c->world = c;
    c->n_numbers = 1;
    c->most_sharing = options->most_sharing;
    struct status s = open_world(comm, c, wire, options);
    if (failed(s)) {
        c->ranks.deadline_ns = (int64_t)(1e9 * options->deadline_s);
        leave(c, s);
        comm_wire_close(comm);
        return s;
    }
    return status_ok();
}

int comm_wire_heard(const struct comm *c)
{
    return atomic_load(&((struct comm_wire *)c->state)->heartbeat.n_heard);
}

/* ---- parts ---- */

/* Chooses the lowest number that no rank of `whole` has used for a part. */
static struct status choose_number(const struct comm *whole, int *number)
{
    struct comm_wire *world = ((struct comm_wire *)whole->state)->world;
    struct exec x = {.device = &device_cpu, .layer_index = -1};
    float next = (float)world->n_numbers;
    comm_all_reduce_max(whole, &x, tensor_1d(&next, DTYPE_F32, 1));
    TRY(x.status);
    *number = (int)next;
    world->n_numbers = *number + 1;
    return *number < WIRE_RANKS_PARTS
               ? status_ok()
               : status_error(STATUS_INTERNAL, "ranks cannot be split more than %d times",
                              WIRE_RANKS_PARTS - 1);
}

/* Creates a part, whose window is not open yet. */
static struct status create_part(const struct comm *whole, const struct comm_group *g, int number,
                                 struct comm *part)
{
    const struct comm_wire *of = whole->state;
    struct comm_wire *c = calloc(1, sizeof *c);
    FAIL_IF(c == NULL, STATUS_MEMORY, "out of memory for %d ranks", g->n);
    *part = *whole;
    part->rank = (whole->rank - g->first) / g->stride;
    part->size = g->n;
    part->numbers = comm_numbers_of(whole, g);
    part->state = c;
    c->world = of->world;
    c->most_sharing = of->most_sharing;
    TRY(allocate(c, part, &c->world->watch.wire, number, of->ranks.deadline_ns));
    c->ranks.is_crowded = of->ranks.is_crowded;
    for (int r = 0; r < g->n; r++) {
        c->hellos[r] = of->hellos[g->first + r * g->stride];
    }
    find_seats(part, c);
    return status_ok();
}

/* Compares the groups that ranks gave, byte by byte. */
static struct status compare_groups(const struct comm *whole, const struct comm_group *all,
                                    const struct comm_group *g)
{
    for (int r = 0; r < whole->size; r++) {
        FAIL_IF(comm_group_has(g, r) && memcmp(&all[r], g, sizeof *g) != 0, STATUS_INTERNAL,
                "rank %d splits off %d ranks from %d on, but rank %d %d ranks from %d on",
                comm_number(&whole->numbers, whole->rank), g->n, g->first, comm_number(&whole->numbers, r),
                all[r].n, all[r].first);
    }
    return status_ok();
}

/* STATUS_INTERNAL on all ranks unless all that are in a group say the same of it. */
static struct status check_groups(const struct comm *whole, const struct comm_group *g)
{
    struct comm_group *all = calloc((size_t)whole->size, sizeof *all);
    struct status s = comm_agree(
        whole,
        all != NULL ? status_ok() : status_error(STATUS_MEMORY, "out of memory for %d ranks", whole->size));
    if (!failed(s) && all != NULL) {
        all[whole->rank] = *g;
        s = comm_share_rows(whole, all, sizeof *all);
        s = failed(s) ? s : comm_agree(whole, compare_groups(whole, all, g));
    }
    free(all);
    return s;
}

/* All ranks of `whole` agree before the ranks of the part first meet. */
static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *part)
{
    struct comm_wire *of = whole->state;
    int number = 0;
    TRY(check_groups(whole, g));
    of->world->watch.has_parts = true;
    struct status s = choose_number(whole, &number);
    if (!failed(s) && g->n > 1) {
        s = create_part(whole, g, number, part);
    }
    s = comm_agree(whole, s);
    if (!failed(s) && g->n == 1) {
        *part = comm_alone(whole);
    } else if (!failed(s)) {
        s = open_window(part, part->state);
    }
    if (failed(s)) {
        comm_part_close(part);
    }
    return s;
}

/* ---- the end ---- */

static void close_world(struct comm_wire *c)
{
    wire_watch_fini(&c->watch); /* may wait for the others, and still beats */
    heartbeat_close(&c->heartbeat);
    while (c->first != NULL) {
        struct outgoing *m = c->first;
        c->first = m->next;
        free(m);
    }
}

void comm_wire_close(struct comm *comm)
{
    struct comm_wire *c = comm->state;
    if (c->world == c) {
        close_world(c);
    }
    wire_ranks_fini(&c->ranks);
    wire_group_fini(&c->all);
    wire_group_fini(&c->node);
    wire_group_fini(&c->column);
    free(c->room);
    free(c->hellos);
    free(c);
}
