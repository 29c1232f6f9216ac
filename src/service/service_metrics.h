/* service_metrics: counts of what a server does, as Prometheus reads them (its text format 0.0.4); the names
 * of text-embeddings-inference (te_...) are there too, so that its dashboards work. */
#ifndef KILN_SERVICE_SERVICE_METRICS_H
#define KILN_SERVICE_SERVICE_METRICS_H

#include "core/buf.h"
#include "serve/text_engine.h"

#include <pthread.h>
#include <stdint.h>

/* TEI's bounds: 1e-5 * 1.5^k s, k = 1..35. */
enum { METRICS_BOUNDS = 35, METRICS_DIALECTS = 8, METRICS_CLASSES = 6 };

struct histogram {
    int64_t counts[METRICS_BOUNDS + 1]; /* below each bound, and above all */
    double sum;
    int64_t n;
};

/* Seconds that a call took, in total and by part. */
struct call_times {
    double total_s, encode_s, queue_s, compute_s;
};

struct service_metrics {
    pthread_mutex_t lock; /* guards the rest */
    const char *dialects[METRICS_DIALECTS];
    int n_dialects;
    int64_t calls[METRICS_DIALECTS][METRICS_CLASSES]; /* by dialect and status / 100; 0: the client left */
    int64_t texts, tokens, new_tokens, cut;
    struct histogram total, encode, queue, compute;
};

/* Sets all counts to 0. */
void service_metrics_init(struct service_metrics *m);
void service_metrics_fini(struct service_metrics *m);

/* Values that a call that has ended adds to the counts. */
struct metrics_call {
    const char *dialect;
    int status; /* status of HTTP; 0: the client left */
    int64_t n_texts, n_tokens, n_new_tokens, n_cut;
    bool computed; /* times of the engine are counted */
    struct call_times times;
};

/* Counts a call that has ended; from any thread. */
void service_metrics_count(struct service_metrics *m, const struct metrics_call *c);

/* Appends all, with the load of the engine and the exchanges that have not ended. */
void service_metrics_write(struct buf *out, struct service_metrics *m, const struct text_engine_load *load,
                           int64_t n_exchanges);

#endif
