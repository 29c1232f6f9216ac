/* A collective is a meeting: each rank posts its call; the last to arrive checks whether the calls match and
 * whether a rank has failed, and wakes the others.  Data moves between two meetings: after the first all
 * tensors are there, and until the second nobody frees or changes its own.  The second needs no deadline: a
 * rank on its way there waits for nobody. */
#include "dist/comm_threads.h"

#include "core/clock.h"
#include "dist/comm_call.h"
#include "dist/reduce.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The call that a rank has posted. */
struct posted {
    bool is_here;
    struct comm_call call;
    tensor t;
};

struct message {
    struct message *next;
    size_t bytes;
    char data[];
};

struct queue {
    struct message *first, **end;
};

struct rank_state {
    struct comm_threads *all;
    int rank;
    const void **from; /* [size] the tensors of all ranks, of a sum or maximum */
};

struct comm_threads {
    int size;
    int64_t deadline_ns;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct status failure;   /* the first failure of any rank; it stays */
    int64_t round;           /* meetings that have ended */
    int n_here;              /* ranks that have arrived and wait for the rest */
    struct posted *posted;   /* [size] */
    struct comm_call *calls; /* [size] those that are judged */
    bool *left;              /* [size] */
    struct queue *queues;    /* [size, size] from, to */
    const void **from;       /* [size, size] */
    struct rank_state *own;  /* [size] */
};

/* ---- meetings: the mutex is held ---- */

static void fail(struct comm_threads *a, struct status s)
{
    if (!failed(a->failure)) {
        a->failure = s;
    }
    pthread_cond_broadcast(&a->changed);
}

/* "1, 3" */
static void put_missing(const struct comm_threads *a, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int r = 0; r < a->size && used < bytes; r++) {
        if (!a->posted[r].is_here) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%d", used > 0 ? ", " : "", r);
        }
    }
}

static void judge_left(struct comm_threads *a)
{
    for (int r = 0; r < a->size; r++) {
        if (a->left[r]) {
            fail(a,
                 status_error(STATUS_INTERNAL, "rank %d of %d has left, and others wait for it", r, a->size));
        }
    }
}

/* Once all are here: checks the calls against each other. */
static void judge(struct comm_threads *a)
{
    for (int r = 0; r < a->size; r++) {
        a->calls[r] = a->posted[r].call;
    }
    struct status worst = comm_call_judge(a->calls, a->size);
    if (failed(worst)) {
        fail(a, worst);
    }
}

/* Arrives; the last to arrive ends the meeting. */
static bool come(struct comm_threads *a, int rank)
{
    a->posted[rank].is_here = true;
    if (++a->n_here < a->size) {
        return false;
    }
    a->n_here = 0;
    for (int r = 0; r < a->size; r++) {
        a->posted[r].is_here = false;
    }
    a->round++;
    pthread_cond_broadcast(&a->changed);
    return true;
}

static struct timespec time_after(int64_t ns)
{
    int64_t end = clock_ns() + ns;
    return (struct timespec){.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
}

/* Posts a call, and waits until all ranks have, or one never will. */
static struct status meet(const struct rank_state *me, struct comm_call call, tensor t)
{
    struct comm_threads *a = me->all;
    int rank = me->rank;
    struct timespec end = time_after(a->deadline_ns);
    pthread_mutex_lock(&a->mutex);
    judge_left(a);
    if (!failed(a->failure)) {
        int64_t round = a->round;
        a->posted[rank] = (struct posted){.call = call, .t = t};
        if (a->n_here == a->size - 1) {
            judge(a);
        }
        bool over = come(a, rank);
        while (!over && a->round == round && !failed(a->failure)) {
            if (pthread_cond_timedwait(&a->changed, &a->mutex, &end) != 0 && a->round == round) {
                char missing[128];
                put_missing(a, missing, sizeof missing);
                fail(a, status_error(STATUS_INTERNAL, "rank %d of %d waited %.1f s in %s for ranks: %s", rank,
                                     a->size, (double)a->deadline_ns * 1e-9, comm_call_name(call.kind),
                                     missing));
            }
        }
    }
    struct status s = a->failure;
    pthread_mutex_unlock(&a->mutex);
    return s;
}

/* Waits until all have moved their data. */
static void part(struct comm_threads *a, int rank)
{
    pthread_mutex_lock(&a->mutex);
    int64_t round = a->round;
    come(a, rank);
    while (a->round == round) {
        pthread_cond_wait(&a->changed, &a->mutex);
    }
    pthread_mutex_unlock(&a->mutex);
}

/* ---- collectives ---- */

static struct status agree(void *state, struct status mine)
{
    return meet(state, (struct comm_call){.kind = CALL_AGREE, .status = mine}, NULL_TENSOR);
}

enum { ELEMENTS_AT_ONCE = 1024 };

/* Each rank computes a part of the elements, for all ranks. */
static void reduce_share(const struct rank_state *me, int64_t elements, enum dtype dtype, reduction *reduce)
{
    const struct comm_threads *a = me->all;
    double piece[ELEMENTS_AT_ONCE];
    int64_t end = elements * (me->rank + 1) / a->size;
    size_t bytes = dtype_bytes(dtype);
    for (int r = 0; r < a->size; r++) {
        me->from[r] = a->posted[r].t.data;
    }
    for (int64_t i = elements * me->rank / a->size; i < end; i += ELEMENTS_AT_ONCE) {
        int64_t n = end - i < ELEMENTS_AT_ONCE ? end - i : ELEMENTS_AT_ONCE;
        reduce(piece, me->from, a->size, i, n, dtype);
        for (int r = 0; r < a->size; r++) {
            memcpy((char *)a->posted[r].t.data + (size_t)i * bytes, piece, (size_t)n * bytes);
        }
    }
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    const struct rank_state *r = state;
    TRY(meet(r, comm_call_of(CALL_ALL_REDUCE_SUM, x, t), t));
    reduce_share(r, tensor_count(t), t.dtype, reduce_sum);
    part(r->all, r->rank);
    return status_ok();
}

static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    const struct rank_state *r = state;
    TRY(meet(r, comm_call_of(CALL_ALL_REDUCE_MAX, x, t), t));
    reduce_share(r, tensor_count(t), t.dtype, reduce_max);
    part(r->all, r->rank);
    return status_ok();
}

