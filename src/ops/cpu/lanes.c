#include "ops/cpu/lanes.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

struct lane {
    void *memory;
    size_t bytes;
};

enum { LANE_GRAIN = 65536, LANE_ALIGNMENT = 64 };

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

/* The calling thread's lane, or NULL without memory. */
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
        size_t rounded = (bytes / LANE_GRAIN + 1) * LANE_GRAIN;
        free(l->memory);
        l->memory = aligned_alloc(LANE_ALIGNMENT, rounded);
        l->bytes = l->memory == NULL ? 0 : rounded;
    }
    return l->memory;
}

void lanes_run(struct exec *x, const char *op, int64_t n_items, size_t lane_bytes, lanes_body *body,
               const void *context)
{
    if (n_items <= 0) {
        return;
    }
    bool short_of_memory = false;
    int threads = omp_get_max_threads();
    int64_t grain = n_items / (8 * (int64_t)threads) + 1; /* eight turns a thread even out a busy machine */
    threads = n_items < threads ? (int)n_items : threads;
#pragma omp parallel num_threads(threads) reduction(|| : short_of_memory)
    {
        void *lane = lane_scratch(lane_bytes);
        short_of_memory = lane == NULL;
#pragma omp for schedule(dynamic, grain)
        for (int64_t i = 0; i < n_items; i++) {
            if (lane != NULL) {
                body(context, i, lane);
            }
        }
    }
    if (short_of_memory) {
        exec_fail(x, STATUS_MEMORY, op, "no memory for %zu bytes of scratch in each thread", lane_bytes);
    }
}
