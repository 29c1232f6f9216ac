#include "core/parallel.h"

#include "core/signals.h"

#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PARTS = 256 };

struct part {
    parallel_body *body;
    void *context;
    int part, n_parts;
    pthread_t thread;
    bool running;
};

static void *run(void *argument)
{
    struct part *p = argument;
    p->body(p->context, p->part, p->n_parts);
    return NULL;
}

int parallel_n_parts(void)
{
    int n = omp_get_max_threads();
    return n > MAX_PARTS ? MAX_PARTS : n;
}

void parallel_share(int n_processes)
{
    const char *given = getenv("OMP_NUM_THREADS");
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int mine = (int)(online / n_processes), allowed = omp_get_num_procs();
    if (given == NULL || *given == '\0') {
        mine = mine < allowed ? mine : allowed;
        omp_set_num_threads(mine > 1 ? mine : 1);
    }
}

void parallel_run(parallel_body *body, void *context)
{
    struct part parts[MAX_PARTS];
    sigset_t before;
    int n = parallel_n_parts();
    signals_block(&before); /* only the calling thread takes signals */
    for (int i = 0; i < n; i++) {
        parts[i] = (struct part){.body = body, .context = context, .part = i, .n_parts = n};
        parts[i].running = i > 0 && pthread_create(&parts[i].thread, NULL, run, &parts[i]) == 0;
    }
    signals_restore(&before);
    for (int i = 0; i < n; i++) {
        if (!parts[i].running) {
            run(&parts[i]);
        }
    }
    for (int i = 0; i < n; i++) {
        if (parts[i].running) {
            pthread_join(parts[i].thread, NULL);
        }
    }
}