/* A rank alone reads and writes its part, of all ranks' tensors. */
static struct status reduce_scatter_sum(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    TRY(meet(r, comm_call_scatter(x, t, bounds, a->size), t));
    int64_t first = bounds[r->rank], n = bounds[r->rank + 1] - first;
    for (int i = 0; i < a->size; i++) {
        r->from[i] = a->posted[i].t.data;
    }
    reduce_sum(tensor_slice(t, first, n).data, r->from, a->size, first, n, t.dtype);
    part(a, r->rank);
    return status_ok();
}

/* A rank writes where the others' parts are, and they read its own. */
static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    TRY(meet(r, comm_call_gather(x, t, bounds, a->size), t));
    for (int from = 0; from < a->size; from++) {
        tensor theirs = tensor_slice(a->posted[from].t, bounds[from], bounds[from + 1] - bounds[from]);
        if (from != r->rank) {
            memcpy(tensor_slice(t, bounds[from], theirs.dims[0]).data, theirs.data, tensor_bytes(theirs));
        }
    }
    part(a, r->rank);
    return status_ok();
}

static struct status broadcast(void *state, struct exec *x, tensor t, int root)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    TRY(meet(r, comm_call_broadcast(x, t, root), t));
    if (r->rank != root) {
        memcpy(t.data, a->posted[root].t.data, tensor_bytes(t));
    }
    part(a, r->rank);
    return status_ok();
}

/* ---- between two ranks ---- */

static void append(struct queue *q, struct message *m)
{
    m->next = NULL;
    *(q->first == NULL ? &q->first : q->end) = m;
    q->end = &m->next;
}

/* A copy of t; NULL if it cannot be made, and then *mine gets the error unless it has one. */
static struct message *message_of(tensor t, struct status *mine)
{
    size_t bytes = tensor_bytes(t);
    struct message *m = failed(*mine) ? NULL : malloc(sizeof *m + bytes);
    if (m != NULL) {
        *m = (struct message){.bytes = bytes};
        memcpy(m->data, t.data, bytes);
    } else if (!failed(*mine)) {
        *mine = status_error(STATUS_MEMORY, "out of memory for a message of %zu bytes", bytes);
    }
    return m;
}

static struct status send(void *state, struct exec *x, struct status mine, tensor t, int to)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    mine = failed(mine) ? mine : comm_call_host(x);
    struct message *m = message_of(t, &mine);
    pthread_mutex_lock(&a->mutex);
    if (m == NULL) {
        fail(a, comm_named(mine, r->rank, a->size));
    }
    struct status s = a->failure;
    if (m != NULL && !failed(s)) {
        append(&a->queues[r->rank * a->size + to], m);
        m = NULL;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->mutex);
    free(m);
    return s;
}

