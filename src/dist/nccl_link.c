#include "dist/nccl_link.h"

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the flight recorder: the last collectives of a rank, and how far each has come, for whoever asks after
 * a hang which rank was where: each rank writes its own, and they are compared ---- */

enum { FLIGHT_RECORDS = 64 };

/* Given up: it had not ended when the communicator was. */
enum flight_state { FLIGHT_GIVEN, FLIGHT_STARTED, FLIGHT_ENDED, FLIGHT_GIVEN_UP };

/* Record of one collective.  Times are core/clock.h's; 0: not yet.  Start and end have the time when they
 * were first seen. */
struct flight {
    int64_t number; /* number of the collective, from 1 */
    struct comm_call call;
    enum flight_state state;
    int64_t given_ns, started_ns, ended_ns;
};

struct flight_recorder {
    int64_t n; /* recorded so far; a new one takes the place of that FLIGHT_RECORDS before */
    struct flight flights[FLIGHT_RECORDS];
};

static struct flight *flight_recorder_at(struct flight_recorder *r, int64_t number)
{
    return &r->flights[(number - 1) % FLIGHT_RECORDS];
}

/* Adds a record, with the next number. */
static struct flight *flight_recorder_add(struct flight_recorder *r, const struct comm_call *call)
{
    struct flight *f = flight_recorder_at(r, ++r->n);
    *f = (struct flight){.number = r->n, .call = *call, .given_ns = clock_ns()};
    return f;
}

static json_t *time_of(int64_t ns)
{
    return ns == 0 ? json_null() : json_real(clock_wall_s() - clock_since_s(ns));
}

/* NULL if memory runs out. */
static json_t *flight_to_json(const struct flight *f)
{
    static const char *const states[] = {"given", "started", "ended", "given up"};
    const struct comm_call *c = &f->call;
    return json_pack("{s:I, s:s, s:s, s:I, s:I, s:i, s:s, s:o, s:o, s:o}", "number", (json_int_t)f->number,
                     "kind", comm_call_name(c->kind), "dtype", dtype_name(c->dtype), "elements",
                     (json_int_t)c->count, "bytes", (json_int_t)c->count * (json_int_t)dtype_bytes(c->dtype),
                     "root", c->root, "state", states[f->state], "given_s", time_of(f->given_ns), "started_s",
                     time_of(f->started_ns), "ended_s", time_of(f->ended_ns));
}

static char *to_text(const struct flight_recorder *r, int rank, int n_ranks, struct status why)
{
    json_t *flights = json_array();
    int64_t n = r->n < FLIGHT_RECORDS ? r->n : FLIGHT_RECORDS;
    for (int64_t i = r->n - n; i < r->n; i++) {
        json_array_append_new(flights, flight_to_json(&r->flights[i % FLIGHT_RECORDS]));
    }
    json_t *all = json_pack("{s:i, s:i, s:o, s:o}", "rank", rank, "ranks", n_ranks, "error",
                            json_text(why.message), "collectives", flights);
    char *text = all == NULL ? NULL : json_to_text(all);
    json_decref(all);
    return text;
}

/* {"rank": 0, "ranks": 2, "error": "...", "collectives": [{"number": 7, "kind": "a sum", "dtype": "fp32",
 * "elements": 512, "bytes": 2048, "root": 0, "state": "ended", "given_s": ..., "started_s": ..., "ended_s":
 * ...}]}, the oldest first.  Seconds are since 1970; null: not yet.  STATUS_IO, STATUS_MEMORY. */
static struct status flight_recorder_write(const struct flight_recorder *r, const char *path, int rank,
                                           int n_ranks, struct status why)
{
    char *text = to_text(r, rank, n_ranks, why);
    FAIL_IF(text == NULL, STATUS_MEMORY, "out of memory to write %s", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
                  0666); /* a pipe must not hold a rank that ends */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = file != NULL && fputs(text, file) >= 0;
    bool closed = file != NULL && fclose(file) == 0;
    free(text);
    return written && closed ? status_ok()
                             : status_error(STATUS_IO, "%s cannot be written: %s", path, strerror(errno));
}

/* ---- the link ---- */

/* Two locks: `mutex` for the fields, held for moments; `calls` while NCCL is called, since it is one thread
 * at a time that may.  Who ends the communicator waits for `calls` only a while: a call that never returns is
 * a hang too. */
struct nccl_link {
    struct nccl_link_config config;
    char record[512];
    const struct nccl_library *library;
    const struct device_streams *streams;
    const void *context; /* the exec's */
    void *stream;
    pthread_mutex_t calls;
    void *comm; /* NULL: ended */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_thread, is_closing;
    struct status failure;
    struct flight_recorder flights;
    int64_t n_marked; /* collectives that were queued with the mark at their end */
    int64_t n_ended;
    pthread_t thread;
};

