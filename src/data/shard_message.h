/* shard_message: the messages between data/shard_process and the process that it starts (data/shard_serve),
 * over a pair of sockets that preserve message boundaries.
 *
 * The rule: a request is answered by one answer.  The parent makes the shared memory as large as two slots
 * and seals its size, so that the child cannot shrink it. */
#ifndef KILN_DATA_SHARD_MESSAGE_H
#define KILN_DATA_SHARD_MESSAGE_H

#include "data/shard_format.h"

enum {
    SHARD_MESSAGE_SOCKET = 3, /* file descriptors of the child */
    SHARD_MESSAGE_MEMORY = 4,
    SHARD_MESSAGE_PATH_BYTES = 1024,
    SHARD_MESSAGE_MAGIC = 0x68736b31,
};

enum shard_message_kind { SHARD_MESSAGE_MEASURE, SHARD_MESSAGE_READ };

struct shard_request {
    uint32_t magic;
    uint32_t kind;
    uint64_t offset, n_bytes;  /* READ: the part of the shared memory for the arrays */
    struct shard_shape wanted; /* READ: the file's shape when it was measured */
    char path[SHARD_MESSAGE_PATH_BYTES];
};

struct shard_answer {
    uint32_t magic;
    uint32_t kind;
    struct shard_shape shape;
    struct status status;
};

#endif
