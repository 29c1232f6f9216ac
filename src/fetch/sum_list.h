/* sum_list: lists of checksums by file name, as md5sum and sha256sum write them ("SUM  NAME"), or with the name first, as OSCAR
 * publishes them. */
#ifndef KILN_FETCH_SUM_LIST_H
#define KILN_FETCH_SUM_LIST_H

#include "core/buf.h"
#include "core/digest.h"

struct sum_list {
    struct buf text; /* of "SUM\0NAME\0" for each file, in the order of the list */
    size_t n;
};

/* Reads a list; empty lines and lines that begin with '#' are skipped.  STATUS_DATA names a line that does not fit, a name that is
 * not a plain file name, and a file of more than 16 MiB. */
struct status sum_list_read(struct sum_list *list, const char *path);

/* The same of bytes; `path` is for messages. */
struct status sum_list_parse(struct sum_list *list, const void *bytes, size_t n, const char *path);

void sum_list_fini(struct sum_list *list);

/* The checksum of a file, borrowed; NULL if the list has none.  Lists of dumps have a date where the name of a download has
 * "latest": both match. */
const char *sum_list_find(const struct sum_list *list, const char *name);

/* One after the other: *name, and its sum as the result; *at is 0 first.  NULL at the end. */
const char *sum_list_next(const struct sum_list *list, size_t *at, const char **name);

/* The digest of a file's bytes.  STATUS_PREEMPTED if a signal comes in between. */
struct status sum_of_file(struct digest_text *hex, enum digest_kind kind, const char *path);

/* Whether a file has the checksum, which is one.  STATUS_DATA names both if not. */
struct status sum_check_file(const char *path, const char *sum);

#endif
