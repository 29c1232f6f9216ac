/* shard_serve: the process that data/shard_process starts.  It answers requests until its parent is gone, and
 * may crash at any time. */
#define _GNU_SOURCE
#include "data/shard_message.h"
#include "data/shard_process.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The shared memory, mapped at the first request that needs it: the parent sizes it after measuring. */
static struct status map_memory(char **memory, size_t *n)
{
    struct stat info;
    if (*memory != NULL) {
        return status_ok();
    }
    FAIL_IF(fstat(SHARD_MESSAGE_MEMORY, &info) != 0 || info.st_size <= 0, STATUS_INTERNAL,
            "the shared memory has no size");
    *n = (size_t)info.st_size;
    void *mapped = mmap(NULL, *n, PROT_READ | PROT_WRITE, MAP_SHARED, SHARD_MESSAGE_MEMORY, 0);
    FAIL_IF(mapped == MAP_FAILED, STATUS_MEMORY, "out of memory for two shards of %zu bytes", *n / 2);
    *memory = mapped;
    return status_ok();
}

static bool same_shape(const struct shard_shape *a, const struct shard_shape *b)
{
    return a->n == b->n && a->seq_length == b->seq_length && a->n_predictions == b->n_predictions &&
           a->packed == b->packed;
}

static struct status read_shard(const struct shard_request *r, char **memory, size_t *n_memory)
{
    struct hdf5_array arrays[SHARD_MAX_ARRAYS];
    struct shard_shape shape;
    TRY(shard_format_measure(&shape, r->path));
    FAIL_IF(!same_shape(&shape, &r->wanted), STATUS_DATA, "%s has changed since this run opened it", r->path);
    TRY(map_memory(memory, n_memory));
    CHECK(r->offset <= *n_memory && r->n_bytes <= *n_memory - r->offset &&
              shard_format_bytes(&shape) == r->n_bytes,
          "%llu bytes at %llu of %zu", (unsigned long long)r->n_bytes, (unsigned long long)r->offset,
          *n_memory);
    int n = shard_format_arrays(arrays, &shape, *memory + r->offset);
    return hdf5_file_read(r->path, arrays, n);
}

int shard_process_serve(void)
{
    char *memory = NULL;
    size_t n_memory = 0;
    struct shard_request request;
    close_range(SHARD_MESSAGE_MEMORY + 1, ~0U, 0); /* this process uses no other file of its parent */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    while (recv(SHARD_MESSAGE_SOCKET, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        struct shard_answer answer;
        memset(&answer, 0, sizeof answer); /* padding included, since all of it is sent */
        answer.magic = SHARD_MESSAGE_MAGIC;
        answer.kind = request.kind;
        answer.status = request.kind == SHARD_MESSAGE_MEASURE
                            ? shard_format_measure(&answer.shape, request.path)
                            : read_shard(&request, &memory, &n_memory);
        if (send(SHARD_MESSAGE_SOCKET, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer) {
            break;
        }
    }
    if (memory != NULL) {
        munmap(memory, n_memory);
    }
    return 0;
}
