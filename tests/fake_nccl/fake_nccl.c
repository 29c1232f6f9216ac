/* fake_nccl: a library with the functions of NCCL that kiln calls, for tests where there is no GPU.  Ranks
 * are threads or processes of one machine, memory is the host's, a stream is a struct fake_stream.  Sums are
 * those of dist/reduce.h, so that the bits can be compared; NCCL's own order is another.
 *
 * As NCCL does, it says ncclInProgress before each success of a communicator that does not block, and a rank
 * that does not come leaves the others waiting in their streams until they abort.
 *
 * FAKE_NCCL="id;version=21300;KIND:NAME:n@r;..." makes it misbehave: KIND is fail, hang, remote (it succeeds,
 * and the communicator then has an error of another rank), delay (100 ms) or kill (the process); NAME a
 * function or "any"; n counts that rank's calls from 1.  Another id begins to count again. */
#include "dist/nccl_library.h"
#include "dist/reduce.h"
#include "fake_stream.h"
#include "meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int ncclGetVersion(int *version);
EXPORTED const char *ncclGetErrorString(int result);
EXPORTED const char *ncclGetLastError(void *comm);
EXPORTED int ncclGetUniqueId(struct nccl_id *id);
EXPORTED int ncclCommInitRankConfig(void **comm, int size, struct nccl_id id, int rank,
                                    const struct nccl_config *config);
EXPORTED int ncclCommGetAsyncError(void *comm, int *result);
EXPORTED int ncclCommFinalize(void *comm);
EXPORTED int ncclCommDestroy(void *comm);
EXPORTED int ncclCommAbort(void *comm);
EXPORTED int ncclGroupStart(void);
EXPORTED int ncclGroupEnd(void);
EXPORTED int ncclAllReduce(const void *in, void *out, size_t n, int dtype, int op, void *comm, void *stream);
EXPORTED int ncclReduce(const void *in, void *out, size_t n, int dtype, int op, int root, void *comm,
                        void *stream);
EXPORTED int ncclBroadcast(const void *in, void *out, size_t n, int dtype, int root, void *comm,
                           void *stream);
EXPORTED int ncclAllGather(const void *in, void *out, size_t n_of_rank, int dtype, void *comm, void *stream);

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, REMOTE_ERROR = 6, IN_PROGRESS = 7 };
enum { MOST_RANKS = 8, MOST_WORKS = 64, MOST_TEXT = 512 };

enum kind { WORK_REDUCE, WORK_BROADCAST, WORK_GATHER };

struct comm {
    struct meeting *shared;
    char name[64];
    int rank, size, progress; /* times that it is still in progress */
    bool is_joined, is_joining_for_ever, is_ending, is_ending_for_ever;
    _Atomic bool is_aborted;
    _Atomic int n_queued, error;
};

struct work {
    struct comm *comm;
    enum kind kind;
    const char *in;
    char *out;
    size_t n;
    int dtype, op, root; /* root of a sum: -1, all get it */
    bool hangs, is_late;
};

/* What is queued as one. */
struct works {
    int n;
    struct work of[MOST_WORKS];
};

/* ---- misbehaviour ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char plan[MOST_TEXT];

static struct counted {
    char name[32];
    int n[MOST_RANKS];
} counted[32];

static int count(const char *name, int rank)
{
    int i = 0;
    while (counted[i].name[0] != '\0' && strcmp(counted[i].name, name) != 0) {
        i++;
    }
    snprintf(counted[i].name, sizeof counted[i].name, "%s", name);
    return ++counted[i].n[rank];
}

static void read_plan(void)
{
    const char *now = getenv("FAKE_NCCL");
    now = now == NULL ? "" : now;
    if (strcmp(now, plan) != 0) {
        snprintf(plan, sizeof plan, "%s", now);
        memset(counted, 0, sizeof counted);
    }
}

/* What this call of a rank is to do: the KIND, or "". */
static void fate(char kind[16], const char *name, int rank)
{
    pthread_mutex_lock(&mutex);
    read_plan();
    int n_named = count(name, rank), n_any = count("any", rank);
    kind[0] = '\0';
    for (const char *p = strchr(plan, ';'); p != NULL; p = strchr(p + 1, ';')) {
        char what[16], of[32];
        int n, r;
        if (sscanf(p, ";%15[a-z]:%31[A-Za-z]:%d@%d", what, of, &n, &r) == 4 && r == rank &&
            (strcmp(of, name) == 0 ? n == n_named : strcmp(of, "any") == 0 && n == n_any)) {
            snprintf(kind, 16, "%s", what);
        }
    }
    pthread_mutex_unlock(&mutex);
    if (strcmp(kind, "kill") == 0) {
        raise(SIGKILL);
    }
}

