/* http: one GET over HTTP or HTTPS.  libcurl does it (http_curl.c); a build without it says so (http_absent.c). */
#ifndef KILN_FETCH_HTTP_H
#define KILN_FETCH_HTTP_H

#include "fetch/http_answer.h"

struct http_get {
    const char *url;
    int64_t from; /* asks for the bytes from here on; 0: all */
    const char
        *validator;    /* ... if the file is still the one that this was said of (RFC 9110 section 13.1.5) */
    const char *proxy; /* NULL: by the environment, as libcurl takes it (http_proxy, no_proxy and so on) */
    int64_t stall_s;   /* less than a KiB a second for so long is an end */
    void *context;     /* of the two below, whose errors end the transfer */
    struct status (*begin)(void *context,
                           const struct http_answer *answer); /* of 2xx, before the first byte */
    struct status (*put)(void *context, const void *bytes, size_t n);
};

enum http_end {
    HTTP_WHOLE,       /* all that the server wanted to send is here */
    HTTP_UNREACHABLE, /* no connection came about */
    HTTP_BROKEN,      /* one did, and ended early or stalled */
    HTTP_REFUSED,     /* the code is 400 or more */
    HTTP_FAILED, /* it would fail again: a certificate, redirects, the caller's own error, a signal (core/stop.h) */
};

/* Follows up to 10 redirects, to HTTP and HTTPS only, and from HTTPS to HTTPS only.  OK only with HTTP_WHOLE. */
struct status http_get(const struct http_get *get, enum http_end *end, struct http_answer *answer);

/* libcurl's version and what it stands on; NULL if it is not built in or not on this machine. */
const char *http_version(void);

#endif
