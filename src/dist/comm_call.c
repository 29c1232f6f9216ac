#include "dist/comm_call.h"

#include "core/hash.h"
#include "dist/reduce.h"

static const char *const names[] = {"an agreement", "a sum", "a maximum", "a gathering", "a broadcast"};

const char *comm_call_name(enum comm_call_kind kind)
{
    return names[kind];
}

struct status comm_call_host(const struct exec *x)
{
    return x->device->is_host ? status_ok()
                              : status_error(STATUS_USAGE, "these ranks exchange host memory, not that of %s",
                                             x->device->name);
}

static struct status check_dtype(enum comm_call_kind kind, enum dtype dtype)
{
    if (kind == CALL_ALL_REDUCE_SUM && !reduce_can_sum(dtype)) {
        return status_error(STATUS_USAGE, "a sum over ranks is of fp32, fp64 or bf16, not %s",
                            dtype_name(dtype));
    }
    if (kind == CALL_ALL_REDUCE_MAX && dtype != DTYPE_F32) {
        return status_error(STATUS_USAGE, "a maximum over ranks is of fp32, not %s", dtype_name(dtype));
    }
    return status_ok();
}

struct comm_call comm_call_of(enum comm_call_kind kind, const struct exec *x, tensor t)
{
    struct status s = x->status;
    s = failed(s) ? s : comm_call_host(x);
    s = failed(s) ? s : check_dtype(kind, t.dtype);
    return (struct comm_call){.kind = kind, .dtype = t.dtype, .count = tensor_count(t), .status = s};
}

struct comm_call comm_call_gather(const struct exec *x, tensor t, const int64_t *bounds, int size)
{
    struct comm_call c = comm_call_of(CALL_ALL_GATHER, x, t);
    c.bounds_hash = hash_fnv1a(bounds, ((size_t)size + 1) * sizeof *bounds);
    return c;
}

struct comm_call comm_call_broadcast(const struct exec *x, tensor t, int root)
{
    struct comm_call c = comm_call_of(CALL_BROADCAST, x, t);
    c.root = root;
    return c;
}

/* Whether rank r calls what rank 0 does. */
static struct status compare(const struct comm_call *calls, int r)
{
    const struct comm_call *p = &calls[r], *first = &calls[0];
    if (p->kind != first->kind || p->root != first->root || p->dtype != first->dtype ||
        p->count != first->count) {
        return status_error(STATUS_INTERNAL, "rank %d is in %s of %lld elements, rank 0 in %s of %lld", r,
                            names[p->kind], (long long)p->count, names[first->kind], (long long)first->count);
    }
    return p->bounds_hash == first->bounds_hash
               ? status_ok()
               : status_error(STATUS_INTERNAL, "rank %d gathers other parts than rank 0", r);
}

struct status comm_call_judge(const struct comm_call *calls, int size)
{
    struct status worst = status_ok();
    for (int r = 0; r < size; r++) {
        worst = comm_worse(worst, comm_named(calls[r].status, r, size));
    }
    for (int r = 1; r < size; r++) {
        worst = comm_worse(worst, compare(calls, r));
    }
    return worst;
}
