/* A collective is a meeting: each rank posts its call; the last to arrive checks whether the calls match and
 * whether a rank has failed, and wakes the others.  Data moves between two meetings: after the first all
 * tensors are there, and until the second nobody frees or changes its own.  The second needs no deadline: a
 * rank on its way there waits for nobody.
 *
 * All ranks and each part of them are a `team`, which meets alone; the lock, the first failure and who has
 * left are of the world. */
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
    struct team *team;
    int rank;
    const void **from; /* [size] the tensors of all ranks, of a sum or maximum */
    int64_t sent_bytes;
};

struct team {
    struct comm_threads *all;
    struct comm_numbers numbers;
    int size;
    int n_open;              /* ranks that have not closed it */
    int64_t round;           /* meetings that have ended */
    struct status verdict;   /* of the last: another team's failure since then does not count */
    int n_here;              /* ranks that have arrived and wait for the rest */
    struct posted *posted;   /* [size] */
    struct comm_call *calls; /* [size] those that are judged */
    struct queue *queues;    /* [size, size] from, to */
    const void **from;       /* [size, size] */
    struct rank_state *own;  /* [size] */
};

struct comm_threads {
    int size;
    int64_t deadline_ns;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct status failure; /* the first failure of any rank; it stays */
    bool has_parts;        /* a failure is told at once, since not all meet in a call */
    bool *left;            /* [size] */
    struct team *world;
};

/* ---- meetings: the mutex is held ---- */

static void fail(struct comm_threads *a, struct status s)
{
    if (!failed(a->failure)) {
        a->failure = s;
    }
    pthread_cond_broadcast(&a->changed);
}

static int number_of(const struct team *t, int rank)
{
    return comm_number(&t->numbers, rank);
}

static void fail_named(const struct team *t, int rank, struct status s)
{
    fail(t->all, comm_named_by(s, &t->numbers, rank));
}

/* "1, 3" */
static void put_missing(const struct team *t, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int r = 0; r < t->size && used < bytes; r++) {
        if (!t->posted[r].is_here) {
            used +=
                (size_t)snprintf(text + used, bytes - used, "%s%d", used > 0 ? ", " : "", number_of(t, r));
        }
    }
}

static void judge_left(const struct team *t)
{
    for (int r = 0; r < t->size; r++) {
        if (t->all->left[number_of(t, r)]) {
            fail(t->all, status_error(STATUS_INTERNAL, "rank %d of %d has left, and others wait for it",
                                      number_of(t, r), t->all->size));
        }
    }
}

/* Once all are here: checks the calls against each other. */
static void judge(struct team *t)
{
    for (int r = 0; r < t->size; r++) {
        t->calls[r] = t->posted[r].call;
    }
    struct status worst = comm_call_judge(t->calls, t->size, &t->numbers);
    if (failed(worst)) {
        fail(t->all, worst);
    }
}

/* Arrives; the last to arrive ends the meeting. */
static bool come(struct team *t, int rank)
{
    t->posted[rank].is_here = true;
    if (++t->n_here < t->size) {
        return false;
    }
    t->n_here = 0;
    for (int r = 0; r < t->size; r++) {
        t->posted[r].is_here = false;
    }
    t->round++;
    pthread_cond_broadcast(&t->all->changed);
    return true;
}

static struct timespec time_after(int64_t ns)
{
    int64_t end = clock_ns() + ns;
    return (struct timespec){.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};
}

/* Posts a call, and waits until all ranks have, or one never will. */
static struct status meet(const struct rank_state *me, struct comm_call call, tensor data)
{
    struct team *t = me->team;
    struct comm_threads *a = t->all;
    int rank = me->rank;
    struct timespec end = time_after(a->deadline_ns);
    pthread_mutex_lock(&a->mutex);
    judge_left(t);
    if (failed(call.status) && a->has_parts) {
        fail_named(t, rank, call.status);
    }
    int64_t round = t->round;
    if (!failed(a->failure)) {
        t->posted[rank] = (struct posted){.call = call, .t = data};
        if (t->n_here == t->size - 1) {
            judge(t);
            t->verdict = a->failure;
        }
        bool over = come(t, rank);
        while (!over && t->round == round && !failed(a->failure)) {
            int waited = pthread_cond_timedwait(&a->changed, &a->mutex, &end);
            if (t->round == round) {
                judge_left(t);
            }
            if (waited != 0 && t->round == round) {
                char missing[128];
                put_missing(t, missing, sizeof missing);
                fail(a, status_error(STATUS_INTERNAL, "rank %d of %d waited %.1f s in %s for ranks: %s",
                                     number_of(t, rank), a->size, (double)a->deadline_ns * 1e-9,
                                     comm_call_name(call.kind), missing));
            }
        }
    }
    struct status s = t->round == round ? a->failure : t->verdict;
    pthread_mutex_unlock(&a->mutex);
    return s;
}

