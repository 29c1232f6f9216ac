/* http_answer: what a server says before the bytes, read from its header lines, which may be anything. */
#ifndef KILN_FETCH_HTTP_ANSWER_H
#define KILN_FETCH_HTTP_ANSWER_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct http_answer {
    long code;             /* 200, 206, 404, ... */
    int64_t begin;         /* where in the file the bytes begin: 0 but for 206 */
    int64_t total;         /* bytes of the whole file; -1: not told */
    bool marks_end;        /* an end that comes too early is noticed: a length, chunks, or HTTP/2 */
    int64_t retry_after_s; /* -1: not told */
    char validator[256];   /* what If-Range takes: a strong ETag, else Last-Modified; "" if there is none */
};

/* Nothing is told. */
void http_answer_init(struct http_answer *answer);

/* Takes a line, with or without its end.  A status line begins anew: each redirect has headers of its own, and the last count. */
void http_answer_take(struct http_answer *answer, const char *line, size_t n);

#endif
