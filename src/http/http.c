#include "core/clock.h"
#include "http/http_mhd.h"

#include <stdlib.h>
#include <sys/resource.h>

/* Descriptors that are no connections' (files, pipes, the library's own). */
enum { OTHER_DESCRIPTORS = 64 };

struct http_options http_defaults(void)
{
    return (struct http_options){
        .host = "127.0.0.1",
        .port = 8080,
        .socket = -1,
        .n_threads = 4,
        .max_connections = 512,
        .max_body_bytes = 32 << 20,
        .max_all_body_bytes = 256 << 20,
        .max_unread_bytes = 1 << 20,
        .request_read_timeout_s = 30,
        .idle_timeout_s = 75,
    };
}

static struct http_gate gate_of(const struct http_options *o, const struct http_address *a)
{
    return (struct http_gate){.hosts = o->hosts,
                              .n_hosts = o->n_hosts,
                              .is_loopback = a->is_loopback,
                              .origins = o->origins,
                              .n_origins = o->n_origins,
                              .keys = o->keys,
                              .n_keys = o->n_keys,
                              .max_body_bytes = o->max_body_bytes};
}

/* A connection needs two descriptors, the library's and the watch's. */
static struct status allow_descriptors(int n_connections)
{
    struct rlimit limit;
    rlim_t needed = 2 * (rlim_t)n_connections + HTTP_WATCH_DESCRIPTORS + OTHER_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) {
        return status_ok();
    }
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    FAIL_IF(limit.rlim_cur < needed || setrlimit(RLIMIT_NOFILE, &limit) != 0, STATUS_USAGE,
            "%d connections need %llu descriptors, this process may have %llu (ulimit -n); allow fewer "
            "connections",
            n_connections, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    return status_ok();
}

static struct status open_address(struct http_address *a, const struct http_options *o)
{
    return o->socket >= 0           ? http_address_take(a, o->socket)
           : o->unix_socket != NULL ? http_address_open_unix(a, o->unix_socket)
                                    : http_address_open(a, o->host, o->port);
}

/* A request takes too long to arrive: in the thread of the watch. */
static void refuse_late(void *server, void *exchange, struct buf *last_words)
{
    static const struct http_refusal late = {408, "the request took too long to arrive"};
    struct http_server *s = server;
    struct http_exchange *x = exchange;
    if (x != NULL) {
        http_exchange_leave(x);
        atomic_store(&x->sent_status, late.status);
    }
    http_exchange_print_refusal(&s->handler, last_words, x != NULL ? x->head.path : "", late,
                                http_mhd_reason(late.status));
}

static void leave(void *exchange)
{
    http_exchange_leave(exchange);
}

static struct status start(struct http_server *s)
{
    struct http_watch_events events = {.left = leave, .late = refuse_late, .self = s};
    TRY(allow_descriptors(s->o.max_connections));
    TRY(open_address(&s->address, &s->o));
    s->gate = gate_of(&s->o, &s->address);
    TRY(http_watch_create(&s->watch, &events));
    TRY(http_workers_create(&s->workers, s->o.n_threads));
    return http_mhd_start(s);
}

struct status http_server_create(struct http_server **server, const struct http_options *o,
                                 const struct http_handler *handler)
{
    struct http_server *s = calloc(1, sizeof *s);
    *server = NULL;
    FAIL_IF(s == NULL, STATUS_MEMORY, "out of memory for a server");
    *s = (struct http_server){.o = *o, .handler = *handler, .address.fd = -1};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    struct status status = start(s);
    if (failed(status)) {
        http_server_destroy(s);
        return status;
    }
    *server = s;
    return status_ok();
}

int http_server_port(const struct http_server *s)
{
    return s->address.port;
}

void http_server_close_door(struct http_server *s)
{
    if (atomic_exchange(&s->is_closed, true)) {
        return;
    }
    http_mhd_close_door(s);
    http_address_close(&s->address);
    if (s->watch != NULL) {
        http_watch_close_idle(s->watch);
    }
}

int64_t http_server_exchanges(const struct http_server *s)
{
    struct http_server *locked = (struct http_server *)s;
    pthread_mutex_lock(&locked->lock);
    int64_t n = s->n_exchanges;
    pthread_mutex_unlock(&locked->lock);
    return n;
}

bool http_server_wait(struct http_server *s, double seconds)
{
    int64_t until_ns = clock_ns() + (int64_t)(seconds * 1e9);
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_mutex_lock(&s->lock);
    while (s->n_exchanges > 0 && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0) {
    }
    bool all_ended = s->n_exchanges == 0;
    pthread_mutex_unlock(&s->lock);
    return all_ended;
}

void http_server_destroy(struct http_server *s)
{
    if (s == NULL) {
        return;
    }
    http_server_close_door(s);
    http_workers_stop(s->workers); /* by their calls exchanges end, so that no connection waits for one */
    http_mhd_stop(s);
    http_workers_destroy(s->workers);
    http_watch_destroy(s->watch);
    CHECK(s->n_exchanges == 0, "%lld exchanges have not ended", (long long)s->n_exchanges);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