/* The next message, or NULL and a failure; the mutex is held. */
static struct message *await(struct comm_threads *a, int rank, int from)
{
    struct timespec end = time_after(a->deadline_ns);
    struct queue *q = &a->queues[from * a->size + rank];
    while (q->first == NULL && !failed(a->failure)) {
        if (a->left[from]) {
            judge_left(a);
        } else if (pthread_cond_timedwait(&a->changed, &a->mutex, &end) != 0 && q->first == NULL) {
            fail(a, status_error(STATUS_INTERNAL, "rank %d of %d waited %.1f s for a message from rank %d",
                                 rank, a->size, (double)a->deadline_ns * 1e-9, from));
        }
    }
    struct message *m = failed(a->failure) ? NULL : q->first;
    if (m != NULL) {
        q->first = m->next;
    }
    return m;
}

static struct status receive(void *state, struct exec *x, struct status mine, tensor t, int from)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    mine = failed(mine) ? mine : comm_call_host(x);
    pthread_mutex_lock(&a->mutex);
    if (failed(mine)) {
        fail(a, comm_named(mine, r->rank, a->size));
    }
    struct message *m = await(a, r->rank, from);
    if (m != NULL && m->bytes != tensor_bytes(t)) {
        fail(a, status_error(STATUS_INTERNAL, "rank %d receives %zu bytes from rank %d, which sent %zu",
                             r->rank, tensor_bytes(t), from, m->bytes));
    }
    struct status s = a->failure;
    pthread_mutex_unlock(&a->mutex);
    if (m != NULL && !failed(s)) {
        memcpy(t.data, m->data, m->bytes);
    }
    free(m);
    return s;
}

static void leave(void *state, struct status why)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    pthread_mutex_lock(&a->mutex);
    a->left[r->rank] = true;
    if (failed(why)) {
        fail(a, comm_named(why, r->rank, a->size));
    } else if (a->n_here > 0) {
        judge_left(a);
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static const struct comm_type type = {
    .name = "threads",
    .agree = agree,
    .all_reduce_sum = all_reduce_sum,
    .all_reduce_max = all_reduce_max,
    .all_gather = all_gather,
    .reduce_scatter_sum = reduce_scatter_sum,
    .broadcast = broadcast,
    .send = send,
    .receive = receive,
    .leave = leave,
};

/* ---- all ranks ---- */

/* Deadlines are of the monotonic clock. */
static void open_lock(struct comm_threads *a)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct status comm_threads_create(struct comm_threads **threads, int size, double deadline_s)
{
    CHECK(size > 0, "%d ranks", size);
    size_t n = (size_t)size;
    struct comm_threads *a = calloc(1, sizeof *a);
    *threads = a;
    if (a != NULL) {
        *a = (struct comm_threads){.size = size,
                                   .deadline_ns = (int64_t)(deadline_s * 1e9),
                                   .posted = calloc(n, sizeof *a->posted),
                                   .calls = calloc(n, sizeof *a->calls),
                                   .from = calloc(n * n, sizeof *a->from),
                                   .left = calloc(n, sizeof *a->left),
                                   .queues = calloc(n * n, sizeof *a->queues),
                                   .own = calloc(n, sizeof *a->own)};
        open_lock(a);
    }
    if (a == NULL || a->posted == NULL || a->calls == NULL || a->from == NULL || a->left == NULL ||
        a->queues == NULL || a->own == NULL) {
        comm_threads_destroy(a);
        *threads = NULL;
        return status_error(STATUS_MEMORY, "out of memory for %d ranks", size);
    }
    for (int r = 0; r < size; r++) {
        a->own[r] = (struct rank_state){a, r, a->from + r * size};
    }
    return status_ok();
}

static void free_messages(struct queue *q)
{
    while (q->first != NULL) {
        struct message *m = q->first;
        q->first = m->next;
        free(m);
    }
}

void comm_threads_destroy(struct comm_threads *threads)
{
    if (threads == NULL) {
        return;
    }
    for (int i = 0; threads->queues != NULL && i < threads->size * threads->size; i++) {
        free_messages(&threads->queues[i]);
    }
    pthread_cond_destroy(&threads->changed);
    pthread_mutex_destroy(&threads->mutex);
    free(threads->posted);
    free(threads->calls);
    free(threads->from);
    free(threads->left);
    free(threads->queues);
    free(threads->own);
    free(threads);
}

struct comm comm_threads_rank(struct comm_threads *threads, int rank)
{
    CHECK(rank >= 0 && rank < threads->size, "rank %d of %d", rank, threads->size);
    return (struct comm){.type = &type,
                         .rank = rank,
                         .size = threads->size,
                         .local_rank = rank,
                         .n_local = threads->size,
                         .state = &threads->own[rank]};
}
