/* download: a file from the network appears under its name only when it is complete and checked.
 *
 * Bytes collect in PATH.part; PATH.part.from records the URL and the version (ETag or Last-Modified) that
 * they belong to, so that a later process can resume.  PATH.part is renamed to PATH when its length is the
 * one that the server announced and its checksum, where known, is right.  It is locked, so that two processes
 * never write the same file. */
#ifndef KILN_FETCH_DOWNLOAD_H
#define KILN_FETCH_DOWNLOAD_H

#include "core/status.h"

#include <stdint.h>

/* Settings for all files of a run. */
struct download_manner {
    const char *proxy;   /* NULL: from the environment */
    int64_t tries;       /* consecutive attempts without a new byte before giving up */
    double retry_wait_s; /* before the second attempt; doubles each time, up to a minute */
    int64_t stall_s;     /* less than a KiB a second for so long ends an attempt */
    int64_t most_bytes;  /* largest file; 0: what the disk has room for */
};

struct download {
    const char *url, *path;
    int64_t bytes;   /* -1: not known before */
    const char *sum; /* MD5 or SHA-256 in hexadecimal digits; NULL: not known */
};

/* Creates missing directories.  An existing file is checked and kept (*was_there); STATUS_DATA if it does not
 * match.  STATUS_UNAVAILABLE: no network, no such server, or a server that is busy; STATUS_DATA: the server
 * does not have the file, or its length or checksum is wrong; STATUS_IO: gave up after too many
 * interruptions, disk full, or another process downloads it; STATUS_PREEMPTED: a signal.  Bytes that arrived
 * are kept where they can be resumed, except after a wrong checksum. */
struct status download_file(const struct download *d, const struct download_manner *manner, bool *was_there);

#endif
