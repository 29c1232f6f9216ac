#include "ops/cuda/table/cuda_slot.h"

#include "ops/cuda/table/cuda_context.h"

struct launch cuda_slot_launch(struct exec *x, size_t scratch)
{
    struct launch l = ((struct cuda_context *)x->context)->launch;
    l.dropout_key = x->dropout_key;
    l.scratch = scratch > 0 ? exec_scratch(x, scratch) : NULL;
    return l;
}

void cuda_slot_finish(struct exec *x, const char *op)
{
    const char *error = cuda_launch_error();
    exec_queued(x, op);
    if (error != NULL) {
        exec_fail(x, STATUS_INTERNAL, op, "the kernel was not launched: %s", error);
    }
}

struct launch_rows cuda_slot_rows(tensor t)
{
    return (struct launch_rows){t.data, t.n_dims > 1 ? t.strides[t.n_dims - 2] : tensor_cols(t)};
}

enum { UNKNOWN_TYPE = -1 };

static int known_type(enum dtype t)
{
    static const int types[] = {
        [DTYPE_F32] = LAUNCH_F32,  [DTYPE_BF16] = LAUNCH_BF16,  [DTYPE_F16] = LAUNCH_F16,
        [DTYPE_F64] = LAUNCH_F64,  [DTYPE_I32] = LAUNCH_I32,    [DTYPE_I64] = UNKNOWN_TYPE,
        [DTYPE_U8] = UNKNOWN_TYPE, [DTYPE_E4M3] = UNKNOWN_TYPE, [DTYPE_E5M2] = UNKNOWN_TYPE,
        [DTYPE_I8] = UNKNOWN_TYPE};
    return types[t];
}

enum launch_type cuda_slot_type(tensor t)
{
    return (enum launch_type)known_type(t.dtype);
}

bool cuda_slot_accepts(struct exec *x, const char *op, tensor t)
{
    if (!failed(x->status) && known_type(t.dtype) == UNKNOWN_TYPE) {
        exec_fail(x, STATUS_USAGE, op, "the device does not compute in %s", dtype_name(t.dtype));
    }
    return !failed(x->status);
}

struct launch_dropout cuda_slot_dropout(struct dropout d, tensor row_keys)
{
    return (struct launch_dropout){dropout_threshold(d), d.site, (float)dropout_scale(d), row_keys.data};
}
