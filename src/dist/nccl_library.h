/* nccl_library: NVIDIA's NCCL, which is loaded when ranks first need it, so that a kiln built without it uses
 * it.  Types and values are those of nccl.h of version 2.14, which later versions of the library still take
 * (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html). */
#ifndef KILN_DIST_NCCL_LIBRARY_H
#define KILN_DIST_NCCL_LIBRARY_H

#include "core/status.h"

#include <stddef.h>

/* The two values of ncclResult_t that kiln distinguishes. */
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };

/* ncclDataType_t, ncclRedOp_t. */
enum { NCCL_INT8 = 0, NCCL_INT32 = 2, NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8, NCCL_BFLOAT16 = 9 };
enum { NCCL_SUM = 0, NCCL_MAX = 2 };

/* The first version whose communicators need not block (NCCL_VERSION_CODE). */
enum { NCCL_OLDEST = 21400 };

struct nccl_id {
    char bytes[128];
};

/* ncclConfig_t of version 2.14.  A later library sees from its version which fields there are. */
struct nccl_config {
    size_t bytes;
    unsigned magic, version; /* 0xcafebeef, NCCL_OLDEST */
    int blocking, unused;
};

/* The functions of nccl.h; comm is an ncclComm_t, stream a cudaStream_t. */
struct nccl_library {
    int version;
    int (*get_version)(int *version);
    int (*get_unique_id)(struct nccl_id *id);
    int (*init)(void **comm, int n_ranks, struct nccl_id id, int rank, struct nccl_config *config);
    int (*finalize)(void *comm);
    int (*destroy)(void *comm);
    int (*cancel)(void *comm); /* ncclCommAbort */
    int (*get_async_error)(void *comm, int *result);
    const char *(*error_string)(int result);
    const char *(*last_error)(void *comm);
    int (*all_reduce)(const void *in, void *out, size_t n, int dtype, int op, void *comm, void *stream);
    int (*reduce)(const void *in, void *out, size_t n, int dtype, int op, int root, void *comm, void *stream);
    int (*broadcast)(const void *in, void *out, size_t n, int dtype, int root, void *comm, void *stream);
    int (*all_gather)(const void *in, void *out, size_t n_of_rank, int dtype, void *comm, void *stream);
    int (*group_start)(void);
    int (*group_end)(void);
};

/* Loads the library file that KILN_NCCL_LIBRARY names, else libnccl.so.2 as the loader finds it or next to
 * CUDA's libraries (ops/library_search.h).  It stays loaded.  STATUS_UNAVAILABLE: there is none, or it is too
 * old. */
struct status nccl_library_load(struct nccl_library *l);

/* "2.28.9" */
void nccl_library_put_version(char text[32], int version);

#endif
