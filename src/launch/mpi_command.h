/* mpi_command: the command line that starts a job's ranks, by mpirun (Open MPI 4.1, mpirun(1)) or srun
 * (srun(1)).
 *
 * What it always says, and why (docs/decisions/0060_launch.md):
 *   - ssh never asks for a password, and gives up after 5 s;
 *   - names of hosts keep their domains, which Open MPI cuts off: w.1.foo.net and w.2.foo.net would both be
 *     "w" (Open MPI 5 keeps them by a variable, cmd/run_launch.c);
 *   - a host that went silent is noticed after 10 s, not after 480 s (oob_tcp_keepalive_*);
 *   - when one rank ends, the others are killed at once: a job restarts from a checkpoint, it is not
 *     repaired;
 *   - each rank has its own cores, and waits without spinning where ranks have to share them. */
#ifndef KILN_LAUNCH_MPI_COMMAND_H
#define KILN_LAUNCH_MPI_COMMAND_H

#include "core/words.h"
#include "launch/host_list.h"

#include <stdint.h>

enum launch_kind {
    LAUNCH_MPIRUN,
    LAUNCH_SRUN,
    LAUNCH_AS_TYPED, /* the words are a line of mpirun or srun already */
};

struct launch_job {
    enum launch_kind kind;
    struct host_list hosts;
    bool is_remote; /* a host of the list is another machine */
    int64_t cores;  /* cores of the host that has fewest; 0: unknown */
    /* nodes, and ranks on each, of srun without hosts; 0 or -1: as the job of Slurm has them */
    int64_t n_nodes, n_tasks;
    int64_t ssh_port;       /* 0: ssh's own */
    const char *interface;  /* the network to use; NULL: all */
    const char *more;       /* words for mpirun or srun, with blanks between; NULL: none */
    struct words variables; /* NAME=VALUE, for all ranks */
    struct words exported;  /* names of this process's own variables that remote ranks get too */
    struct words program;   /* the ranks' command line; or the line as typed */
    const char *guard;      /* kiln's path: each rank is started by launch/rank_guard.h; NULL: directly */
    bool as_root;
};

/* Ranks per host, 0 if hosts differ; and cores per rank, 0 if they cannot be given out evenly. */
struct launch_binding {
    int ranks_per_host;
    int64_t cores_per_rank;
};
struct launch_binding mpi_command_binding(const struct launch_job *job);

/* Appends the line; `resume` adds --resume_from_checkpoint where the program's words lack it. */
struct status mpi_command_make(struct words *line, const struct launch_job *job, bool resume);

/* The arguments of ssh for this port: never a question, 5 s to connect. */
void mpi_command_add_ssh(struct words *line, int64_t ssh_port);

/* Frees the words of the command; safe on a zeroed struct. */
void launch_job_fini(struct launch_job *job);

#endif
