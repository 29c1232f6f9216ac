#include "dist/comm_call.h"

#include "core/hash.h"
#include "dev/exec.h"
#include "dist/reduce.h"

static const char *const names[] = {"an agreement", "a sum",          "a maximum", "a maximum", "a gathering",
                                    "a broadcast",  "a sum in parts", "a message", "a message"};

const char *comm_call_name(enum comm_call_kind kind)
{
    return names[kind];
}

struct status comm_call_host(const struct comm_call *c, const struct exec *x)
{
    return failed(c->status) || x->device->is_host
               ? c->status
               : status_error(STATUS_USAGE, "these ranks exchange host memory, but the tensor is on %s",
                              x->device->name);
}

static struct status check_dtype(enum comm_call_kind kind, enum dtype dtype)
{
    bool sums = kind == CALL_ALL_REDUCE_SUM || kind == CALL_REDUCE_SCATTER_SUM;
    bool is_max = kind == CALL_ALL_REDUCE_MAX || kind == CALL_ALL_REDUCE_MAX_SIGNED;
    FAIL_IF(sums && !reduce_can_sum(dtype), STATUS_USAGE, "ranks can sum fp32, fp64 or bf16, not %s",
            dtype_name(dtype));
    FAIL_IF(is_max && dtype != DTYPE_F32, STATUS_USAGE, "ranks can take the maximum of fp32, not of %s",
            dtype_name(dtype));
    return status_ok();
}

struct comm_call comm_call_of(enum comm_call_kind kind, const struct exec *x, tensor t, const int64_t *bounds,
                              int size, int root)
{
    return (struct comm_call){
        .kind = kind,
        .root = root,
        .dtype = t.dtype,
        .count = kind == CALL_AGREE ? 0 : tensor_count(t),
        .bounds_hash = bounds == NULL ? 0 : hash_fnv1a(bounds, ((size_t)size + 1) * sizeof *bounds),
        .status = failed(x->status) ? x->status : check_dtype(kind, t.dtype)};
}

/* Whether rank r calls what rank 0 does. */
static struct status compare(const struct comm_call *calls, int r, const struct comm_numbers *numbers)
{
    int number = comm_number(numbers, r), number_0 = comm_number(numbers, 0);
    const struct comm_call *p = &calls[r], *first = &calls[0];
    FAIL_IF(p->kind != first->kind || p->root != first->root || p->dtype != first->dtype ||
                p->count != first->count,
            STATUS_INTERNAL, "rank %d is in %s of %lld elements, but rank %d is in %s of %lld", number,
            names[p->kind], (long long)p->count, number_0, names[first->kind], (long long)first->count);
    return p->bounds_hash == first->bounds_hash
               ? status_ok()
               : status_error(STATUS_INTERNAL, "rank %d %s parts that differ from rank %d's", number,
                              p->kind == CALL_ALL_GATHER ? "gathers" : "sums", number_0);
}

struct status comm_call_judge(const struct comm_call *calls, int size, const struct comm_numbers *numbers)
{
    struct status worst = status_ok();
    for (int r = 0; r < size; r++) {
        worst = comm_worse(worst, comm_named_by(calls[r].status, numbers, r));
    }
    for (int r = 1; r < size; r++) {
        worst = comm_worse(worst, compare(calls, r, numbers));
    }
    return worst;
}

struct status comm_call_agree(const struct comm *control, const struct comm_call *mine)
{
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    struct comm_call call = *mine;
    call.only_agrees = true;
    return control->type->call(control->state, &host, &call, NULL_TENSOR, NULL);
}
