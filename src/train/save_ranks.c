#include "train/save_ranks.h"

#include <stdlib.h>
#include <string.h>

static tensor bytes_of(void *object, size_t n)
{
    return tensor_1d(object, DTYPE_U8, (int64_t)n);
}

/* Sends the parts of all ranks to the first rank, in rank order. */
static void gather(const struct comm *comm, struct exec *x, struct checkpoint_part *parts,
                   struct checkpoint_part *mine)
{
    if (comm->rank != 0) {
        comm_send(comm, x, bytes_of(mine, sizeof *mine), 0);
        return;
    }
    CHECK(parts != NULL, "rank %d has no list of the others", comm->rank);
    parts[0] = *mine;
    for (int rank = 1; rank < comm->size; rank++) {
        comm_receive(comm, x, bytes_of(&parts[rank], sizeof parts[rank]), rank);
    }
}

/* Between the steps all ranks agree that each has succeeded so far, so no rank waits for one that has given
 * up. */
static struct status save(const struct comm *comm, struct exec *x, struct checkpoint_save *s,
                          struct checkpoint_part *parts, const char *directory,
                          const struct checkpoint_contents *c)
{
    char path[TEMPORARY_PATH_BYTES] = "";
    struct checkpoint_part mine;
    struct status status = status_ok();
    if (comm->rank == 0) {
        status = parts == NULL
                     ? status_error(STATUS_MEMORY, "out of memory for a list of %d ranks", comm->size)
                     : checkpoint_save_begin(s, directory, c);
        memcpy(path, s->temporary.path, sizeof path);
    }
    TRY(comm_agree(comm, status));
    comm_broadcast(comm, x, bytes_of(path, sizeof path), 0);
    status = failed(x->status) ? x->status : checkpoint_save_part(&mine, path, c);
    TRY(comm_agree(comm, status));
    gather(comm, x, parts, &mine);
    status = x->status;
    if (!failed(status) && comm->rank == 0) {
        status = checkpoint_save_commit(s, c, parts, comm->size);
    }
    return comm_agree(comm, status);
}

struct status save_ranks(const struct comm *comm, struct exec *x, const char *directory,
                         const struct checkpoint_contents *contents)
{
    struct checkpoint_contents c = *contents;
    struct checkpoint_save s = {.temporary = {.fd = -1}};
    struct checkpoint_part *parts = comm->rank == 0 ? calloc((size_t)comm->size, sizeof *parts) : NULL;
    c.part = comm->rank;
    c.n_parts = comm->size;
    struct status status = save(comm, x, &s, parts, directory, &c);
    checkpoint_save_end(&s);
    free(parts);
    return status_context(status, "cannot save the checkpoint of step %lld", (long long)c.step);
}
