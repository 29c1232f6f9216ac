/* standard_streams: standard input and output; no failure to read or write them is silent. */
#ifndef KILN_CMD_STANDARD_STREAMS_H
#define KILN_CMD_STANDARD_STREAMS_H

#include "core/buf.h"
#include "core/json.h"

#include <stddef.h>
#include <stdint.h>

/* Opens, at the start of the program, those of the descriptors 0 to 2 that are closed, so that no file opened
 * later becomes standard output.  Reading a closed input or writing to a closed output then fails; messages
 * for a closed standard error are dropped.  STATUS_IO if there is no /dev/null. */
struct status standard_streams_open(void);

/* Flushes standard output; STATUS_IO if any output was lost, now or before. */
struct status standard_streams_flush(void);

/* Writes a text to standard output, and flushes and frees it.  STATUS_MEMORY: the text is not complete. */
struct status standard_streams_put(struct buf *text);

/* Writes an answer as a line of JSON, in which numbers of fp64 have 9 digits; takes it over. */
struct status standard_streams_put_json(json_t *line);

/* After a read that returned nothing: STATUS_IO or STATUS_MEMORY, unless standard input is at its end. */
struct status standard_streams_check_input(void);

/* STATUS_DATA: a line of standard input, or an argument, both counted from 1, is not UTF-8: the message names
 * the byte. */
struct status standard_streams_check_line(const char *line, size_t n, int64_t number);
struct status standard_streams_check_argument(const char *text, int number);

/* Does standard_streams_flush at the end of the program, and closes standard output. */
struct status standard_streams_close(void);

#endif
