/* line_file: files of lines, hostfiles and environment files, read with the number of the line in every
 * error. */
#ifndef KILN_LAUNCH_LINE_FILE_H
#define KILN_LAUNCH_LINE_FILE_H

#include "core/status.h"

/* Takes a line, without its end, which it may cut up; `source` is "PATH, line N". */
typedef struct status line_file_body(void *context, char *line, const char *source);

/* Calls the body for every line up to its first error.  STATUS_DATA: `what` PATH cannot be read, is no
 * regular file, or is far too large; STATUS_USAGE: a line has a NUL byte. */
struct status line_file_read(const char *path, const char *what, line_file_body *body, void *context);

/* Reads as line_file_read does a file that no flag names, opened by regular_file_open_own; *found is false if
 * there is none. */
struct status line_file_read_own(const char *path, const char *what, const char *why, line_file_body *body,
                                 void *context, bool *found);

#endif