EXPORTED int ncclGetVersion(int *version)
{
    pthread_mutex_lock(&mutex);
    read_plan();
    const char *p = strstr(plan, ";version=");
    *version = p == NULL ? 22809 : atoi(p + strlen(";version="));
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}

EXPORTED const char *ncclGetErrorString(int result)
{
    return result == SYSTEM_ERROR   ? "unhandled system error"
           : result == REMOTE_ERROR ? "remote process exited"
                                    : "another error";
}

EXPORTED const char *ncclGetLastError(void *comm)
{
    (void)comm;
    return "as FAKE_NCCL asks";
}

/* ---- communicators ---- */

EXPORTED int ncclGetUniqueId(struct nccl_id *id)
{
    static _Atomic int n;
    char kind[16];
    fate(kind, "GetUniqueId", 0);
    snprintf(id->bytes, sizeof id->bytes, "/kiln_fake_nccl_%d_%d", (int)getpid(), ++n);
    return kind[0] == '\0' ? SUCCESS : SYSTEM_ERROR;
}

static bool is_over(void *comm)
{
    return atomic_load(&((struct comm *)comm)->is_aborted);
}

/* The memory is zero when it is new, and all set the same size. */
static int attach(struct comm *c)
{
    int file = shm_open(c->name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)meeting_bytes(c->size)) != 0) {
        return SYSTEM_ERROR;
    }
    c->shared = mmap(NULL, meeting_bytes(c->size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (c->shared == MAP_FAILED) {
        return SYSTEM_ERROR;
    }
    atomic_store(&c->shared->size, c->size);
    atomic_fetch_add(&c->shared->n_here, 1); /* until all have; the last to see it begins the first round */
    return SUCCESS;
}

EXPORTED int ncclCommInitRankConfig(void **comm, int size, struct nccl_id id, int rank,
                                    const struct nccl_config *config)
{
    char kind[16];
    struct comm *c = calloc(1, sizeof *c);
    *comm = c;
    if (c == NULL || config->magic != 0xcafebeefu || config->blocking != 0 || rank >= size) {
        return INVALID_ARGUMENT;
    }
    fate(kind, "CommInitRankConfig", rank);
    *c = (struct comm){.rank = rank, .size = size, .progress = 2};
    snprintf(c->name, sizeof c->name, "%s", id.bytes);
    if (strcmp(kind, "fail") == 0) {
        return SYSTEM_ERROR;
    }
    c->is_joining_for_ever = strcmp(kind, "hang") == 0;
    return c->is_joining_for_ever || attach(c) == SUCCESS ? IN_PROGRESS : SYSTEM_ERROR;
}

/* Whether all are there: then the rank that is the first to see it lets the rounds begin. */
static bool have_joined(struct comm *c)
{
    int all = c->size;
    if (!c->is_joined && !c->is_joining_for_ever && c->shared != NULL) {
        c->is_joined = atomic_load(&c->shared->round) > 0;
        if (!c->is_joined && atomic_compare_exchange_strong(&c->shared->n_here, &all, 0)) {
            shm_unlink(c->name);
            atomic_store(&c->shared->round, 1);
            c->is_joined = true;
        }
    }
    return c->is_joined;
}

EXPORTED int ncclCommGetAsyncError(void *comm, int *result)
{
    struct comm *c = comm;
    int error = atomic_load(&c->error);
    bool is_busy = c->is_ending_for_ever || (c->is_ending && atomic_load(&c->n_queued) > 0);
    *result = error != SUCCESS                                ? error
              : !have_joined(c) || c->progress > 0 || is_busy ? IN_PROGRESS
                                                              : SUCCESS;
    c->progress -= c->progress > 0;
    return SUCCESS;
}

static void detach(struct comm *c)
{
    struct timespec pause = {.tv_nsec = 100000};
    while (atomic_load(&c->n_queued) > 0) {
        nanosleep(&pause, NULL); /* time: between two looks, of any number */
    }
    if (c->shared != NULL) {
        munmap(c->shared, meeting_bytes(c->size));
    }
    free(c);
}

EXPORTED int ncclCommFinalize(void *comm)
{
    char kind[16];
    struct comm *c = comm;
    fate(kind, "CommFinalize", c->rank);
    c->is_ending = true;
    c->is_ending_for_ever = strcmp(kind, "hang") == 0;
    return strcmp(kind, "fail") == 0 ? SYSTEM_ERROR : IN_PROGRESS;
}

EXPORTED int ncclCommDestroy(void *comm)
{
    detach(comm);
    return SUCCESS;
}

EXPORTED int ncclCommAbort(void *comm)
{
    struct comm *c = comm;
    atomic_store(&c->is_aborted, true);
    if (!c->is_joined) {
        shm_unlink(c->name);
    }
    detach(c);
    return SUCCESS;
}

/* ---- work ---- */

static size_t bytes_of(int dtype)
{
    return dtype == NCCL_FLOAT64 ? 8 : dtype == NCCL_BFLOAT16 ? 2 : dtype == NCCL_INT8 ? 1 : 4;
}

static void max_i32(void *out, const void *const *from, int n_from, int64_t n)
{
    int32_t *to = out;
    for (int64_t i = 0; i < n; i++) {
        int32_t most = ((const int32_t *)from[0])[i];
        for (int r = 1; r < n_from; r++) {
            int32_t other = ((const int32_t *)from[r])[i];
            most = other > most ? other : most;
        }
        to[i] = most;
    }
}

static void max_f32(float *out, const void *const *from, int n_from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float most = -INFINITY;
        for (int r = 0; r < n_from; r++) {
            most = fmaxf(most, ((const float *)from[r])[i]);
        }
        out[i] = most;
    }
}

