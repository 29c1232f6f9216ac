/* shard_process: reads HDF5 files in a separate process, so that a damaged file that crashes libhdf5 is only
 * an error message here.
 *
 * The process is this program itself, started with a hidden argument.  It shares only a socket and a block of
 * memory with two slots: it decompresses a complete shard into one while the other is in use.  The parent
 * waits at most SHARD_PROCESS_PATIENCE_S for an answer; the end of the process is an answer too. */
#ifndef KILN_DATA_SHARD_PROCESS_H
#define KILN_DATA_SHARD_PROCESS_H

#include "data/shard_format.h"

#include <sys/types.h>

enum { SHARD_PROCESS_SLOTS = 2, SHARD_PROCESS_PATIENCE_S = 300 };

struct shard_process {
    pid_t pid;    /* 0: there is none */
    int socket;   /* the parent's end; -1: none */
    int memory;   /* descriptor of the shared memory; -1: none */
    void *mapped; /* [SHARD_PROCESS_SLOTS * slot_bytes] */
    size_t slot_bytes;
    char pending[1024]; /* the path of the request that is not answered yet */
    struct shard_shape wanted;
};

/* Starts the process. */
struct status shard_process_open(struct shard_process *p);

/* Ends it.  Safe on a zeroed struct and after a failed open. */
void shard_process_close(struct shard_process *p);

/* Measures a file; STATUS_DATA says what is wrong with it. */
struct status shard_process_measure(struct shard_process *p, const char *path, struct shard_shape *shape);

/* Allocates shared memory for shards of up to slot_bytes.  Call it once, before the first request to read. */
struct status shard_process_make_room(struct shard_process *p, size_t slot_bytes);

/* Requests a file of a known shape into slot 0 or 1, which must not be used until shard_process_wait has
 * returned.  One request at a time. */
struct status shard_process_ask(struct shard_process *p, const char *path, const struct shard_shape *shape,
                                int slot);
/* Waits for the file that was requested.  STATUS_DATA says what is wrong with it. */
struct status shard_process_wait(struct shard_process *p);

/* The memory of slot 0 or 1, [slot_bytes]: the arrays of the shard that was read into it. */
const void *shard_process_slot(const struct shard_process *p, int slot);

/* Whether this process was started by shard_process_open; then main must return what shard_process_serve
 * returns. */
bool shard_process_is_wanted(int argc, char **argv);
int shard_process_serve(void);

#endif
