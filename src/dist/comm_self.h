/* comm_self: one rank alone.  Its sum and its broadcast are what it has; it has nobody to send to. */
#ifndef KILN_DIST_COMM_SELF_H
#define KILN_DIST_COMM_SELF_H

#include "dist/comm.h"

struct comm comm_self(void);

#endif