/* Marks of the stream: before and after each collective of the recorder. */
enum { START, END, MARKS_EACH };

/* The number by which errors name this rank. */
static int own_number(const struct nccl_link *l)
{
    return comm_number(&l->config.control->numbers, l->config.control->rank);
}

static int world_of(const struct nccl_link *l)
{
    return l->config.control->numbers.world;
}

static int mark_of(int64_t number, int which)
{
    return (int)((number - 1) % FLIGHT_RECORDS) * MARKS_EACH + which;
}

static int64_t deadline_ns(const struct nccl_link *l)
{
    return (int64_t)(l->config.deadline_s * 1e9);
}

/* Time between two polls of what gives no notice when it changes. */
static int64_t pause_ns(const struct nccl_link *l)
{
    int64_t pause = deadline_ns(l) / 50;
    return pause < 1000000 ? 1000000 : pause > 50000000 ? 50000000 : pause;
}

static struct timespec time_after(clockid_t clock, int64_t ns)
{
    struct timespec t;
    clock_gettime(clock, &t);
    ns += t.tv_nsec;
    return (struct timespec){.tv_sec = t.tv_sec + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

struct status nccl_link_check(struct nccl_link *link)
{
    pthread_mutex_lock(&link->mutex);
    struct status s = link->failure;
    pthread_mutex_unlock(&link->mutex);
    return s;
}

/* ---- the end ---- */

/* Stores the error that stays, and marks the collectives that have not ended as given up.  False: there was
 * an error before. */
static bool take_failure(struct nccl_link *l, struct status why)
{
    pthread_mutex_lock(&l->mutex);
    bool is_first = !failed(l->failure);
    if (is_first) {
        l->failure = why;
        for (int64_t i = l->n_ended + 1; i <= l->flights.n; i++) {
            flight_recorder_at(&l->flights, i)->state = FLIGHT_GIVEN_UP;
        }
    }
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->mutex);
    return is_first;
}

static void write_record(const struct nccl_link *l, struct status why)
{
    struct status s = l->record[0] == '\0'
                          ? status_ok()
                          : flight_recorder_write(&l->flights, l->record, own_number(l), world_of(l), why);
    if (failed(s)) {
        log_warning("the last collectives are not recorded: %s", s.message);
    }
}

static void cancel_comm(struct nccl_link *l)
{
    int64_t grace = deadline_ns(l) < 1000000000 ? deadline_ns(l) : 1000000000;
    struct timespec end = time_after(CLOCK_REALTIME, grace);
    bool is_locked = pthread_mutex_timedlock(&l->calls, &end) == 0;
    if (l->comm != NULL) {
        l->library->cancel(l->comm);
        l->comm = NULL;
    }
    if (is_locked) {
        pthread_mutex_unlock(&l->calls);
    }
}

/* Acts once, for the first error: the record's file is written before other ranks hear of the error.  The
 * error is logged too, since this rank may be waiting for a rank that never comes, and then returns another
 * error. */
void nccl_link_end(struct nccl_link *link, struct status why)
{
    if (take_failure(link, why)) {
        log_warning("rank %d gives up NCCL: %s", own_number(link), why.message);
        write_record(link, why);
        cancel_comm(link);
    }
}

/* ---- calls of NCCL: `calls` is held ---- */

static struct status refuse(const struct nccl_link *l, const char *what, int result)
{
    const char *last = l->library->last_error(l->comm);
    return status_error(STATUS_INTERNAL, "%s of NCCL failed: %s%s%.160s", what,
                        l->library->error_string(result), last != NULL && last[0] != '\0' ? ": " : "",
                        last != NULL ? last : "");
}

/* A communicator that does not block says that it is in progress, and is asked until it is not. */
static struct status settle(struct nccl_link *l, const char *what, int result)
{
    int64_t start = clock_ns();
    struct timespec pause = {.tv_nsec = 100000};
    while (result == NCCL_IN_PROGRESS) {
        TRY(nccl_link_check(l));
        FAIL_IF(clock_ns() - start > deadline_ns(l), STATUS_INTERNAL,
                "rank %d of %d waited %.1f s in %s of NCCL for the other ranks", own_number(l), world_of(l),
                l->config.deadline_s, what);
        nanosleep(&pause, NULL);
        int state = NCCL_SUCCESS, asked = l->library->get_async_error(l->comm, &state);
        result = asked == NCCL_SUCCESS ? state : asked;
    }
    return result == NCCL_SUCCESS ? nccl_link_check(l) : refuse(l, what, result);
}

/* ---- the thread that watches ---- */

/* "ranks 0 to 7", "ranks 1 to 7 by 2" */
static void put_ranks(const struct nccl_link *l, char text[64])
{
    const struct comm_numbers *n = &l->config.control->numbers;
    char by[24] = "";
    if (n->stride > 1) {
        snprintf(by, sizeof by, " by %d", n->stride);
    }
    snprintf(text, 64, "ranks %d to %d%s", n->first, comm_number(n, l->config.control->size - 1), by);
}

static struct status too_long(const struct nccl_link *l, const struct flight *f)
{
    char named[600] = "", ranks[64];
    put_ranks(l, ranks);
    if (l->record[0] != '\0') {
        snprintf(named, sizeof named, "; the last collectives are in %s", l->record);
    }
    return status_error(STATUS_INTERNAL,
                        "rank %d of %d waited %.1f s in %s of %lld elements of %s over NCCL for %s: one of "
                        "them did not join, or its connection is lost%s",
                        own_number(l), world_of(l), l->config.deadline_s, comm_call_name(f->call.kind),
                        (long long)f->call.count, dtype_name(f->call.dtype), ranks, named);
}

/* Sets *seen_ns to the present time if the mark has been reached, else to 0. */
static struct status look_at_mark(struct nccl_link *l, const struct flight *f, int which, int64_t *seen_ns)
{
    bool is_reached = false;
    TRY(l->streams->reached(l->stream, mark_of(f->number, which), &is_reached));
    *seen_ns = is_reached ? clock_ns() : 0;
    return status_ok();
}

/* Looks how far the oldest collective that has not ended has come.  Its time runs from its start, or while
 * the host is still in the call, from when it was given. */
static struct status look_at_oldest(struct nccl_link *l, bool *has_ended)
{
    struct flight *f = flight_recorder_at(&l->flights, l->n_ended + 1);
    *has_ended = false;
    if (f->number <= l->n_marked) {
        if (f->started_ns == 0) {
            TRY(look_at_mark(l, f, START, &f->started_ns));
            f->state = f->started_ns == 0 ? FLIGHT_GIVEN : FLIGHT_STARTED;
        }
        TRY(look_at_mark(l, f, END, &f->ended_ns));
        f->state = f->ended_ns == 0 ? f->state : FLIGHT_ENDED;
        *has_ended = f->ended_ns != 0;
    }
    int64_t from = f->number <= l->n_marked ? f->started_ns : f->given_ns;
    return *has_ended || from == 0 || clock_ns() - from < deadline_ns(l) ? status_ok() : too_long(l, f);
}

static struct status look(struct nccl_link *l)
{
    bool has_ended = true;
    while (l->n_ended < l->flights.n && has_ended) {
        TRY(look_at_oldest(l, &has_ended));
        l->n_ended += has_ended;
    }
    pthread_cond_broadcast(&l->changed);
    return status_ok();
}

/* An error that NCCL has found: a connection that was closed, a rank that is gone.  Skipped while NCCL is
 * called. */
static struct status look_at_errors(struct nccl_link *l)
{
    struct status s = status_ok();
    if (pthread_mutex_trylock(&l->calls) == 0) {
        int state = NCCL_SUCCESS;
        int asked = l->comm == NULL ? NCCL_SUCCESS : l->library->get_async_error(l->comm, &state);
        int result = asked == NCCL_SUCCESS ? state : asked;
        if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS) {
            s = refuse(l, "a collective", result);
        }
        pthread_mutex_unlock(&l->calls);
    }
    return s;
}

