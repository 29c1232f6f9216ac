/* http_get: one GET over HTTP or HTTPS.  libcurl does it (http_curl.c); a build without it says so
 * (http_absent.c). */
#ifndef KILN_FETCH_HTTP_GET_H
#define KILN_FETCH_HTTP_GET_H

#include "fetch/http_answer.h"

struct http_get {
    const char *url;
    int64_t from; /* first byte wanted; 0: all */
    /* name of the version of the bytes before `from` (If-Range, RFC 9110 section 13.1.5) */
    const char *validator;
    /* the proxy for every host; NULL: from the environment, by libcurl's rules (http_proxy, no_proxy ...) */
    const char *proxy;
    int64_t stall_s; /* less than a KiB a second for so long ends the transfer */
    void *context;   /* argument of the two functions below, whose errors end the transfer */
    struct status (*begin)(void *context,
                           const struct http_answer *answer); /* called for 2xx, before the first byte */
    struct status (*put)(void *context, const void *bytes, size_t n);
};

enum http_end {
    HTTP_WHOLE,       /* the server sent all that it meant to */
    HTTP_UNREACHABLE, /* no connection, or none that can be trusted */
    HTTP_BROKEN,      /* the connection ended early or stalled */
    HTTP_REFUSED,     /* HTTP code 400 or more */
    HTTP_FAILED,      /* permanent: redirects, the caller's error, a signal (core/stop.h) */
};

/* Follows up to 10 redirects, to HTTP and HTTPS only, and from HTTPS to HTTPS only.  OK only with
 * HTTP_WHOLE. */
struct status http_get(const struct http_get *get, enum http_end *end, struct http_answer *answer);

/* libcurl's version and its libraries; NULL if it is not built in or not installed. */
const char *http_version(void);

#endif
