/* comm_self: a single rank.  Every collective leaves its tensor as it is; it can send to nobody. */
#ifndef KILN_DIST_COMM_SELF_H
#define KILN_DIST_COMM_SELF_H

#include "dist/comm.h"

struct comm comm_self(void);

#endif
