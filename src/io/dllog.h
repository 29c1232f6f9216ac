/* dllog: the logs that the replaced scripts write with NVIDIA's dllogger, so that programs which read them
 * need no change.
 *
 * The file has a line `DLLL {...}` for each record, standard output a line `DLL <date> - <step> key :
 * value`.  Both spell values as Python does: str() on standard output, json.dumps in the file.  Source:
 * NVIDIA/dllogger. */
#ifndef KILN_IO_DLLOG_H
#define KILN_IO_DLLOG_H

#include "core/buf.h"
#include "core/json.h"
#include "io/record_log.h"

struct dllog {
    struct record_log log; /* closed: none */
    bool print;            /* on standard output too */
    double start_s;
};

/* Subject of a record. */
enum dllog_form {
    DLLOG_PARAMETER, /* the complete run, at its start */
    DLLOG_ITERATION, /* a step of training: [epoch, step] */
    DLLOG_SUMMARY,   /* the complete run, at its end: [] */
};

struct dllog_step {
    enum dllog_form form;
    int64_t epoch, step; /* DLLOG_ITERATION only */
};

/* Opens PATH (NULL: no file) and creates its directory; `append` continues an existing file, else it is
 * emptied.  Without a path and without `print` records are dropped.  STATUS_IO. */
struct status dllog_open(struct dllog *d, const char *path, bool append, bool print);
void dllog_close(struct dllog *d);

/* Writes one record of the members of the object `data`, in their order.  STATUS_MEMORY; what cannot be
 * written is left out (io/record_log.h). */
struct status dllog_write(struct dllog *d, struct dllog_step step, const json_t *data);

/* Prints a line that is no record, of the same programs, on standard output. */
void dllog_print(const char *line);
void dllog_put(struct buf *line); /* frees it; what memory did not suffice for is left out */

/* Warns of a failure to write a log of these programs. */
void dllog_warn(struct status s);

/* A real as Python's repr spells it. */
void dllog_append_real(struct buf *b, double value);

/* The parts of dllog_write, for tests: the lines without their newline.  `wall_s` and `start_s` are seconds
 * since 1970. */
void dllog_append_line(struct buf *b, double wall_s, double start_s, struct dllog_step step,
                       const json_t *data);
void dllog_append_printed(struct buf *b, double wall_s, struct dllog_step step, const json_t *data);

/* A value as Python's str() shows it, or with `repr` its repr(). */
void dllog_append_python(struct buf *b, const json_t *value, bool repr);

/* An object as Python shows a parsed command line: Namespace(name='value', ...). */
void dllog_append_namespace(struct buf *b, const json_t *object);

#endif
