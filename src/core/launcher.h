/* launcher: what a launcher (torchrun, deepspeed, mpirun, srun) tells this process about its rank: by
 * environment variables, whose names are in launcher.c, or by flags. */
#ifndef KILN_CORE_LAUNCHER_H
#define KILN_CORE_LAUNCHER_H

#include "core/status.h"

#include <stdint.h>

struct launcher_flags {
    int64_t local_rank; /* of torch.distributed.launch and deepspeed; -1 or 0: the only or first rank */
    int64_t num_nodes, num_gpus; /* of deepspeed: hosts, and devices of each; 0: not given */
    const char *hostfile;        /* of deepspeed: its hosts and slots; NULL: not given */
    const char *world_info;      /* deepspeed's base64 of {"host": [slot, ...], ...}; NULL: not given */
};

/* For commands that run in one process: several ranks would each do all the work and overwrite one another's
 * files.  STATUS_UNAVAILABLE names the variable or flag that says there are several ranks, STATUS_USAGE one whose
 * value is not a number of ranks. */
struct status launcher_check_alone(const struct launcher_flags *flags);

#endif
