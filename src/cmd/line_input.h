/* line_input: lines of a file or of standard input, which may not have come yet. */
#ifndef KILN_CMD_LINE_INPUT_H
#define KILN_CMD_LINE_INPUT_H

#include "core/buf.h"
#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

struct line_input {
    int fd;
    const char *name; /* for messages: "standard input", or the path */
    struct buf bytes; /* what was read */
    size_t at;        /* where the next line begins in it */
    int64_t number;   /* of the last line, from 1 */
    bool at_end;
};

/* Opens the file of this path, or standard input for NULL.  STATUS_DATA. */
struct status line_input_open(struct line_input *l, const char *path);
void line_input_close(struct line_input *l); /* safe on a zeroed struct */

/* Begins again, if the input can. */
bool line_input_rewind(struct line_input *l);

/* Waits until line_input_next has something to say or the time is over. */
void line_input_wait(const struct line_input *l, double seconds);

/* The next line without its end, valid until the next call; *line is NULL if there is none left or, unless
 * it may wait, none yet.  STATUS_DATA: it is not UTF-8; STATUS_IO, STATUS_MEMORY. */
struct status line_input_next(struct line_input *l, bool may_wait, const char **line, size_t *n);

#endif
