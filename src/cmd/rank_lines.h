/* rank_lines: lines of a file or of standard input that the first rank reads, and all ranks have: launchers
 * give standard input to the first one alone, and files may be on its machine alone. */
#ifndef KILN_CMD_RANK_LINES_H
#define KILN_CMD_RANK_LINES_H

#include "core/buf.h"
#include "dist/comm.h"

/* The lines of a file or of standard input, which may not have come yet. */
struct line_input {
    int fd;
    const char *name; /* name in messages: "standard input", or the path */
    struct buf bytes; /* bytes that were read */
    size_t at;        /* offset of the next line in `bytes` */
    int64_t number;   /* number of the last line, from 1 */
    bool at_end;
};

struct rank_lines {
    const struct comm *world; /* borrowed */
    struct line_input input;  /* input of the first rank */
    double wait_s;            /* longest wait between two calls of the other ranks, which have a deadline */
    int64_t number;           /* number of the last line, from 1 */
    struct buf heard;         /* the last line, of the others */
};

/* Opens the file of this path, or standard input for NULL.  All ranks return the same error. */
struct status rank_lines_open(struct rank_lines *l, const struct comm *world, const char *path);
void rank_lines_close(struct rank_lines *l); /* safe on a zeroed struct */

/* Calls `look` with each line on the first rank, and begins again.  STATUS_USAGE: the input cannot. All ranks
 * return the same error, that of `look` included. */
struct status rank_lines_look_through(struct rank_lines *l,
                                      struct status (*look)(void *self, const char *line, size_t n),
                                      void *self);

/* The next line without its end, valid until the next call; *line is NULL if there is none left or, unless it
 * may wait, none yet.  STATUS_DATA: it is not UTF-8; STATUS_IO, STATUS_MEMORY.  An error in reading is that
 * of all, and not one of the communicator: they can still work together. */
struct status rank_lines_next(struct rank_lines *l, bool may_wait, const char **line, size_t *n);

#endif
