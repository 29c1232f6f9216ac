#include "train/save_ranks.h"

#include <stdlib.h>
#include <string.h>

/* Outcome that a rank reports to the first one. */
struct told {
    struct status status;
    struct checkpoint_part part;
};

static tensor bytes_of(void *object, size_t n)
{
    return tensor_1d(object, DTYPE_U8, (int64_t)n);
}

static struct exec host_exec(void)
{
    return (struct exec){.device = &device_cpu, .layer_index = -1};
}

/* Returns, on the first rank, the worst of all statuses; fills `parts`, unless NULL, with the parts of all
 * ranks. */
static struct status hear(const struct comm *comm, struct exec *x, struct told mine,
                          struct checkpoint_part *parts)
{
    struct status worst = comm_named(mine.status, comm->rank, comm->size);
    if (parts != NULL) {
        parts[0] = mine.part;
    }
    for (int rank = 1; rank < comm->size; rank++) {
        struct told theirs;
        comm_receive(comm, x, bytes_of(&theirs, sizeof theirs), rank);
        if (failed(x->status)) {
            break;
        }
        worst = comm_worse(worst, comm_named(theirs.status, rank, comm->size));
        if (parts != NULL) {
            parts[rank] = theirs.part;
        }
    }
    return worst;
}

/* Returns the first rank's verdict on all ranks. */
static struct status announce(const struct comm *comm, struct exec *x, struct status verdict)
{
    comm_broadcast(comm, x, bytes_of(&verdict, sizeof verdict), 0);
    return failed(x->status) ? x->status : verdict;
}

static struct status collect(const struct comm *comm, struct exec *x, struct told mine,
                             struct checkpoint_part *parts)
{
    if (comm->rank == 0) {
        return hear(comm, x, mine, parts);
    }
    comm_send(comm, x, bytes_of(&mine, sizeof mine), 0);
    return mine.status; /* replaced by the first rank's verdict */
}

static struct status named(struct status s, const struct checkpoint_contents *c)
{
    return status_context(s, "cannot save the checkpoint of step %lld", (long long)c->step);
}

void save_ranks_abandon(struct save_ranks *r)
{
    checkpoint_save_end(&r->save);
    free(r->parts);
    r->parts = NULL;
}

struct status save_ranks_begin(struct save_ranks *r, const struct comm *comm, const char *directory,
                               const struct checkpoint_contents *c, struct status mine)
{
    struct exec x = host_exec();
    *r = (struct save_ranks){.save = {.temporary = {.fd = -1}}};
    struct status verdict = collect(comm, &x, (struct told){.status = mine}, NULL);
    if (!failed(verdict) && comm->rank == 0) {
        r->parts = calloc((size_t)comm->size, sizeof *r->parts);
        verdict = r->parts == NULL
                      ? status_error(STATUS_MEMORY, "out of memory for a list of %d ranks", comm->size)
                      : checkpoint_save_begin(&r->save, directory, c);
        memcpy(r->path, r->save.temporary.path, sizeof r->path);
    }
    verdict = announce(comm, &x, verdict);
    if (!failed(verdict)) {
        comm_broadcast(comm, &x, bytes_of(r->path, sizeof r->path), 0);
        verdict = x.status;
    }
    if (failed(verdict)) {
        save_ranks_abandon(r);
    }
    return named(verdict, c);
}

struct status save_ranks_end(struct save_ranks *r, const struct comm *comm, struct status mine,
                             const struct checkpoint_part *part, const struct checkpoint_contents *c)
{
    struct exec x = host_exec();
    struct told told = {.status = mine};
    if (!failed(mine)) {
        told.part = *part;
    }
    struct status verdict = collect(comm, &x, told, r->parts);
    if (!failed(verdict) && !failed(x.status) && comm->rank == 0) {
        verdict = checkpoint_save_commit(&r->save, c, r->parts, comm->size);
    }
    verdict = announce(comm, &x, verdict);
    save_ranks_abandon(r);
    return named(verdict, c);
}

struct status save_ranks(const struct comm *comm, const struct exec *x, const char *directory,
                         const struct checkpoint_contents *contents)
{
    struct checkpoint_contents c = *contents;
    struct save_ranks r;
    struct checkpoint_part part;
    c.part = comm->rank;
    c.n_parts = comm->size;
    TRY(save_ranks_begin(&r, comm, directory, &c, x->status));
    return save_ranks_end(&r, comm, checkpoint_save_part(&part, r.path, &c), &part, &c);
}
