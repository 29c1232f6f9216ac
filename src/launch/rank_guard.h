/* rank_guard: the parent of a rank on its host.  It says how its rank ended, in a line that the supervisor
 * reads: mpirun names the rank that failed only sometimes (of 24 runs of Open MPI 4.1.4 on one host, in 12),
 * and never all that is known. */
#ifndef KILN_LAUNCH_RANK_GUARD_H
#define KILN_LAUNCH_RANK_GUARD_H

#include "core/words.h"

/* Beginning of the message, which continues "1 on h2 ended with exit code 74". */
#define RANK_GUARD_LINE "kiln: error: rank "

/* Runs the program as this rank, passes signals on to it, and returns a status with its exit code, whose
 * message says which rank ended how. */
struct status rank_guard_run(const struct words *program);

#endif
