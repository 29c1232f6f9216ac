/* http: a server of HTTP/1.1 on a TCP port, a unix socket or a socket that systemd opened (RFC 9110, RFC
 * 9112).  libmicrohttpd is known to http_mhd.c only; http_gate.h says which requests are let in.
 *
 * The rules:
 *   - The owner's handler is called once for each request, in a thread of the server, when its body is whole.
 *     It ends the exchange at once, or keeps it, and ends it later from any thread.
 *   - A client that closes the side on which it sends (a half-closed connection) counts as gone.
 *   - Each exchange is ended exactly once, by http_reply or http_stream_end, also when the client has left.
 *     It may not be touched afterwards.
 *   - Memory is bounded before anything is read: connections, bytes of a body, bytes of all bodies, and
 *     bytes that a client has not fetched yet. */
#ifndef KILN_HTTP_HTTP_H
#define KILN_HTTP_HTTP_H

#include "core/buf.h"

#include <stdint.h>

/* Texts and lists are borrowed for as long as the server lives. */
struct http_options {
    const char *host;        /* an address of this machine, or "localhost"; with a port of 0 .. 65535 */
    int port;                /* 0: any that is free (http_server_port) */
    const char *unix_socket; /* the path of one, instead of a port; NULL: none */
    int socket;              /* a listening socket instead of both; -1: none */
    int n_threads;           /* threads that call the handler */
    int max_connections, max_connections_per_address;
    size_t max_body_bytes, max_all_body_bytes; /* largest body of a request, and of all open requests */
    size_t max_unread_bytes;       /* unsent bytes of a stream, above which the client counts as gone */
    double request_read_timeout_s; /* time for the whole head and body of a request */
    double idle_timeout_s;         /* time of a connection between requests */
    /* "host" or "host:port": names by which the server is called; with n_hosts 0, on a loopback address
     * only names of loopback are, and on others all names are */
    const char *const *hosts;
    int n_hosts;
    const char *const
        *origins; /* origins of pages that may send requests (CORS); "*": all; none by default */
    int n_origins;
    const char *const
        *keys;  /* one of them must be sent, as "Authorization: Bearer KEY" or "X-Api-Key: KEY" */
    int n_keys; /* 0: none is asked for */
};

/* Options of a server for programs of this host. */
struct http_options http_defaults(void);

struct http_exchange;

/* The functions that answer requests. */
struct http_handler {
    /* A request whose body is whole. */
    void (*handle)(void *self, struct http_exchange *x);

    /* Whether `path` is answered to this method without a key. */
    bool (*is_open)(void *self, const char *method, const char *path);

    /* Appends the body of an error that the server itself answers, in the form of the path's clients;
     * returns its content type.  `path`: "" before it was read.  Any thread, and no exchange may be used. */
    const char *(*describe_error)(void *self, struct buf *out, const char *path, int status,
                                  const char *message);

    /* An exchange has ended with this status, 0 if nothing was sent; once for each request, those included
     * that were not handled.  Its request may be read, and its owner is freed here. */
    void (*ended)(void *self, const struct http_exchange *x, int status, size_t n_bytes, double seconds);
    void *self;
};

struct http_server;

/* Opens the socket, which accepts connections from now on.  The handler is copied.  STATUS_UNAVAILABLE: kiln
 * was built without libmicrohttpd; STATUS_USAGE: the address is not one, or in use (says by what to change
 * it); STATUS_IO. */
struct status http_server_create(struct http_server **s, const struct http_options *o,
                                 const struct http_handler *handler);

/* Port that the server listens on; 0: a unix socket. */
int http_server_port(const struct http_server *s);

/* No new connection is accepted, and those without a request are closed; exchanges go on. */
void http_server_close_door(struct http_server *s);

/* How many exchanges have not ended. */
int64_t http_server_exchanges(const struct http_server *s);

/* Waits until every exchange has ended, at most `seconds`; false: some have not. */
bool http_server_wait(struct http_server *s, double seconds);

/* Breaks off what is still sent and frees the server; every exchange must have been ended.  Safe on NULL. */
void http_server_destroy(struct http_server *s);

/* The version of libmicrohttpd; NULL: kiln was built without it. */
const char *http_server_library(void);

/* ---- a request, which can be read until its exchange ends ---- */

/* Method of the request, such as "POST". */
const char *http_method(const struct http_exchange *x);
const char *http_path(const struct http_exchange *x);  /* from "/" on, decoded once; without the query */
const char *http_query(const struct http_exchange *x); /* behind the "?", as it was sent; "" for none */
const char *http_body(const struct http_exchange *x, size_t *n); /* followed by a NUL */
const char *http_address(const struct http_exchange *x); /* address of the client, for logs: "127.0.0.1" */

/* The value of a header of any case; NULL: it was not sent. */
const char *http_header(const struct http_exchange *x, const char *name);

/* When the request's head was read, in ns of core/clock. */
int64_t http_began_ns(const struct http_exchange *x);

/* A pointer of the handler's own, NULL at first. */
void http_set_owner(struct http_exchange *x, void *owner);
void *http_owner(const struct http_exchange *x);

/* Whether nobody waits for the answer any more.  Any thread. */
bool http_has_left(const struct http_exchange *x);

/* ---- its answer ---- */

/* Calls f(self) soon, once, in a thread of the server; for an exchange that is kept.  Calls of one exchange
 * run one after another, in the order in which they were made.  Any thread. */
void http_call(struct http_exchange *x, void (*f)(void *self), void *self);

/* Adds a header to the answer that has not begun.  The texts are copied. */
void http_add_header(struct http_exchange *x, const char *name, const char *value);

/* Ends the exchange with a status and a body, which is taken over; NULL: none. HEAD gets no body. */
void http_reply(struct http_exchange *x, int status, const char *content_type, struct buf *body);

/* Begins an answer that is sent as it comes. */
void http_stream_begin(struct http_exchange *x, int status, const char *content_type);

/* Sends bytes, which are copied; nothing if the client has left. */
void http_stream_write(struct http_exchange *x, const void *bytes, size_t n);

/* Ends the exchange once all is sent; broken off if `is_whole` is false, so that the client sees it. */
void http_stream_end(struct http_exchange *x, bool is_whole);

#endif
