#include "http/http_watch.h"

#include "core/clock.h"
#include "core/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long what a client sends on is read, at most, and for how many clients at once: as nginx,
 * lingering_timeout. */
#define LINGER_S 5.0

enum { MOST_LINGERING = HTTP_WATCH_DESCRIPTORS - 2, EVENTS = 64, DISCARD_BYTES = 64 << 10 };

static const int64_t never_ns = INT64_MAX;

struct http_client {
    struct http_watch *watch;
    int fd;
    int64_t ends_ns; /* when the connection ends, or what it sends is no longer read */
    bool is_asking;  /* a request has begun, and its exchange has not ended */
    void *exchange;  /* NULL before its head is read */
    bool has_left, is_cut;
    bool is_removed, lingers; /* the watch's alone; until what it sends on was read */
    struct http_client *before, *next;
};

struct http_watch {
    struct http_watch_events events;
    int epoll, wake; /* `wake` is an eventfd */
    pthread_mutex_t lock;
    struct http_client *clients;
    int64_t wakes_ns; /* when the thread looks at the clients again */
    int n_lingering;
    bool closes_idle, ends, has_thread;
    pthread_t thread;
    char discarded[DISCARD_BYTES];
};

static int64_t in_seconds(double seconds)
{
    return clock_ns() + (int64_t)(seconds * 1e9);
}

static void poke(struct http_watch *w)
{
    uint64_t one = 1;
    ssize_t n = write(w->wake, &one, sizeof one); /* fails only where it is awake already */
    (void)n;
}

static void set_end(struct http_client *c, int64_t ends_ns)
{
    struct http_watch *w = c->watch;
    c->ends_ns = ends_ns;
    if (ends_ns < w->wakes_ns) {
        w->wakes_ns = ends_ns;
        poke(w);
    }
}

/* No byte goes either way any more; the other thread, which waits for this socket, closes it. */
static void cut(struct http_client *c)
{
    c->is_cut = true;
    c->has_left = true;
    shutdown(c->fd, SHUT_RDWR);
}

