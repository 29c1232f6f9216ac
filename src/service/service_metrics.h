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

/* Seconds that the parts of a call took. */
struct call_times {
    double encode_s, queue_s, compute_s;
};

struct call;

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

/* Counts a request that has ended, from any thread.  `status`: that of HTTP, 0 where the client left; `c`
 * may be NULL, where the server itself has answered. */
void service_metrics_count(struct service_metrics *m, const char *dialect, int status, const struct call *c,
                           double total_s);

/* Appends all, with the load of the engine and the exchanges that have not ended. */
void service_metrics_write(struct buf *out, struct service_metrics *m, const struct text_engine_load *load,
                           int64_t n_exchanges);

#endif
