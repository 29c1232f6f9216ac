/* scatter_files: many files that grow together by appending, in bounded memory and with one open at a time.
 *
 * The rule: they are scratch: a run that dies leaves them, and nothing continues them. */
#ifndef KILN_IO_SCATTER_FILES_H
#define KILN_IO_SCATTER_FILES_H

#include "io/file.h"

struct scatter_files {
    char prefix[FILE_PATH_BYTES];
    int n;
    size_t buffer_bytes;    /* size of the buffer of each file */
    unsigned char *buffers; /* [n, buffer_bytes]; NULL: not open */
    size_t *buffered;       /* [n] */
    struct status status;   /* the first failure */
};

/* The path of file i. */
void scatter_files_path(char path[FILE_PATH_BYTES], const char *prefix, int i);

/* Begins n files PREFIX0, PREFIX1, ..., none of which exists, with about `memory` bytes of buffers.
 * STATUS_MEMORY. */
struct status scatter_files_open(struct scatter_files *s, const char *prefix, int n, size_t memory);

/* Appends to file i, which exists from the first byte on. */
void scatter_files_put(struct scatter_files *s, int i, const void *bytes, size_t n);

/* Writes out what is buffered, and closes: the first failure so far.  Safe on a zeroed struct. */
struct status scatter_files_close(struct scatter_files *s);

#endif
