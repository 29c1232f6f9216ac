/* sum_list: lists of checksums by file name, as md5sum and sha256sum write them ("SUM  NAME"), or with the
 * name first, as OSCAR publishes them. */
#ifndef KILN_IO_SUM_LIST_H
#define KILN_IO_SUM_LIST_H

#include "core/buf.h"
#include "core/digest.h"

struct sum_list {
    struct buf text; /* "SUM\0NAME\0" of each file, in the order of the list */
    size_t n;
};

/* Reads a list; empty lines and lines that begin with '#' are skipped.  STATUS_DATA names a malformed line, a
 * name that is not a plain file name, or a file of more than 16 MiB. */
struct status sum_list_read(struct sum_list *list, const char *path);

/* Reads a list from bytes as sum_list_read does; `path` is for messages. */
struct status sum_list_parse(struct sum_list *list, const void *bytes, size_t n, const char *path);

/* Frees the list; safe on a zeroed struct. */
void sum_list_fini(struct sum_list *list);

/* The checksum of a file, borrowed; NULL if the list has none.  Lists of dumps have a date where the name of
 * a download has "latest": both match. */
const char *sum_list_find(const struct sum_list *list, const char *name);

/* Walks the list: sets *name and returns its sum; *at is 0 at first.  NULL at the end. */
const char *sum_list_next(const struct sum_list *list, size_t *at, const char **name);

/* The digest of a file's bytes.  STATUS_PREEMPTED if a signal interrupts it. */
struct status sum_of_file(struct digest_text *hex, enum digest_kind kind, const char *path);

/* Whether a file has this checksum, which must be valid.  STATUS_DATA, with both checksums, if not. */
struct status sum_check_file(const char *path, const char *sum);

#endif
