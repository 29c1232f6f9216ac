/* launcher: what a launcher (torchrun, deepspeed, mpirun, srun) told this process about its place among
 * others: by environment variables, whose names are in launcher.c, or by flags. */
#ifndef KILN_CORE_LAUNCHER_H
#define KILN_CORE_LAUNCHER_H

#include "core/status.h"

#include <stdint.h>

struct launcher_flags {
    int64_t local_rank; /* of torch.distributed.launch and deepspeed; -1 or 0: the only one, or the first */
    const char *world_info; /* deepspeed's base64 of {"host": [slot, ...], ...}; NULL: not given */
};

/* For a command whose ranks would each do all the work and write over one another's files.  STATUS_USAGE
 * names the variable or flag that says there are several, or whose value is no number of ranks. */
struct status launcher_check_alone(const struct launcher_flags *flags);

#endif
