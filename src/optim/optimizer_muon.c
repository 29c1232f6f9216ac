/* Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"; Liu et al. 2025,
 * arXiv:2502.16982): the update of a layer's matrix is the orthogonal matrix nearest to its momentum u, found
 * by the iteration of Newton and Schulz,
 *
 *     X = u / |u|;   5 times  X = a X + b (X X^T) X + c (X X^T)^2 X
 *     w = w (1 - lr wd) - lr 0.2 sqrt(max(rows, columns)) X
 *
 * which carries X's singular values to about 1, and its length to that of an update of AdamW's, so that both
 * take the same rate. Everything else - embeddings, vectors, heads - is updated as AdamW has it.  The
 * products are over the shorter side of X, in the dtype of the model's products.  The same rule is
 * torch.optim.Muon with adjust_lr_fn="match_rms_adamw".
 *
 * Of a matrix that tensor parallelism cuts, each peer iterates its slice: X^T X is a sum over slices of rows,
 * and X X^T over slices of columns.  So a round exchanges one square of the side that is whole, and no peer
 * needs another's slice. */
#include "core/arena.h"
#include "core/integers.h"
#include "dev/peers.h"
#include "optim/optimizer.h"

#include <math.h>

enum { N_ROUNDS = 5 };

static const double A = 3.4445, B = -4.7750, C = 2.0315;
static const double STEP = 0.2; /* the usual root mean square of AdamW's update (Liu et al., section 2.2) */

struct scratch {
    bool is_slice;       /* X is one of a matrix; the peers have the others */
    bool by_rows;        /* G is X X^T, not X^T X: over the shorter side, or the one that is whole */
    tensor x, next;      /* [rows, columns] */
    tensor gram, square; /* [M, M] G and its square */
    tensor sums;         /* [M, M] G in the dtype of gradients */
};

static struct scratch carve(struct arena *a, const struct optim_span *s, enum dtype dtype)
{
    int64_t rows = s->rows, cols = s->n / s->rows;
    bool is_slice = rows < s->full_rows || cols < s->full_cols,
         by_rows = is_slice ? rows == s->full_rows : rows <= cols;
    int64_t m = by_rows ? rows : cols;
    return (struct scratch){.is_slice = is_slice,
                            .by_rows = by_rows,
                            .x = arena_carve_2d(a, dtype, rows, cols),
                            .next = arena_carve_2d(a, dtype, rows, cols),
                            .gram = arena_carve_2d(a, dtype, m, m),
                            .square = arena_carve_2d(a, dtype, m, m),
                            .sums = arena_carve_2d(a, dtype_of_vectors(dtype), m, m)};
}

static size_t scratch_bytes(const struct optim_span *spans, int64_t n_spans, enum dtype dtype)
{
    size_t most = 0;
    for (int64_t i = 0; i < n_spans; i++) {
        if (spans[i].rows > 0) {
            struct arena a = arena_measuring();
            carve(&a, &spans[i], dtype);
            most = a.used > most ? a.used : most;
        }
    }
    return most;
}

static void direction(struct exec *x, const struct optimizer_step *s)
{
    int64_t others = s->n_spans - s->n_matrices;
    const struct optim_span *matrices = s->parted + others;
    tensor sums = tensor_slice(s->own_sums, 0, optim_chunks(matrices, s->n_matrices));
    x->ops->nesterov(x, sums, s->buffers, matrices, s->n_matrices, s->norm, s->scalars);
}

/* gram = G = X X^T by rows, X^T X by columns; of a slice, the sum over the peers. */
static void find_gram(struct exec *x, const struct scratch *t)
{
    if (t->by_rows && !t->is_slice) {
        x->ops->linear(x, t->gram, t->x, t->x, NULL_TENSOR);
        return;
    }
    if (t->by_rows) {
        x->ops->linear(x, t->sums, t->x, t->x, NULL_TENSOR);
    } else {
        x->ops->linear_backward_weight(x, t->sums, NULL_TENSOR, t->x, t->x, false);
    }
    if (t->is_slice) {
        peers_sum(x, t->sums);
    }
    x->ops->cast(x, t->gram, t->sums);
}

/* next = (a I + b G + c G^2) X by rows, X (a I + b G + c G^2) by columns. */
static void iterate(struct exec *x, const struct scratch *t, double scale)
{
    find_gram(x, t);
    x->ops->linear(x, t->square, t->gram, t->gram, NULL_TENSOR);
    x->ops->matrix_polynomial(x, t->gram, t->gram, t->square, scale * A, scale * B, scale * C);
    if (t->by_rows) {
        x->ops->linear_backward_input(x, t->next, t->gram, t->x, false);
    } else {
        x->ops->linear(x, t->next, t->x, t->gram, NULL_TENSOR);
    }
}

static void orthogonalize(struct exec *x, struct scratch *t, double scale)
{
    for (int i = 0; i < N_ROUNDS; i++) {
        iterate(x, t, i == N_ROUNDS - 1 ? scale : 1);
        tensor next = t->next;
        t->next = t->x;
        t->x = next;
    }
}

/* `sums` [chunks, 1]: of the squares of its chunks; of a slice, those of slices are added chunk by chunk. */
static void step(struct exec *x, const struct optimizer_step *s, const struct optim_span *span, tensor sums)
{
    struct arena a = arena_over(s->scratch.data, (size_t)tensor_count(s->scratch));
    enum dtype dtype =
        tensor_is_null(s->buffers.working) ? s->buffers.master.dtype : s->buffers.working.dtype;
    struct scratch t = carve(&a, span, dtype);
    tensor u = tensor_slice(s->buffers.grad, span->offset, span->n);
    if (t.is_slice) {
        peers_sum(x, sums);
    }
    x->ops->unit(x, t.x, tensor_2d(u.data, u.dtype, tensor_rows(t.x), tensor_cols(t.x)), sums);
    orthogonalize(x, &t, STEP * sqrt((double)int_larger(span->full_rows, span->full_cols)));
    x->ops->descend(x, s->buffers, span, t.x, s->norm, s->scalars);
}

static void apply(struct exec *x, const struct optimizer_step *s)
{
    int64_t chunk = 0, others = s->n_spans - s->n_matrices;
    x->ops->adamw(x, s->buffers, s->parted, others, s->norm, s->scalars);
    for (const struct optim_span *m = s->parted + others; m < s->parted + s->n_spans; m++) {
        int64_t chunks = optim_chunks(m, 1);
        step(x, s, m, tensor_slice(s->own_sums, chunk, chunks));
        chunk += chunks;
    }
}

const struct optimizer_kind optimizer_muon = {
    .name = "muon",
    .n_sums = 1,
    .takes_matrices = true,
    .scratch_bytes = scratch_bytes,
    .direction = direction,
    .apply = apply,
};
