#include "core/parallel.h"

#include "core/cgroup.h"
#include "core/signals.h"

#include <omp.h>
#include <pthread.h>
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

static bool is_given(void)
{
    const char *threads = getenv("OMP_NUM_THREADS");
    return threads != NULL && *threads != '\0';
}

/* The processors of this machine, or the number that the quota of a container or job allows (core/cgroup),
 * rounded, 1 at least. */
static int parallel_processors(void)
{
    double quota = cgroup_processors();
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), allowed = quota < 1.5 ? 1 : (int)(quota + 0.5);
    return quota > 0 && allowed < online ? allowed : online;
}

void parallel_keep_to_quota(void)
{
    int n = parallel_processors();
    if (!is_given() && n < omp_get_max_threads()) {
        omp_set_num_threads(n);
    }
}

struct parallel_share parallel_share(int n_processes)
{
    int share = parallel_processors() / n_processes, allowed = omp_get_num_procs();
    struct parallel_share s = {.share = share > 1 ? share : 1, .given = is_given()};
    if (!s.given) {
        omp_set_num_threads(s.share < allowed ? s.share : allowed);
    }
    s.threads = omp_get_max_threads();
    return s;
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
