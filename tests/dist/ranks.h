/* ranks: a body that runs as several ranks, each in a thread. */
#ifndef KILN_TESTS_RANKS_H
#define KILN_TESTS_RANKS_H

#include "dist/comm_threads.h"

#include "../test.h"

#include <pthread.h>

enum { RANKS_MOST = 8 };

typedef void rank_body(const struct comm *c, void *context);

struct rank_thread {
    struct comm comm;
    rank_body *body;
    void *context;
    pthread_t thread;
};

static void *run_rank(void *argument)
{
    struct rank_thread *r = argument;
    r->body(&r->comm, r->context);
    comm_leave(&r->comm, status_ok());
    return NULL;
}

/* Ends when all ranks have. */
static void run_ranks(int n, double deadline_s, rank_body *body, void *context)
{
    struct comm_threads *threads;
    struct rank_thread ranks[RANKS_MOST];
    EXPECT(n <= RANKS_MOST, "%d ranks", n);
    EXPECT_OK(comm_threads_create(&threads, n, deadline_s));
    for (int i = 0; i < n; i++) {
        ranks[i] =
            (struct rank_thread){.comm = comm_threads_rank(threads, i), .body = body, .context = context};
        EXPECT(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0, "no thread");
    }
    for (int i = 0; i < n; i++) {
        pthread_join(ranks[i].thread, NULL);
    }
    comm_threads_destroy(threads);
}

#endif
