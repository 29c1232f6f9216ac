/* A pool of threads that never waits for a thread that has not begun.
 *
 * A parallel region of OpenMP ends when the full team has arrived, so at every op one thread that a busy
 * machine does not schedule delays all the others.  Here the caller publishes a job and starts on it at once.
 * A worker that wakes in time joins and takes items.  When no items are left the job is closed, and the
 * caller waits only for workers that have joined. oneDNN is an OpenMP program, so every thread of the pool is
 * set to be a team of one. */
#define _GNU_SOURCE
#include "ops/cpu/lanes.h"

#include "core/signals.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct lane {
    void *memory;
    size_t bytes;
};

enum { LANE_GRAIN = 65536, LANE_ALIGNMENT = 64, LANE_HUGE_PAGE = 2 << 20, MAX_WORKERS = 1023 };

/* Iterations of busy waiting, some tens of microseconds: as long as the gaps between ops. */
enum { SPINS = 2000 };

/* The job's state in one word: its number, whether workers may join, how many are inside. */
static const uint64_t JOINED = 1, JOINED_MASK = 0xffff, OPEN = 0x10000, NUMBER = 0x20000;

struct job {
    lanes_body *body;
    const void *context;
    size_t lane_bytes;
    int64_t n_items, grain;
    atomic_int max_workers;   /* read before joining, when the next job may already be being published */
    atomic_int_fast64_t next; /* the first item not yet taken */
    atomic_bool short_of_memory;
};

static struct job job;
static atomic_uint_fast64_t state;
static pthread_mutex_t submitting = PTHREAD_MUTEX_INITIALIZER; /* one job at a time */
static int n_workers;                                          /* under `submitting` */
static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_int n_sleeping;

static pthread_key_t lane_key;
static pthread_once_t lane_key_once = PTHREAD_ONCE_INIT;
static bool lane_key_made;

static void lane_free(void *p)
{
    struct lane *l = p;
    free(l->memory);
    free(l);
}

static void lane_key_make(void)
{
    lane_key_made = pthread_key_create(&lane_key, lane_free) == 0;
}

/* The calling thread's lane, or NULL if memory runs out. */
static struct lane *lane_of_thread(void)
{
    pthread_once(&lane_key_once, lane_key_make);
    if (!lane_key_made) {
        return NULL;
    }
    struct lane *l = pthread_getspecific(lane_key);
    if (l == NULL) {
        l = calloc(1, sizeof *l);
        if (l != NULL && pthread_setspecific(lane_key, l) != 0) {
            free(l);
            l = NULL;
        }
    }
    return l;
}

static void *lane_scratch(size_t bytes)
{
    struct lane *l = lane_of_thread();
    if (l == NULL) {
        return NULL;
    }
    if (l->bytes < bytes || l->memory == NULL) {
        bool large = bytes > LANE_HUGE_PAGE / 4;
        size_t grain = large ? LANE_HUGE_PAGE : LANE_GRAIN, rounded = (bytes / grain + 1) * grain;
        free(l->memory);
        l->memory = aligned_alloc(large ? LANE_HUGE_PAGE : LANE_ALIGNMENT, rounded);
        l->bytes = l->memory == NULL ? 0 : rounded;
        if (large && l->memory != NULL) {
            madvise(l->memory, rounded, MADV_HUGEPAGE); /* only a hint: tiles are read across their rows */
        }
    }
    return l->memory;
}

