/* dllog: what the replaced scripts write by NVIDIA's dllogger, so that scripts which read it need no change.
 *
 * The file has a line `DLLL {...}` for each record, standard output a line `DLL <date> - <step> key : value`.  Both
 * spell values as Python does: str() on standard output, json.dumps in the file.  Source: NVIDIA/dllogger. */
#ifndef KILN_IO_DLLOG_H
#define KILN_IO_DLLOG_H

#include "core/buf.h"
#include "core/json.h"

#include <stdio.h>

struct dllog {
    FILE *file; /* NULL: none */
    char path[1024];
    bool print; /* on standard output too */
    double start_s;
};

/* What a record is about. */
enum dllog_form {
    DLLOG_PARAMETER, /* the run as a whole, known beforehand */
    DLLOG_ITERATION, /* a step of training: [epoch, step] */
    DLLOG_SUMMARY,   /* the run as a whole, known at its end: [] */
};

struct dllog_step {
    enum dllog_form form;
    int64_t epoch, step; /* DLLOG_ITERATION only */
};

/* Opens PATH (NULL: no file) and creates its directory; `append` goes on with what is there, else it begins empty.
 * Without a path and without `print` every record vanishes.  STATUS_IO. */
struct status dllog_open(struct dllog *d, const char *path, bool append, bool print);
void dllog_close(struct dllog *d);

/* One record of the members of the object `data`, in their order, flushed.  STATUS_IO; the file is then closed, and
 * standard output goes on. */
struct status dllog_write(struct dllog *d, struct dllog_step step, const json_t *data);

/* The pieces, for tests: the lines without their newline.  `wall_s` and `start_s` count from 1970. */
void dllog_append_line(struct buf *b, double wall_s, double start_s, struct dllog_step step,
                       const json_t *data);
void dllog_append_printed(struct buf *b, double wall_s, struct dllog_step step, const json_t *data);

/* An object as Python shows a parsed command line: Namespace(name='value', ...). */
void dllog_append_namespace(struct buf *b, const json_t *object);

#endif
