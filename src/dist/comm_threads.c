/* A collective is a meeting: each rank posts its call; the last to arrive checks whether the calls match and
 * whether a rank has failed, and wakes the others.  Data moves between two meetings: after the first all
 * tensors are there, and until the second nobody frees or changes its own.  The second needs no deadline: a
 * rank on its way there waits for nobody. */
#include "dist/comm_threads.h"

#include "core/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum call { CALL_AGREE, CALL_ALL_REDUCE_SUM, CALL_ALL_REDUCE_MAX, CALL_ALL_GATHER, CALL_BROADCAST };

static const char *const call_names[] = {"an agreement", "a sum", "a maximum", "a gathering", "a broadcast"};

/* The call that a rank has posted. */
struct posted {
    bool is_here;
    enum call call;
    struct status status;
    tensor t;
    int root;
    const int64_t *bounds; /* [size + 1] of a gathering */
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
};

struct comm_threads {
    int size;
    int64_t deadline_ns;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct status failure;  /* the first failure of any rank; it stays */
    int64_t round;          /* meetings that have ended */
    int n_here;             /* ranks that have arrived and wait for the rest */
    struct posted *posted;  /* [size] */
    bool *left;             /* [size] */
    struct queue *queues;   /* [size, size] from, to */
    struct rank_state *own; /* [size] */
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

static bool same_bounds(const struct comm_threads *a, const struct posted *p, const struct posted *q)
{
    return p->bounds == NULL || q->bounds == NULL ||
           memcmp(p->bounds, q->bounds, ((size_t)a->size + 1) * sizeof *p->bounds) == 0;
}

/* Whether rank r calls what rank 0 does. */
static struct status compare_calls(const struct comm_threads *a, int r)
{
    const struct posted *p = &a->posted[r], *first = &a->posted[0];
    if (p->call != first->call || p->root != first->root || p->t.dtype != first->t.dtype ||
        tensor_count(p->t) != tensor_count(first->t)) {
        return status_error(STATUS_INTERNAL, "rank %d is in %s of %lld elements, rank 0 in %s of %lld", r,
                            call_names[p->call], (long long)tensor_count(p->t), call_names[first->call],
                            (long long)tensor_count(first->t));
    }
    return same_bounds(a, p, first)
               ? status_ok()
               : status_error(STATUS_INTERNAL, "rank %d gathers other parts than rank 0", r);
}

/* Once all are here: checks the calls against each other. */
static void judge(struct comm_threads *a)
{
    struct status worst = status_ok();
    for (int r = 0; r < a->size; r++) {
        worst = comm_worse(worst, comm_named(a->posted[r].status, r, a->size));
    }
    for (int r = 1; r < a->size; r++) {
        worst = comm_worse(worst, compare_calls(a, r));
    }
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
static struct status meet(struct comm_threads *a, int rank, struct posted p)
{
    struct timespec end = time_after(a->deadline_ns);
    pthread_mutex_lock(&a->mutex);
    judge_left(a);
    if (!failed(a->failure)) {
        int64_t round = a->round;
        a->posted[rank] = p;
        if (a->n_here == a->size - 1) {
            judge(a);
        }
        bool over = come(a, rank);
        while (!over && a->round == round && !failed(a->failure)) {
            if (pthread_cond_timedwait(&a->changed, &a->mutex, &end) != 0 && a->round == round) {
                char missing[128];
                put_missing(a, missing, sizeof missing);
                fail(a, status_error(STATUS_INTERNAL, "rank %d of %d waited %.1f s in %s for ranks: %s", rank,
                                     a->size, (double)a->deadline_ns * 1e-9, call_names[p.call], missing));
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

static struct status of_host(const struct exec *x)
{
    return x->device->is_host
               ? status_ok()
               : status_error(STATUS_USAGE, "ranks that are threads exchange host memory, not that of %s",
                              x->device->name);
}

/* ---- collectives ---- */

static struct status agree(void *state, struct status mine)
{
    const struct rank_state *r = state;
    return meet(r->all, r->rank, (struct posted){.call = CALL_AGREE, .status = mine});
}

enum { ELEMENTS_AT_ONCE = 1024 };

static void add_f64(double *sum, tensor t, int64_t first, int64_t n)
{
    const double *in = (const double *)t.data + first;
    for (int64_t i = 0; i < n; i++) {
        sum[i] += in[i];
    }
}

static void add_f32(float *sum, tensor t, int64_t first, int64_t n)
{
    const float *in = (const float *)t.data + first;
    for (int64_t i = 0; i < n; i++) {
        sum[i] += in[i];
    }
}

static void add_bf16(float *sum, tensor t, int64_t first, int64_t n)
{
    const uint16_t *in = (const uint16_t *)t.data + first;
    for (int64_t i = 0; i < n; i++) {
        sum[i] += bf16_to_f32(in[i]);
    }
}

/* Elements [first, first + n) of all ranks' tensors become their sum in the order of ranks.  The sum starts
 * with -0, so that a sum of -0 stays -0. */
static void sum_piece(const struct comm_threads *a, int64_t first, int64_t n)
{
    float sum[ELEMENTS_AT_ONCE];
    double sum_f64[ELEMENTS_AT_ONCE];
    uint16_t rounded[ELEMENTS_AT_ONCE];
    enum dtype dtype = a->posted[0].t.dtype;
    const void *result = dtype == DTYPE_F64   ? (const void *)sum_f64
                         : dtype == DTYPE_F32 ? (const void *)sum
                                              : rounded;
    for (int64_t i = 0; i < n; i++) {
        sum[i] = -0.0f; /* -0 + z = z, whatever z is */
        sum_f64[i] = -0.0;
    }
    for (int r = 0; r < a->size; r++) {
        tensor t = a->posted[r].t;
        if (dtype == DTYPE_F64) {
            add_f64(sum_f64, t, first, n);
        } else if (dtype == DTYPE_F32) {
            add_f32(sum, t, first, n);
        } else {
            add_bf16(sum, t, first, n);
        }
    }
    for (int64_t i = 0; i < n && dtype == DTYPE_BF16; i++) {
        rounded[i] = bf16_from_f32(sum[i]);
    }
    size_t bytes = dtype_bytes(dtype);
    for (int r = 0; r < a->size; r++) {
        memcpy((char *)a->posted[r].t.data + (size_t)first * bytes, result, (size_t)n * bytes);
    }
}

/* Elements [first, first + n) of all ranks' tensors become the largest of theirs. */
static void max_piece(const struct comm_threads *a, int64_t first, int64_t n)
{
    float *largest = (float *)a->posted[0].t.data + first;
    for (int r = 1; r < a->size; r++) {
        const float *in = (const float *)a->posted[r].t.data + first;
        for (int64_t i = 0; i < n; i++) {
            largest[i] = isnan(largest[i]) || largest[i] >= in[i] ? largest[i] : in[i];
        }
    }
    for (int r = 1; r < a->size; r++) {
        memcpy((float *)a->posted[r].t.data + first, largest, (size_t)n * sizeof *largest);
    }
}

/* Each rank computes a part of the elements, for all ranks. */
static void reduce_share(const struct rank_state *r, int64_t elements,
                         void (*piece)(const struct comm_threads *a, int64_t first, int64_t n))
{
    int64_t size = r->all->size, end = elements * (r->rank + 1) / size;
    for (int64_t i = elements * r->rank / size; i < end; i += ELEMENTS_AT_ONCE) {
        piece(r->all, i, end - i < ELEMENTS_AT_ONCE ? end - i : ELEMENTS_AT_ONCE);
    }
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    struct status s = of_host(x);
    if (!failed(s) && t.dtype != DTYPE_F32 && t.dtype != DTYPE_F64 && t.dtype != DTYPE_BF16) {
        s = status_error(STATUS_USAGE, "a sum over ranks is of fp32, fp64 or bf16, not %s",
                         dtype_name(t.dtype));
    }
    TRY(meet(a, r->rank, (struct posted){.call = CALL_ALL_REDUCE_SUM, .status = s, .t = t}));
    reduce_share(r, tensor_count(t), sum_piece);
    part(a, r->rank);
    return status_ok();
}

static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    const struct rank_state *r = state;
    struct status s = of_host(x);
    if (!failed(s) && t.dtype != DTYPE_F32) {
        s = status_error(STATUS_USAGE, "a maximum over ranks is of fp32, not %s", dtype_name(t.dtype));
    }
    TRY(meet(r->all, r->rank, (struct posted){.call = CALL_ALL_REDUCE_MAX, .status = s, .t = t}));
    reduce_share(r, tensor_count(t), max_piece);
    part(r->all, r->rank);
    return status_ok();
}

/* A rank writes where the others' parts are, and they read its own. */
static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    const struct rank_state *r = state;
    struct comm_threads *a = r->all;
    TRY(meet(a, r->rank,
             (struct posted){.call = CALL_ALL_GATHER, .status = of_host(x), .t = t, .bounds = bounds}));
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
    TRY(meet(a, r->rank,
             (struct posted){.call = CALL_BROADCAST, .status = of_host(x), .t = t, .root = root}));
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
    mine = failed(mine) ? mine : of_host(x);
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
            fail(a, status_error(STATUS_INTERNAL, "rank %d of %d waited %.1f s for a message of rank %d",
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
    mine = failed(mine) ? mine : of_host(x);
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
                                   .left = calloc(n, sizeof *a->left),
                                   .queues = calloc(n * n, sizeof *a->queues),
                                   .own = calloc(n, sizeof *a->own)};
        open_lock(a);
    }
    if (a == NULL || a->posted == NULL || a->left == NULL || a->queues == NULL || a->own == NULL) {
        comm_threads_destroy(a);
        *threads = NULL;
        return status_error(STATUS_MEMORY, "out of memory for %d ranks", size);
    }
    for (int r = 0; r < size; r++) {
        a->own[r] = (struct rank_state){a, r};
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
