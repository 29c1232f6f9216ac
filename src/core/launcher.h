/* launcher: the rank that a launcher (torchrun, deepspeed, mpirun, srun) reports to this process: by
 * environment variables, whose names are in launcher.c, or by flags. */
#ifndef KILN_CORE_LAUNCHER_H
#define KILN_CORE_LAUNCHER_H

#include "core/status.h"

#include <stdint.h>

struct launcher_flags {
    int64_t local_rank; /* flag of torch.distributed.launch and deepspeed; -1 or 0: the only or first rank */
    int64_t num_nodes, num_gpus; /* flags of deepspeed: hosts, and devices of each; 0: not given */
    const char *hostfile;        /* flag of deepspeed: file of hosts and slots; NULL: not given */
    const char *world_info;      /* deepspeed's base64 of {"host": [slot, ...], ...}; NULL: not given */
};

enum launcher_kind {
    LAUNCHER_NONE,      /* the only process */
    LAUNCHER_OPEN_MPI,  /* mpirun, Kubeflow's MPIJob */
    LAUNCHER_PMIX,      /* srun --mpi=pmix */
    LAUNCHER_OTHER_MPI, /* MPICH, Intel MPI, MVAPICH2, srun --mpi=pmi2 */
    LAUNCHER_TORCH,     /* torchrun, deepspeed, or RANK and WORLD_SIZE set by hand */
    LAUNCHER_SLURM,     /* srun without --mpi */
};

/* The rank by the environment variables. */
struct launcher_ranks {
    enum launcher_kind kind;
    const char *variable; /* first variable that says that this process is one of several; NULL: none does */
    int64_t value;        /* value of the variable */
    int64_t size;         /* the number of ranks; 0: not said */
};

/* STATUS_USAGE names a variable that is not a number. */
struct status launcher_find_ranks(struct launcher_ranks *ranks);

/* Whether the launcher's server is there, without which MPI cannot find the other ranks: it is not if the
 * other variables were set by hand. */
bool launcher_serves_mpi(void);

/* The time that ranks wait for each other: KILN_COMM_TIMEOUT seconds, by default LAUNCHER_TIMEOUT_S.
 * STATUS_USAGE. */
struct status launcher_timeout(double *seconds);

/* After how many seconds without a heartbeat a rank is lost: KILN_COMM_SILENCE, by default
 * LAUNCHER_SILENCE_S; 0: they do not beat. STATUS_USAGE. */
struct status launcher_silence(double *seconds);

/* The most ranks of a node that may share memory: KILN_COMM_WINDOW, by default INT_MAX; with 0 they send
 * messages, as those of several nodes do. STATUS_USAGE. */
struct status launcher_most_sharing(int *most);

enum { LAUNCHER_SILENCE_S = 10 };
enum { LAUNCHER_TIMEOUT_S = 600 }; /* PyTorch's for NCCL: torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp */

/* The rank that the launcher gives this process; 0 without a launcher. */
int64_t launcher_rank(void);

/* For the only process of a command that may run on several ranks.  STATUS_UNAVAILABLE names the flag that
 * says there should be more, STATUS_USAGE one that is not readable. */
struct status launcher_check_flags(const struct launcher_flags *flags);

#endif
