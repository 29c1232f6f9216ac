/* http_answer: reads a server's header lines, which may contain anything. */
#ifndef KILN_FETCH_HTTP_ANSWER_H
#define KILN_FETCH_HTTP_ANSWER_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct http_answer {
    long code;             /* 200, 206, 404, ... */
    int64_t begin;         /* where in the file the bytes begin: 0 except for 206 */
    int64_t total;         /* bytes of the whole file; -1: not told */
    bool marks_end;        /* an early end would be detected: by a length, chunks, or HTTP/2 */
    int64_t retry_after_s; /* -1: not told */
    char validator[256];   /* value for If-Range: a strong ETag, else Last-Modified; "" if there is none */
};

/* Sets everything to unknown. */
void http_answer_init(struct http_answer *answer);

/* Reads a line, with or without its end.  A status line resets everything: each redirect has its own headers,
 * and only the last ones count. */
void http_answer_take(struct http_answer *answer, const char *line, size_t n);

#endif
