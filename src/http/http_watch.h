/* http_watch: a thread beside the one that reads and writes, which sees that a client has left while nobody
 * reads from it, and ends connections that take too long.
 *
 * It has a descriptor of its own for each connection (dup).  A client that closes the side on which it sends
 * counts as gone: a FIN does not say more. */
#ifndef KILN_HTTP_HTTP_WATCH_H
#define KILN_HTTP_HTTP_WATCH_H

#include "core/buf.h"

/* Descriptors that it has at most, besides one for each connection. */
enum { HTTP_WATCH_DESCRIPTORS = 256 };

struct http_watch;
struct http_client; /* a connection */

/* Functions that the thread calls; no function of this file may be called from there. */
struct http_watch_events {
    /* The client of an exchange has left. */
    void (*left)(void *exchange);

    /* A request takes too long to arrive: appends what is sent before the connection ends.  `exchange`: NULL
     * before its head is read. */
    void (*late)(void *self, void *exchange, struct buf *last_words);
    void *self;
};

/* Starts the thread that watches.  STATUS_MEMORY, STATUS_IO. */
struct status http_watch_create(struct http_watch **w, const struct http_watch_events *events);

/* Every client must have been removed.  Safe on NULL. */
void http_watch_destroy(struct http_watch *w);

/* Ends, without a word, connections on which nothing is asked, now and whenever an answer has been sent. */
void http_watch_close_idle(struct http_watch *w);

/* A connection, which ends in so many seconds unless an exchange begins.  NULL: out of memory or
 * descriptors. */
struct http_client *http_client_add(struct http_watch *w, int fd, double seconds);

/* The connection was closed.  What its client sends on is read for a moment: else it would see an error in
 * place of the answer. */
void http_client_remove(struct http_client *c);

/* A request begins to arrive, for so many seconds at most. */
void http_client_begin(struct http_client *c, double seconds);

/* The head of a request is read. True: the client has left already. */
bool http_client_set_exchange(struct http_client *c, void *exchange);

/* The body is read too, and no time is set any more.  False: it was late, and the connection has ended. */
bool http_client_has_read(struct http_client *c);

/* The exchange has ended; the next one has so many seconds to begin. */
void http_client_end(struct http_client *c, double seconds);

/* Ends the connection at once. */
void http_client_cut(struct http_client *c);

/* Sends bytes, as far as they fit, to a client whose request is still read. */
void http_client_say(struct http_client *c, const char *bytes, size_t n);

#endif