static void say(struct http_client *c, const char *bytes, size_t n)
{
    ssize_t sent = n > 0 ? send(c->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    (void)sent; /* a client that takes nothing misses it */
}

static void free_client(struct http_client *c)
{
    struct http_watch *w = c->watch;
    w->n_lingering -= c->lingers;
    *(c->before != NULL ? &c->before->next : &w->clients) = c->next;
    if (c->next != NULL) {
        c->next->before = c->before;
    }
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    close(c->fd);
    free(c);
}

/* Reads what a client sends on; false: nothing more will come. */
static bool discard(struct http_client *c)
{
    ssize_t n = recv(c->fd, c->watch->discarded, DISCARD_BYTES, MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void on_event(struct http_client *c)
{
    if (c->is_removed) {
        c->ends_ns = discard(c) ? c->ends_ns : 0;
        return;
    }
    c->has_left = true;
    if (c->exchange != NULL) {
        c->watch->events.left(c->exchange);
    }
}

/* The time of a client is over. */
static void end(struct http_client *c)
{
    struct http_watch *w = c->watch;
    c->ends_ns = never_ns;
    if (c->is_removed) {
        free_client(c);
        return;
    }
    if (c->is_asking) {
        struct buf words = {0};
        w->events.late(w->events.self, c->exchange, &words);
        say(c, words.data, words.n);
        buf_fini(&words);
    }
    cut(c);
}

/* Ends what is late, and sets when it looks again. */
static void look_at_clients(struct http_watch *w)
{
    int64_t now = clock_ns();
    w->wakes_ns = never_ns;
    for (struct http_client *c = w->clients, *next; c != NULL; c = next) {
        next = c->next;
        if (c->ends_ns <= now) {
            end(c);
        } else if (c->ends_ns < w->wakes_ns) {
            w->wakes_ns = c->ends_ns;
        }
    }
}

static int milliseconds_until(int64_t ns)
{
    int64_t wait_ms = (ns - clock_ns()) / 1000000 + 1;
    return ns == never_ns ? -1 : wait_ms < 0 ? 0 : wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

static void *watch(void *self)
{
    struct http_watch *w = self;
    struct epoll_event events[EVENTS];
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        look_at_clients(w);
        int wait_ms = milliseconds_until(w->wakes_ns);
        pthread_mutex_unlock(&w->lock);
        int n = epoll_wait(w->epoll, events, EVENTS, wait_ms);
        pthread_mutex_lock(&w->lock);
        for (int i = 0; i < n; i++) {
            uint64_t pokes;
            if (events[i].data.ptr != NULL) {
                on_event(events[i].data.ptr);
            } else if (read(w->wake, &pokes, sizeof pokes) < 0) {
                continue;
            }
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Clients are freed in the thread of the watch alone, so that an event never names one that is gone. */
static void free_watch(struct http_watch *w)
{
    for (struct http_client *c = w->clients, *next; c != NULL; c = next) {
        next = c->next;
        CHECK(c->is_removed, "a connection is still open");
        free_client(c);
    }
    if (w->epoll >= 0) {
        close(w->epoll);
    }
    if (w->wake >= 0) {
        close(w->wake);
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
}

struct status http_watch_create(struct http_watch **watch_, const struct http_watch_events *events)
{
    struct http_watch *w = calloc(1, sizeof *w);
    *watch_ = w;
    FAIL_IF(w == NULL, STATUS_MEMORY, "out of memory for a server");
    *w = (struct http_watch){.events = *events, .wakes_ns = never_ns};
    pthread_mutex_init(&w->lock, NULL);
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t before;
    signals_block(&before);
    w->has_thread = w->epoll >= 0 && w->wake >= 0 &&
                    epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &event) == 0 &&
                    pthread_create(&w->thread, NULL, watch, w) == 0;
    signals_restore(&before);
    return w->has_thread ? status_ok()
                         : status_error(STATUS_MEMORY, "a server needs a thread and two descriptors more");
}

void http_watch_destroy(struct http_watch *w)
{
    if (w == NULL) {
        return;
    }
    if (w->has_thread) {
        pthread_mutex_lock(&w->lock);
        w->ends = true;
        poke(w);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
    }
    free_watch(w);
}

void http_watch_close_idle(struct http_watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->closes_idle = true;
    for (struct http_client *c = w->clients; c != NULL; c = c->next) {
        if (!c->is_removed && !c->is_asking) {
            cut(c);
        }
    }
    pthread_mutex_unlock(&w->lock);
}

struct http_client *http_client_add(struct http_watch *w, int fd, double seconds)
{
    struct http_client *c = calloc(1, sizeof *c);
    int own = c != NULL ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = c};
    if (own < 0) {
        free(c);
        return NULL;
    }
    pthread_mutex_lock(&w->lock);
    *c = (struct http_client){.watch = w, .fd = own, .next = w->clients};
    if (c->next != NULL) {
        c->next->before = c;
    }
    w->clients = c;
    set_end(c, in_seconds(seconds));
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, own, &event) != 0 || w->closes_idle) {
        cut(c);
    }
    pthread_mutex_unlock(&w->lock);
    return c;
}

void http_client_remove(struct http_client *c)
{
    struct http_watch *w = c->watch;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
    pthread_mutex_lock(&w->lock);
    c->is_removed = true;
    c->lingers = !c->has_left && !w->closes_idle && w->n_lingering < MOST_LINGERING &&
                 epoll_ctl(w->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
    w->n_lingering += c->lingers;
    set_end(c, c->lingers ? in_seconds(LINGER_S) : 0);
    pthread_mutex_unlock(&w->lock);
}

void http_client_begin(struct http_client *c, double seconds)
{
    pthread_mutex_lock(&c->watch->lock);
    c->is_asking = true;
    set_end(c, in_seconds(seconds));
    pthread_mutex_unlock(&c->watch->lock);
}

bool http_client_set_exchange(struct http_client *c, void *exchange)
{
    pthread_mutex_lock(&c->watch->lock);
    c->exchange = exchange;
    bool has_left = c->has_left;
    pthread_mutex_unlock(&c->watch->lock);
    return has_left;
}

bool http_client_has_read(struct http_client *c)
{
    pthread_mutex_lock(&c->watch->lock);
    bool in_time = !c->is_cut;
    set_end(c, never_ns);
    pthread_mutex_unlock(&c->watch->lock);
    return in_time;
}

void http_client_end(struct http_client *c, double seconds)
{
    pthread_mutex_lock(&c->watch->lock);
    c->is_asking = false;
    c->exchange = NULL;
    set_end(c, in_seconds(seconds));
    if (c->watch->closes_idle) {
        cut(c);
    }
    pthread_mutex_unlock(&c->watch->lock);
}

void http_client_cut(struct http_client *c)
{
    pthread_mutex_lock(&c->watch->lock);
    cut(c);
    pthread_mutex_unlock(&c->watch->lock);
}

void http_client_say(struct http_client *c, const char *bytes, size_t n)
{
    pthread_mutex_lock(&c->watch->lock);
    say(c, bytes, n);
    pthread_mutex_unlock(&c->watch->lock);
}
