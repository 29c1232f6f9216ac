#include "nn/stream.h"

#include "dev/peers.h"
#include "ops/ops.h"

static bool is_divided(const struct exec *x, const struct stream *s)
{
    return s->divides_rows && peers_size(x) > 1;
}

tensor stream_own(const struct exec *x, const struct stream *s, tensor all)
{
    if (!is_divided(x, s)) {
        return all;
    }
    int64_t n = all.dims[0] / peers_size(x);
    return tensor_slice(all, peers_rank(x) * n, n);
}

tensor stream_narrow(struct exec *x, tensor into, tensor rows)
{
    if (rows.dtype == into.dtype) {
        return rows;
    }
    x->ops->cast(x, into, rows);
    return into;
}

/* A view of `room` [T, H] in the dtype of `own`. */
static tensor room_of(tensor own, tensor room)
{
    CHECK(dtype_bytes(own.dtype) <= dtype_bytes(room.dtype), "%s in room for %s", dtype_name(own.dtype),
          dtype_name(room.dtype));
    return tensor_2d(room.data, own.dtype, room.dims[0], room.dims[1]);
}

static void copy(struct exec *x, tensor to, tensor from)
{
    if (to.data != from.data || to.data == NULL) { /* a plan counts the copy, which a run may not need */
        x->ops->cast(x, to, from);
    }
}

tensor stream_gather(struct exec *x, const struct stream *s, tensor own, tensor room)
{
    if (!is_divided(x, s)) {
        return own;
    }
    tensor all = room_of(own, room);
    copy(x, stream_own(x, s, all), own);
    peers_gather(x, all);
    return all;
}

void stream_sum(struct exec *x, const struct stream *s, tensor all)
{
    (is_divided(x, s) ? peers_scatter : peers_sum)(x, all);
}

tensor stream_room(const struct exec *x, const struct stream *s, tensor own, tensor room)
{
    return is_divided(x, s) ? room_of(own, room) : own;
}

void stream_keep_own(struct exec *x, const struct stream *s, tensor own, tensor all)
{
    if (is_divided(x, s)) {
        copy(x, own, stream_own(x, s, all));
    }
}
