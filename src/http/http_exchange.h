/* http_exchange: a request, its answer, and who holds them; private to this room.
 *
 * An exchange is held by the connection until it is done with it, by its owner until it is ended, and by each
 * call that waits in the workers.  Who lets go last frees it. */
#ifndef KILN_HTTP_HTTP_EXCHANGE_H
#define KILN_HTTP_HTTP_EXCHANGE_H

#include "http/http.h"
#include "http/http_address.h"
#include "http/http_gate.h"
#include "http/http_watch.h"
#include "http/http_workers.h"

#include <pthread.h>
#include <stdatomic.h>

struct http_server {
    struct http_options o;
    struct http_handler handler;
    struct http_gate gate;
    struct http_address address;
    struct http_watch *watch;
    struct http_workers *workers;
    void *library;         /* http_mhd.h's */
    atomic_bool is_closed; /* the door */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t n_exchanges;
    size_t n_body_bytes; /* bytes of the bodies of all exchanges */
};

struct http_exchange {
    struct http_server *server;
    struct http_line line; /* calls that wait for a worker */
    atomic_int n_holders;
    void *owner;
    atomic_bool has_left;

    /* The request, which only the connection's thread changes, before the handler has it. */
    struct http_head head;
    char *texts, *room; /* buffer of the head's texts, and after them that of http_head_read */
    struct buf body;
    size_t n_reserved; /* this exchange's share of the server's n_body_bytes */
    char address[48];
    int64_t began_ns;
    const char *raw_target;         /* target as http_mhd.c got it */
    bool is_read, is_whole_request; /* the head was read; the body too */

    /* The answer, for whoever has the lock. */
    pthread_mutex_t lock;
    void *connection; /* http_mhd.h's; NULL: it is done */
    struct http_client *client;
    bool is_suspended;
    int status;         /* 0: not answered yet */
    struct buf headers; /* name, NUL, value, NUL ... */
    struct buf answer;  /* body; of a stream the part after the first n_sent bytes is not sent yet */
    size_t n_sent, n_bytes;
    bool is_stream, is_ended, is_whole;
    atomic_int sent_status; /* 0: none */
};

/* Begins an exchange on a connection, which holds it; `target` is copied.  NULL: out of memory. */
struct http_exchange *http_exchange_create(struct http_server *s, void *connection,
                                           struct http_client *client, const char *target);
void http_exchange_let_go(struct http_exchange *x);

/* Counts n more bytes of its body against the limits. */
struct http_refusal http_exchange_reserve(struct http_exchange *x, size_t n);

/* The client waits no more. */
void http_exchange_leave(struct http_exchange *x);

/* Lets the handler have it, in a worker. */
void http_exchange_handle(struct http_exchange *x);

/* The answer, with the headers that each has; takes the body over.  With the lock. */
void http_exchange_answer(struct http_exchange *x, int status, const char *content_type, struct buf *body);

/* The answers that the server itself gives. */
void http_exchange_answer_refusal(struct http_exchange *x, struct http_refusal r);
void http_exchange_answer_options(struct http_exchange *x);

/* Calls `add` for each header of the answer. */
void http_exchange_each_header(const struct http_exchange *x,
                               void (*add)(void *self, const char *name, const char *value), void *self);

/* An error as bytes, for a client that the connection's thread cannot answer. */
void http_exchange_print_refusal(const struct http_handler *h, struct buf *out, const char *path,
                                 struct http_refusal r, const char *reason);

#endif
