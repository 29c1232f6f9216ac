/* standard_streams: standard input and output, of which nothing is lost in silence. */
#ifndef KILN_CMD_STANDARD_STREAMS_H
#define KILN_CMD_STANDARD_STREAMS_H

#include "core/status.h"

/* For the start of the program: takes the descriptors 0 to 2 that are closed, so that no file which is opened
 * later becomes standard output.  What a command then reads from a closed input, or writes to a closed output,
 * fails; messages for a closed standard error are dropped.  STATUS_IO if there is no /dev/null. */
struct status standard_streams_open(void);

/* Writes out what was printed; STATUS_IO if any of it was lost, now or before. */
struct status standard_streams_flush(void);

/* After a read that gave nothing more: STATUS_IO, or STATUS_MEMORY, unless standard input is at its end. */
struct status standard_streams_check_input(void);

/* For the end of the program: as standard_streams_flush, and closes standard output. */
struct status standard_streams_close(void);

#endif
