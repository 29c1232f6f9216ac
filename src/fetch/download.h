/* download: a file from the network in its place, whole and checked, or not there.
 *
 * The bytes gather in PATH.part, and PATH.part.from says what they are of: another process goes on where one broke off, if
 * the server still has the same file (its ETag or Last-Modified).  The .part gets its name when its length is what the server
 * said and its checksum, where one is known, is right; it is locked, so two processes never write to one. */
#ifndef KILN_FETCH_DOWNLOAD_H
#define KILN_FETCH_DOWNLOAD_H

#include "core/status.h"

#include <stdint.h>

/* How, for all files of a run. */
struct download_manner {
    const char *proxy;   /* NULL: by the environment */
    int64_t tries;       /* in a row without a new byte, before it is given up */
    double retry_wait_s; /* before the second try; it doubles each time, up to a minute */
    int64_t stall_s;     /* less than a KiB a second for so long breaks a transfer off */
};

struct download {
    const char *url, *path;
    int64_t bytes;   /* -1: not known before */
    const char *sum; /* MD5 or SHA-256 in hexadecimal digits; NULL: not known */
};

/* Directories are made.  A file that is there already and fits is left as it is (*was_there); one that does not is
 * STATUS_DATA.  STATUS_UNAVAILABLE: no network, no such server, or one that asks to come back later; STATUS_DATA: the file is
 * not there, not as long as it should be, or has another checksum; STATUS_IO: broken off too often, disk full, another process
 * at it; STATUS_PREEMPTED: a signal.  What has come is kept but after a wrong checksum. */
struct status download_file(const struct download *d, const struct download_manner *manner, bool *was_there);

/* Whether a file that is there has the length and the checksum; STATUS_DATA says how not. */
struct status download_check(const struct download *d);

#endif