/* A piece of n elements: all leave theirs, and each computes the result for itself. */
static void combine(const struct work *w, size_t first, size_t n)
{
    const void *from[MOST_RANKS];
    struct comm *c = w->comm;
    size_t bytes = bytes_of(w->dtype);
    if (w->kind == WORK_REDUCE && w->root >= 0 && w->root != c->rank) {
        return;
    }
    for (int r = 0; r < c->size; r++) {
        from[r] = meeting_slot(c->shared, r);
    }
    if (w->kind == WORK_REDUCE && w->op == NCCL_MAX && w->dtype == NCCL_FLOAT32) {
        max_f32((void *)(w->out + first * bytes), from, c->size, (int64_t)n);
    } else if (w->kind == WORK_REDUCE && w->op == NCCL_MAX) {
        max_i32(w->out + first * bytes, from, c->size, (int64_t)n);
    } else if (w->kind == WORK_REDUCE) {
        enum dtype dtype = w->dtype == NCCL_FLOAT64    ? DTYPE_F64
                           : w->dtype == NCCL_BFLOAT16 ? DTYPE_BF16
                                                       : DTYPE_F32;
        reduce_sum(w->out + first * bytes, from, c->size, 0, (int64_t)n, dtype);
    } else if (w->kind == WORK_BROADCAST) {
        memcpy(w->out + first * bytes, from[w->root], n * bytes);
    } else {
        for (int r = 0; r < c->size; r++) {
            memcpy(w->out + ((size_t)r * w->n + first) * bytes, from[r], n * bytes);
        }
    }
}

