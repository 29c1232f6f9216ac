/* http_gate: which requests are let in.  Pure functions of a request's head, without libmicrohttpd, whose
 * parser lets more pass than RFC 9112 does.
 *
 * http_head_read refuses what two programs may read in two ways, one of which sees a second request hidden in
 * the first: a body whose length is said twice, names with blanks, values with control characters.
 * http_gate_check refuses what a web page of somebody else could send through a user's browser: names of
 * hosts and origins that are not the server's, and POST without application/json, which a form can send. */
#ifndef KILN_HTTP_HTTP_GATE_H
#define KILN_HTTP_HTTP_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_field {
    const char *name, *value;
};

struct http_head {
    /* Texts as they were sent; values without the blanks in front. */
    const char *method, *target, *version;
    const struct http_field *fields;
    int n_fields;

    /* Set by http_head_read. */
    const char *path;      /* decoded once; "*" of OPTIONS */
    const char *query;     /* query as it was sent; "" for none */
    const char *authority; /* by which the server is called, "host" or "host:port"; "" in HTTP/1.0 without */
    int64_t body_bytes;    /* -1: it is chunked */
};

struct http_refusal {
    int status; /* 0: not refused */
    char message[160];
};

/* Reads a head; `room` has strlen(target) + 3 bytes, in which path and authority lie. */
struct http_refusal http_head_read(struct http_head *h, char *room);

/* The value of a field of any case; NULL: it was not sent. */
const char *http_head_find(const struct http_head *h, const char *name);

/* The part of http_options that the gate needs. */
struct http_gate {
    const char *const *hosts;
    int n_hosts;
    bool is_loopback; /* with n_hosts 0 only names of loopback are called */
    const char *const *origins;
    int n_origins;
    const char *const *keys;
    int n_keys;
    size_t max_body_bytes;
};

/* Whether a request may be answered; `is_open`: without a key. */
struct http_refusal http_gate_check(const struct http_gate *g, const struct http_head *h, bool is_open);

/* The origin of the page that may read the answer, to be named in it; NULL: no page of another origin. */
const char *http_gate_origin(const struct http_gate *g, const struct http_head *h);

#endif