/* Takes items of the job until there are none left. */
static void work(struct job *j)
{
    void *lane = lane_scratch(j->lane_bytes);
    if (lane == NULL) {
        atomic_store(&j->short_of_memory, true);
        return;
    }
    for (;;) {
        int64_t first = atomic_fetch_add(&j->next, j->grain);
        if (first >= j->n_items) {
            return;
        }
        int64_t end = first + j->grain < j->n_items ? first + j->grain : j->n_items;
        for (int64_t i = first; i < end; i++) {
            j->body(j->context, i, lane);
        }
    }
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Waits, first spinning and then asleep, for a job other than that of `seen`. */
static uint64_t wait_for_job(uint64_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        uint64_t now = atomic_load(&state);
        if (now / NUMBER != seen / NUMBER) {
            return now;
        }
        pause_briefly();
    }
    pthread_mutex_lock(&sleeping);
    atomic_fetch_add(&n_sleeping, 1);
    uint64_t now = atomic_load(&state);
    while (now / NUMBER == seen / NUMBER) {
        pthread_cond_wait(&wake, &sleeping);
        now = atomic_load(&state);
    }
    atomic_fetch_sub(&n_sleeping, 1);
    pthread_mutex_unlock(&sleeping);
    return now;
}

static void *worker(void *unused)
{
    (void)unused;
    sigset_t unused_mask;
    signals_block(&unused_mask); /* blocked as by run_tiles in gemm.c */
    omp_set_num_threads(1);
    uint64_t seen = 0;
    for (;;) {
        seen = wait_for_job(seen);
        uint64_t now = seen;
        while ((now & OPEN) != 0 && now / NUMBER == seen / NUMBER &&
               (int)(now & JOINED_MASK) < job.max_workers) {
            if (atomic_compare_exchange_weak(&state, &now, now + JOINED)) {
                work(&job);
                atomic_fetch_sub(&state, JOINED);
                break;
            }
        }
    }
    return NULL;
}

/* Starts missing workers; if that fails, fewer will do. */
static void hire(int wanted)
{
    while (n_workers < wanted && n_workers < MAX_WORKERS) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, NULL) != 0) {
            return;
        }
        pthread_detach(thread);
        n_workers++;
    }
}

static void publish(void)
{
    atomic_store(&state, (atomic_load(&state) / NUMBER + 1) * NUMBER | OPEN);
    if (atomic_load(&n_sleeping) > 0) {
        pthread_mutex_lock(&sleeping);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleeping);
    }
}

/* Closes the job and waits for the workers that have joined. */
static void close_job(void)
{
    atomic_fetch_and(&state, ~OPEN);
    for (int i = 0; (atomic_load(&state) & JOINED_MASK) != 0; i++) {
        if (i < SPINS) {
            pause_briefly();
        } else {
            sched_yield();
        }
    }
}

static void run_together(struct job *j)
{
    job.body = j->body;
    job.context = j->context;
    job.lane_bytes = j->lane_bytes;
    job.n_items = j->n_items;
    job.grain = j->grain;
    job.max_workers = j->max_workers;
    atomic_store(&job.next, 0);
    atomic_store(&job.short_of_memory, false);
    hire(j->max_workers);
    publish();
    work(&job);
    close_job();
    atomic_store(&j->short_of_memory, atomic_load(&job.short_of_memory));
}

void lanes_run(struct exec *x, const char *op, int64_t n_items, size_t lane_bytes, lanes_body *body,
               const void *context)
{
    if (n_items <= 0) {
        return;
    }
    int all = omp_get_max_threads(),
        threads = x->max_threads > 0 && x->max_threads < all ? x->max_threads : all;
    struct job j = {
        .body = body,
        .context = context,
        .lane_bytes = lane_bytes,
        .n_items = n_items,
        .grain = n_items / (8 * (int64_t)threads) + 1, /* about eight grains a thread even out a busy
                                                        * machine */
        .max_workers = (int)(n_items < threads ? n_items : threads) - 1,
    };
    omp_set_num_threads(1);
    if (j.max_workers > 0 && pthread_mutex_trylock(&submitting) == 0) {
        run_together(&j);
        pthread_mutex_unlock(&submitting);
    } else {
        work(&j); /* one thread is enough, or another session is using the pool */
    }
    omp_set_num_threads(all);
    if (atomic_load(&j.short_of_memory)) {
        exec_fail(x, STATUS_MEMORY, op, "no memory for %zu bytes of scratch in each thread", lane_bytes);
    }
}
