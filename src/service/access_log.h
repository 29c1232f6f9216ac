/* access_log: a JSON line for each request that has ended, without texts, queries or keys. Each line is
 * written in one piece, so that lines of threads do not mix; on a full disk lines are lost, and requests
 * continue. */
#ifndef KILN_SERVICE_ACCESS_LOG_H
#define KILN_SERVICE_ACCESS_LOG_H

#include "http/http.h"

#include <stdatomic.h>

struct call;

struct access_log {
    int fd;
    atomic_bool fails; /* the last line was lost */
};

/* Appends to a file; "-" is standard error.  STATUS_IO. */
struct status access_log_open(struct access_log *log, const char *path);
void access_log_close(struct access_log *log);

/* Writes the line of a request that has ended, from any thread; `c` may be NULL, where the server itself has
 * answered. */
void access_log_write(struct access_log *log, const struct http_exchange *x, const struct call *c, int status,
                      size_t n_bytes, double seconds);

#endif
