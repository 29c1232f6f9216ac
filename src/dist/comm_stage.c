#include "dist/comm_stage.h"

#include "core/integers.h"

#include <stdlib.h>

/* Whether a call reads a rank's elements, and whether it writes them. */
static bool gives(const struct comm_call *call, int rank)
{
    return call->kind != CALL_RECEIVE && (call->kind != CALL_BROADCAST || call->root == rank);
}

static bool takes(const struct comm_call *call, int rank)
{
    return call->kind != CALL_SEND && (call->kind != CALL_BROADCAST || call->root != rank);
}

/* A failed copy is an error that all ranks hear of in the exchange of the piece, and the last one's in their
 * next call.  Of a sum in parts only this rank's part is written. */
static struct status call_piece(const struct comm *c, struct exec *x, struct comm_call call, tensor piece,
                                bool in_parts)
{
    const struct comm_stage *s = c->stage;
    tensor copy = tensor_1d(s->piece, piece.dtype, piece.dims[0]);
    struct exec host = {.device = &device_cpu, .layer_index = -1};
    if (gives(&call, c->rank)) {
        exec_copy_out(x, copy.data, piece.data, tensor_bytes(piece));
    }
    call.count = piece.dims[0];
    call.status = failed(x->status) ? x->status : call.status;
    TRY(c->type->call(c->state, &host, &call, copy, in_parts ? s->bounds : NULL));
    int64_t first = in_parts ? s->bounds[c->rank] : 0;
    int64_t n = in_parts ? s->bounds[c->rank + 1] - first : piece.dims[0];
    if (takes(&call, c->rank)) {
        exec_copy_in(x, tensor_slice(piece, first, n).data, tensor_slice(copy, first, n).data,
                     (size_t)n * dtype_bytes(piece.dtype));
    }
    return status_ok();
}

/* A tensor without elements is one empty piece, so that all ranks meet. */
static struct status call_pieces(const struct comm *c, struct exec *x, const struct comm_call *call, tensor t,
                                 const int64_t *bounds)
{
    int64_t n = tensor_count(t), most = COMM_STAGE_PIECE_BYTES / (int64_t)dtype_bytes(t.dtype), first = 0;
    tensor flat = tensor_1d(t.data, t.dtype, n);
    do {
        int64_t n_piece = int_smaller(n - first, most);
        if (bounds != NULL) {
            comm_cut_bounds(c->stage->bounds, bounds, c->size, first, first + n_piece);
        }
        TRY(call_piece(c, x, *call, tensor_slice(flat, first, n_piece), bounds != NULL));
        first += n_piece;
    } while (first < n);
    return x->status;
}

/* Gathers by a broadcast of each rank, so that memory for one piece is enough. */
static struct status gather(const struct comm *c, struct exec *x, const struct comm_call *call, tensor t,
                            const int64_t *bounds)
{
    TRY(comm_agree(c, call->status)); /* ranks meet even if no rank has rows */
    for (int r = 0; r < c->size; r++) {
        struct comm_call part = {.kind = CALL_BROADCAST, .root = r, .dtype = t.dtype};
        if (bounds[r] < bounds[r + 1]) {
            TRY(call_pieces(c, x, &part, tensor_slice(t, bounds[r], bounds[r + 1] - bounds[r]), NULL));
        }
    }
    return status_ok();
}

struct status comm_stage_call(const struct comm *c, struct exec *x, const struct comm_call *call, tensor t,
                              const int64_t *bounds)
{
    return call->kind == CALL_ALL_GATHER ? gather(c, x, call, t, bounds) : call_pieces(c, x, call, t, bounds);
}

struct status comm_stage_init(struct comm_stage *s, int size)
{
    *s = (struct comm_stage){.piece = malloc(COMM_STAGE_PIECE_BYTES),
                             .bounds = calloc((size_t)size + 1, sizeof *s->bounds)};
    return s->piece != NULL && s->bounds != NULL
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory to stage what ranks exchange");
}

void comm_stage_fini(struct comm_stage *s)
{
    free(s->piece);
    free(s->bounds);
    *s = (struct comm_stage){0};
}