/* False: it was aborted. */
static bool run_one(const struct work *w)
{
    struct comm *c = w->comm;
    struct timespec pause = {.tv_nsec = 1000000}, delay = {.tv_nsec = 100000000};
    size_t bytes = bytes_of(w->dtype), most = MEETING_SLOT_BYTES / bytes;
    if (w->is_late) {
        nanosleep(&delay, NULL); /* time: late, and within any deadline of a test that it does not fail */
    }
    while (w->hangs && !is_over(c)) {
        nanosleep(&pause, NULL); /* time: between two looks, of any number */
    }
    for (size_t first = 0; first < w->n; first += most) {
        size_t n = w->n - first < most ? w->n - first : most;
        memcpy(meeting_slot(c->shared, c->rank), w->in + first * bytes, n * bytes);
        if (!meeting_come(c->shared, is_over, c)) {
            return false;
        }
        combine(w, first, n);
        if (!meeting_come(c->shared, is_over, c)) {
            return false;
        }
    }
    return true;
}

static void run(void *argument)
{
    struct works *all = argument;
    struct comm *c = all->of[0].comm;
    bool goes_on = !is_over(c);
    for (int i = 0; i < all->n && goes_on; i++) {
        goes_on = run_one(&all->of[i]);
    }
    free(all);
    atomic_fetch_sub(&c->n_queued, 1); /* the last look at c */
}

static _Thread_local bool is_in_group;
static _Thread_local struct works group;
static _Thread_local struct fake_stream *stream_of_group;

static int give(const struct works *all, struct fake_stream *stream)
{
    struct works *copy = malloc(sizeof *copy);
    struct comm *c = all->of[0].comm;
    if (copy == NULL) {
        return SYSTEM_ERROR;
    }
    *copy = *all;
    c->progress = 2;
    atomic_fetch_add(&c->n_queued, 1);
    stream->give(stream, run, copy);
    return IN_PROGRESS;
}

static int queue(const char *name, struct work w, struct fake_stream *stream)
{
    char kind[16];
    fate(kind, name, w.comm->rank);
    if (strcmp(kind, "fail") == 0) {
        return SYSTEM_ERROR;
    }
    if (strcmp(kind, "remote") == 0) {
        atomic_store(&w.comm->error, REMOTE_ERROR);
    }
    w.hangs = strcmp(kind, "hang") == 0;
    w.is_late = strcmp(kind, "delay") == 0;
    if (!is_in_group) {
        return give(&(struct works){.n = 1, .of = {w}}, stream);
    }
    group.of[group.n++] = w;
    stream_of_group = stream;
    return SUCCESS;
}

EXPORTED int ncclGroupStart(void)
{
    is_in_group = true;
    group.n = 0;
    return SUCCESS;
}

EXPORTED int ncclGroupEnd(void)
{
    is_in_group = false;
    return group.n == 0 ? SUCCESS : give(&group, stream_of_group);
}

EXPORTED int ncclAllReduce(const void *in, void *out, size_t n, int dtype, int op, void *comm, void *stream)
{
    struct work w = {.comm = comm,
                     .kind = WORK_REDUCE,
                     .in = in,
                     .out = out,
                     .n = n,
                     .dtype = dtype,
                     .op = op,
                     .root = -1};
    return queue("AllReduce", w, stream);
}

EXPORTED int ncclReduce(const void *in, void *out, size_t n, int dtype, int op, int root, void *comm,
                        void *stream)
{
    struct work w = {.comm = comm,
                     .kind = WORK_REDUCE,
                     .in = in,
                     .out = out,
                     .n = n,
                     .dtype = dtype,
                     .op = op,
                     .root = root};
    return queue("Reduce", w, stream);
}

EXPORTED int ncclBroadcast(const void *in, void *out, size_t n, int dtype, int root, void *comm, void *stream)
{
    struct work w = {
        .comm = comm, .kind = WORK_BROADCAST, .in = in, .out = out, .n = n, .dtype = dtype, .root = root};
    return queue("Broadcast", w, stream);
}

EXPORTED int ncclAllGather(const void *in, void *out, size_t n_of_rank, int dtype, void *comm, void *stream)
{
    struct work w = {.comm = comm, .kind = WORK_GATHER, .in = in, .out = out, .n = n_of_rank, .dtype = dtype};
    return queue("AllGather", w, stream);
}