static void *watch(void *link)
{
    struct nccl_link *l = link;
    pthread_mutex_lock(&l->mutex);
    while (!l->is_closing && !failed(l->failure)) {
        if (l->n_ended == l->flights.n) {
            pthread_cond_wait(&l->changed, &l->mutex);
            continue;
        }
        struct timespec end = time_after(CLOCK_MONOTONIC, pause_ns(l));
        pthread_cond_timedwait(&l->changed, &l->mutex, &end);
        struct status s = look(l);
        pthread_mutex_unlock(&l->mutex);
        s = failed(s) ? s : comm_lost(l->config.control);
        s = failed(s) ? s : look_at_errors(l);
        if (failed(s)) {
            nccl_link_end(l, s);
        }
        pthread_mutex_lock(&l->mutex);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* ---- collectives ---- */

/* Adds a record, once there is space: it takes the place of that of a collective that has ended. */
static struct status begin(struct nccl_link *l, const struct comm_call *call, int64_t *number)
{
    pthread_mutex_lock(&l->mutex);
    while (l->flights.n - l->n_ended == FLIGHT_RECORDS && !failed(l->failure)) {
        pthread_cond_wait(&l->changed, &l->mutex);
    }
    struct status s = l->failure;
    if (!failed(s)) {
        *number = flight_recorder_add(&l->flights, call)->number;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->mutex);
    return s;
}

static struct status give(struct nccl_link *l, int64_t number, nccl_collective *queue, const void *arguments)
{
    TRY(l->streams->follow(l->stream));
    TRY(l->streams->mark(l->stream, mark_of(number, START)));
    pthread_mutex_lock(&l->calls);
    struct status s = nccl_link_check(l);
    if (!failed(s)) {
        s = settle(l, "a collective", queue(l->library, l->comm, l->streams->handle(l->stream), arguments));
    }
    pthread_mutex_unlock(&l->calls);
    TRY(s);
    TRY(l->streams->mark(l->stream, mark_of(number, END)));
    pthread_mutex_lock(&l->mutex);
    l->n_marked = number;
    pthread_mutex_unlock(&l->mutex);
    return status_ok();
}

struct status nccl_link_queue(struct nccl_link *link, const struct comm_call *call, nccl_collective *queue,
                              const void *arguments)
{
    int64_t number = 0;
    TRY(begin(link, call, &number));
    struct status s = give(link, number, queue, arguments);
    if (failed(s)) {
        nccl_link_end(link, s);
    }
    return nccl_link_check(link);
}

struct status nccl_link_join(struct nccl_link *link)
{
    TRY(nccl_link_check(link));
    return link->streams->lead(link->stream);
}

bool nccl_link_is_of(const struct nccl_link *link, const struct exec *x)
{
    return link->context == x->context;
}

/* ---- life ---- */

static struct status connect(struct nccl_link *l, struct nccl_id id)
{
    struct nccl_config config = {.bytes = sizeof config, .magic = 0xcafebeefu, .version = NCCL_OLDEST};
    pthread_mutex_lock(&l->calls);
    int result = l->library->init(&l->comm, l->config.control->size, id, l->config.control->rank, &config);
    struct status s = settle(l, "the start", result);
    pthread_mutex_unlock(&l->calls);
    return s;
}

static void open_locks(struct nccl_link *l)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_mutex_init(&l->calls, NULL);
    pthread_cond_init(&l->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct status nccl_link_open(struct nccl_link **link, const struct nccl_library *library, struct nccl_id id,
                             const struct exec *x, const struct nccl_link_config *config)
{
    struct nccl_link *l = calloc(1, sizeof *l);
    *link = NULL;
    FAIL_IF(l == NULL, STATUS_MEMORY, "out of memory for a communicator of NCCL");
    *l = (struct nccl_link){
        .config = *config, .library = library, .streams = x->device->streams, .context = x->context};
    snprintf(l->record, sizeof l->record, "%s", config->record == NULL ? "" : config->record);
    open_locks(l);
    struct status s = l->streams->open(&l->stream, x->context, FLIGHT_RECORDS * MARKS_EACH);
    s = failed(s) ? s : connect(l, id);
    if (!failed(s)) {
        l->has_thread = pthread_create(&l->thread, NULL, watch, l) == 0;
        s = l->has_thread ? s : status_error(STATUS_MEMORY, "cannot start the thread that watches NCCL");
    }
    if (failed(s)) {
        nccl_link_end(l, s);
        nccl_link_close(l);
        return s;
    }
    *link = l;
    return s;
}

/* Finalizing ends what was queued, on all ranks; a rank that cannot wait for that ends it. */
static void disconnect(struct nccl_link *l)
{
    if (failed(nccl_link_check(l)) || l->comm == NULL) {
        return;
    }
    pthread_mutex_lock(&l->calls);
    struct status s = settle(l, "the end", l->library->finalize(l->comm));
    if (!failed(s)) {
        l->library->destroy(l->comm);
        l->comm = NULL;
    }
    pthread_mutex_unlock(&l->calls);
    if (failed(s)) {
        nccl_link_end(l, s);
    }
}

void nccl_link_close(struct nccl_link *link)
{
    if (link == NULL) {
        return;
    }
    disconnect(link);
    pthread_mutex_lock(&link->mutex);
    link->is_closing = true;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->mutex);
    if (link->has_thread) {
        pthread_join(link->thread, NULL);
    }
    if (link->stream != NULL) {
        link->streams->close(link->stream);
    }
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->calls);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}