/* Waits until all have moved their data. */
static void part(struct team *t, int rank)
{
    struct comm_threads *a = t->all;
    pthread_mutex_lock(&a->mutex);
    int64_t round = t->round;
    come(t, rank);
    while (t->round == round) {
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

/* Each rank computes a part of the elements, for all ranks: it reads those of the others, who read its own of
 * their parts. */
static void reduce_share(struct rank_state *me, int64_t elements, enum dtype dtype, reduction *reduce)
{
    const struct team *team = me->team;
    double piece[ELEMENTS_AT_ONCE];
    int64_t first = elements * me->rank / team->size, end = elements * (me->rank + 1) / team->size;
    size_t bytes = dtype_bytes(dtype);
    me->sent_bytes += (elements - (end - first) + (end - first) * (int64_t)(team->size - 1)) * (int64_t)bytes;
    for (int r = 0; r < team->size; r++) {
        me->from[r] = team->posted[r].t.data;
    }
    for (int64_t i = first; i < end; i += ELEMENTS_AT_ONCE) {
        int64_t n = end - i < ELEMENTS_AT_ONCE ? end - i : ELEMENTS_AT_ONCE;
        reduce(piece, me->from, team->size, i, n, dtype);
        for (int r = 0; r < team->size; r++) {
            memcpy((char *)team->posted[r].t.data + (size_t)i * bytes, piece, (size_t)n * bytes);
        }
    }
}

static struct status all_reduce_sum(void *state, struct exec *x, tensor t)
{
    struct rank_state *r = state;
    TRY(meet(r, comm_call_of(CALL_ALL_REDUCE_SUM, x, t), t));
    reduce_share(r, tensor_count(t), t.dtype, reduce_sum);
    part(r->team, r->rank);
    return status_ok();
}

static struct status all_reduce_max(void *state, struct exec *x, tensor t)
{
    struct rank_state *r = state;
    TRY(meet(r, comm_call_of(CALL_ALL_REDUCE_MAX, x, t), t));
    reduce_share(r, tensor_count(t), t.dtype, reduce_max);
    part(r->team, r->rank);
    return status_ok();
}

/* A rank alone reads and writes its part, of all ranks' tensors. */
static struct status reduce_scatter_sum(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    struct rank_state *r = state;
    struct team *team = r->team;
    TRY(meet(r, comm_call_scatter(x, t, bounds, team->size), t));
    int64_t first = bounds[r->rank], n = bounds[r->rank + 1] - first;
    r->sent_bytes += (tensor_count(t) - n) * (int64_t)dtype_bytes(t.dtype);
    for (int i = 0; i < team->size; i++) {
        r->from[i] = team->posted[i].t.data;
    }
    reduce_sum(tensor_slice(t, first, n).data, r->from, team->size, first, n, t.dtype);
    part(team, r->rank);
    return status_ok();
}

/* A rank writes where the others' parts are, and they read its own. */
static struct status all_gather(void *state, struct exec *x, tensor t, const int64_t *bounds)
{
    struct rank_state *r = state;
    struct team *team = r->team;
    TRY(meet(r, comm_call_gather(x, t, bounds, team->size), t));
    tensor mine = tensor_slice(t, bounds[r->rank], bounds[r->rank + 1] - bounds[r->rank]);
    r->sent_bytes += (int64_t)tensor_bytes(mine) * (team->size - 1);
    for (int from = 0; from < team->size; from++) {
        tensor theirs = tensor_slice(team->posted[from].t, bounds[from], bounds[from + 1] - bounds[from]);
        if (from != r->rank) {
            memcpy(tensor_slice(t, bounds[from], theirs.dims[0]).data, theirs.data, tensor_bytes(theirs));
        }
    }
    part(team, r->rank);
    return status_ok();
}

static struct status broadcast(void *state, struct exec *x, tensor t, int root)
{
    struct rank_state *r = state;
    struct team *team = r->team;
    TRY(meet(r, comm_call_broadcast(x, t, root), t));
    if (r->rank != root) {
        memcpy(t.data, team->posted[root].t.data, tensor_bytes(t));
    } else {
        r->sent_bytes += (int64_t)tensor_bytes(t) * (team->size - 1);
    }
    part(team, r->rank);
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
    struct rank_state *r = state;
    struct team *team = r->team;
    struct comm_threads *a = team->all;
    mine = failed(mine) ? mine : comm_call_host(x);
    struct message *m = message_of(t, &mine);
    pthread_mutex_lock(&a->mutex);
    if (m == NULL) {
        fail_named(team, r->rank, mine);
    }
    struct status s = a->failure;
    if (m != NULL && !failed(s)) {
        r->sent_bytes += (int64_t)m->bytes;
        append(&team->queues[r->rank * team->size + to], m);
        m = NULL;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->mutex);
    free(m);
    return s;
}

/* The next message, or NULL and a failure; the mutex is held. */
static struct message *await(const struct team *t, int rank, int from)
{
    struct comm_threads *a = t->all;
    struct timespec end = time_after(a->deadline_ns);
    struct queue *q = &t->queues[from * t->size + rank];
    while (q->first == NULL && !failed(a->failure)) {
        if (a->left[number_of(t, from)]) {
            judge_left(t);
        } else if (pthread_cond_timedwait(&a->changed, &a->mutex, &end) != 0 && q->first == NULL) {
            fail(a, status_error(STATUS_INTERNAL, "rank %d of %d waited %.1f s for a message from rank %d",
                                 number_of(t, rank), a->size, (double)a->deadline_ns * 1e-9,
                                 number_of(t, from)));
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
    struct team *team = r->team;
    struct comm_threads *a = team->all;
    mine = failed(mine) ? mine : comm_call_host(x);
    pthread_mutex_lock(&a->mutex);
    if (failed(mine)) {
        fail_named(team, r->rank, mine);
    }
    struct message *m = await(team, r->rank, from);
    if (m != NULL && m->bytes != tensor_bytes(t)) {
        fail(a, status_error(STATUS_INTERNAL, "rank %d receives %zu bytes from rank %d, which sent %zu",
                             number_of(team, r->rank), tensor_bytes(t), number_of(team, from), m->bytes));
    }
    struct status s = a->failure;
    pthread_mutex_unlock(&a->mutex);
    if (m != NULL && !failed(s)) {
        memcpy(t.data, m->data, m->bytes);
    }
    free(m);
    return s;
}

static int64_t sent(const void *state)
{
    return ((const struct rank_state *)state)->sent_bytes;
}

/* Of the world, unless it fails: then also of a part. */
static void leave(void *state, struct status why)
{
    const struct rank_state *r = state;
    struct team *team = r->team;
    struct comm_threads *a = team->all;
    bool is_world = team == a->world;
    pthread_mutex_lock(&a->mutex);
    a->left[number_of(team, r->rank)] |= is_world || failed(why);
    if (failed(why)) {
        fail_named(team, r->rank, why);
    }
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

/* ---- teams ---- */

static void free_messages(struct queue *q)
{
    while (q->first != NULL) {
        struct message *m = q->first;
        q->first = m->next;
        free(m);
    }
}

static void destroy_team(struct team *t)
{
    if (t == NULL) {
        return;
    }
    for (int i = 0; t->queues != NULL && i < t->size * t->size; i++) {
        free_messages(&t->queues[i]);
    }
    free(t->posted);
    free(t->calls);
    free(t->from);
    free(t->queues);
    free(t->own);
    free(t);
}

/* NULL if there is no memory. */
static struct team *create_team(struct comm_threads *a, int size, struct comm_numbers numbers)
{
    size_t n = (size_t)size;
    struct team *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    *t = (struct team){.all = a,
                       .numbers = numbers,
                       .size = size,
                       .n_open = size,
                       .posted = calloc(n, sizeof *t->posted),
                       .calls = calloc(n, sizeof *t->calls),
                       .queues = calloc(n * n, sizeof *t->queues),
                       .from = calloc(n * n, sizeof *t->from),
                       .own = calloc(n, sizeof *t->own)};
    if (t->posted == NULL || t->calls == NULL || t->queues == NULL || t->from == NULL || t->own == NULL) {
        destroy_team(t);
        return NULL;
    }
    for (int r = 0; r < size; r++) {
        t->own[r] = (struct rank_state){.team = t, .rank = r, .from = t->from + r * size};
    }
    return t;
}

static struct comm view(struct team *t, int rank);

/* The first rank of a group makes its team, and all learn where it is. */
static struct status share_team(const struct comm *whole, const struct comm_group *g, struct team **made)
{
    struct comm_threads *a = ((const struct rank_state *)whole->state)->team->all;
    struct team **teams = calloc((size_t)whole->size, sizeof(struct team *));
    struct team *mine = NULL;
    bool makes = whole->rank == g->first && g->n > 1;
    if (makes) {
        mine = create_team(a, g->n, comm_numbers_of(whole, g));
    }
    bool lacks = teams == NULL || (makes && mine == NULL);
    struct status s = comm_agree(
        whole, lacks ? status_error(STATUS_MEMORY, "out of memory for %d ranks", g->n) : status_ok());
    if (!failed(s) && teams != NULL) {
        teams[whole->rank] = mine;
        s = comm_share_rows(whole, (void *)teams, sizeof(struct team *));
        *made = teams[g->first];
    }
    if (failed(s)) {
        destroy_team(mine);
    }
    free((void *)teams);
    return s;
}

static struct status split(const struct comm *whole, const struct comm_group *g, struct comm *of_group)
{
    struct comm_threads *a = ((const struct rank_state *)whole->state)->team->all;
    struct team *t = NULL;
    TRY(comm_split_check(whole, g));
    TRY(share_team(whole, g, &t));
    pthread_mutex_lock(&a->mutex);
    a->has_parts = true;
    pthread_mutex_unlock(&a->mutex);
    *of_group = t == NULL ? comm_alone(whole) : view(t, (whole->rank - g->first) / g->stride);
    of_group->local_rank = whole->local_rank;
    of_group->n_local = whole->n_local;
    return status_ok();
}

static void close_part(struct comm *of_group)
{
    struct team *t = ((const struct rank_state *)of_group->state)->team;
    struct comm_threads *a = t->all;
    pthread_mutex_lock(&a->mutex);
    bool is_last = --t->n_open == 0;
    pthread_mutex_unlock(&a->mutex);
    if (is_last) {
        destroy_team(t);
    }
}

static const struct comm_type type = {
    .name = "threads",
    .agree = agree,
    .all_reduce_sum = all_reduce_sum,
    .all_reduce_max = all_reduce_max,
    .all_reduce_max_signed = all_reduce_max,
    .all_gather = all_gather,
    .reduce_scatter_sum = reduce_scatter_sum,
    .broadcast = broadcast,
    .send = send,
    .receive = receive,
    .sent = sent,
    .leave = leave,
    .split = split,
    .close_part = close_part,
};

static struct comm view(struct team *t, int rank)
{
    return (struct comm){.type = &type,
                         .rank = rank,
                         .size = t->size,
                         .numbers = t->numbers,
                         .local_rank = rank,
                         .n_local = t->size,
                         .state = &t->own[rank]};
}

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
    struct comm_threads *a = calloc(1, sizeof *a);
    *threads = a;
    if (a != NULL) {
        *a = (struct comm_threads){.size = size,
                                   .deadline_ns = (int64_t)(deadline_s * 1e9),
                                   .left = calloc((size_t)size, sizeof *a->left),
                                   .world = create_team(a, size, (struct comm_numbers){0, 1, size})};
        open_lock(a);
    }
    if (a == NULL || a->left == NULL || a->world == NULL) {
        comm_threads_destroy(a);
        *threads = NULL;
        return status_error(STATUS_MEMORY, "out of memory for %d ranks", size);
    }
    return status_ok();
}

void comm_threads_destroy(struct comm_threads *threads)
{
    if (threads == NULL) {
        return;
    }
    destroy_team(threads->world);
    pthread_cond_destroy(&threads->changed);
    pthread_mutex_destroy(&threads->mutex);
    free(threads->left);
    free(threads);
}

struct comm comm_threads_rank(struct comm_threads *threads, int rank)
{
    CHECK(rank >= 0 && rank < threads->size, "rank %d of %d", rank, threads->size);
    return view(threads->world, rank);
}
