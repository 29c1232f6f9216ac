/* cuda_norm_backward: the gradients of LayerNorm and of the ops fused with it (cuda_norm.cu).
 *
 * A block owns a run of rows; a team (norm_code.cuh) takes its rows in turn, keeps the sums over them, which
 * become the gradients of vectors, in registers, and prefetches the next row.  The runs' sums are added in
 * order.  Bound by memory: each row of each tensor is read or written once. */
#include "ops/cuda/kernels/maxima_code.cuh"
#include "ops/cuda/kernels/norm_code.cuh"
#include "ops/cuda/kernels/round_rows_code.cuh"
#include "ops/cuda/kernels/sums_code.cuh"

/* The tensors of a backward, of activations A, a residual stream R and a gradient D that is one of the two;
 * dropped may be NULL, and is NULL if it is rounded instead. */
template <typename A, typename R, typename D> struct backward_call {
    D *din;
    launch_places din_places;
    A *dropped;
    uint32_t *maxima; /* maxima of dropped, or NULL */
    const A *dout;
    const R *in;
    bool adds;       /* the gradient is added to din */
    float *partials; /* [SUMS][runs][cols]: of dgamma, dbeta, dbias */
    launch_norm n;
    const uint64_t *dropout_key;
    launch_dropout before, after; /* dropouts of dout, and from din to dropped */
};

static const int SUMS = 3;

/* A lane's part of a row of the two input tensors, and the row's statistics from the forward. */
template <typename S, typename A, typename R> struct row_part {
    packed_eight<A> dout[S::GROUPS];
    packed_eight<R> in[S::GROUPS];
    float mean, rstd;
};

template <typename S, typename A, typename R, typename D>
__device__ static inline row_part<S, A, R> load_part(const backward_call<A, R, D> &c, int64_t row)
{
    row_part<S, A, R> part;
    int cols = (int)c.n.cols;
    const A *dout = c.dout + place_of(c.n.out, row, cols);
    const R *in = c.in + place_of(c.n.in, row, cols);
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        if (S::column(g) < cols) {
            part.dout[g] = load_group<S::WHOLE>(dout, S::column(g), cols);
            part.in[g] = load_group<S::WHOLE>(in, S::column(g), cols);
        }
    }
    part.mean = c.n.mean == NULL ? 0.0f : c.n.mean[row]; /* NULL: the RMS norm */
    part.rstd = c.n.rstd[row];
    return part;
}

__device__ static inline eight normalized(const eight &in, float mean, float rstd)
{
    eight xhat;
    UNROLL
    for (int k = 0; k < EIGHT; k++) {
        xhat.v[k] = (in.v[k] - mean) * rstd;
    }
    return xhat;
}

template <int N> struct alignas(16) warp_sums {
    float column[N];
};

/* Sums of a block in shared memory. */
template <typename S> struct block_sums {
    warp_sums<S::TEAM == 1 ? S::GROUPS * WARP * EIGHT : EIGHT> of_warp[S::TEAM == 1 ? NORM_WARPS : 1];
};

/* Adds the sums of a block's teams to the sums of its run.  A team of all warps is the only one in its
 * columns. */
template <typename S>
__device__ static inline void store_sums(float *partials, int cols, eight (*sums)[S::GROUPS],
                                         block_sums<S> *block)
{
    auto *of_warp = block->of_warp;
    int64_t runs = gridDim.x;
    UNROLL
    for (int s = 0; s < SUMS; s++) {
        float *to = partials + (s * runs + blockIdx.x) * cols;
        UNROLL
        for (int g = 0; g < S::GROUPS; g++) {
            int column = S::column(g);
            if (S::TEAM == 1) {
                store_whole(&of_warp[S::row()].column[column], pack(sums[s][g], 0.0f));
            } else if (column < cols) {
                store_group<S::WHOLE>(to, column, cols, sums[s][g]);
            }
        }
        if (S::TEAM == 1) {
            __syncthreads();
            for (int column = (int)threadIdx.x * EIGHT; column < cols; column += BLOCK * EIGHT) {
                eight total = unpack(load_whole(&of_warp[0].column[column]));
                for (int w = 1; w < NORM_WARPS; w++) {
                    add_eight(&total, unpack(load_whole(&of_warp[w].column[column])));
                }
                store_group<S::WHOLE>(to, column, cols, total);
            }
            __syncthreads();
        }
    }
}

/* The blocks per multiprocessor for which the registers suffice. */
template <typename R, bool ADDS> static constexpr int blocks_for(int groups)
{
    return groups <= 2 ? (sizeof(R) == 4 || ADDS ? 3 : 4) : groups <= 4 ? 2 : 1;
}

/* A run of rows, of full bands. */
__device__ static inline int64_t run_begin(int64_t rows, int band, int64_t run, int64_t runs)
{
    int64_t begin = (rows + band - 1) / band * run / runs * band;
    return begin < rows ? begin : rows;
}

/* din = rstd (g - mean(g) - xhat mean(g xhat)), g = dout gamma, of a run of rows, or += that.  ROUNDS:
 * `dropped` is rounded and not stored.  Long because it is a single pass over the rows. */
template <typename S, typename A, typename R, typename D, bool ADDS, bool ROUNDS>
__device__ static inline void norm_backward(const backward_call<A, R, D> &c, const round_rows &to,
                                            uint32_t *band, block_sums<S> *shared_sums)
{
    __shared__ float partial[2][NORM_WARPS][2];
    uint64_t key_before = dropout_key_of(c.dropout_key, c.before),
             key_after = dropout_key_of(c.dropout_key, c.after);
    int64_t runs = gridDim.x, first = run_begin(c.n.rows, to.band, blockIdx.x, runs),
            end = run_begin(c.n.rows, to.band, blockIdx.x + 1, runs), row = first + S::row();
    int cols = (int)c.n.cols;
    eight sums[SUMS][S::GROUPS] = {};
    float largest = 0, inverse = 0;
    if (ROUNDS && !round_rows_begin<e5m2>(to, &inverse)) {
        return;
    }
    row_part<S, A, R> next;
    if (row < end) {
        next = load_part<S>(c, row);
    }
    for (; row < end; row += S::ROWS) {
        row_part<S, A, R> now = next;
        D *din = c.din + place_of(c.din_places, row, cols);
        eight dy[S::GROUPS];
        packed_eight<D> before[ADDS ? S::GROUPS : 1];
        float of_row[2] = {0, 0}; /* sums of g, and of g xhat */
        if (row + S::ROWS < end) {
            next = load_part<S>(c, row + S::ROWS);
        }
        UNROLL
        for (int g = 0; g < S::GROUPS; g++) {
            int column = S::column(g);
            if (ADDS && column < cols) { /* loads in flight during the sums over the row */
                before[ADDS ? g : 0] = load_group<S::WHOLE>(din, column, cols);
            }
            if (column < cols) {
                eight factors = dropout_factors(key_before, c.before, row, column),
                      gamma = load_values<S::WHOLE>(c.n.gamma, column, cols),
                      xhat = normalized(unpack(now.in[g]), now.mean, now.rstd);
                dy[g] = unpack(now.dout[g]);
                UNROLL
                for (int k = 0; k < EIGHT; k++) { /* beyond the end dy is 0 */
                    dy[g].v[k] *= factors.v[k];
                    sums[0][g].v[k] += dy[g].v[k] * xhat.v[k];
                    sums[1][g].v[k] += dy[g].v[k];
                    dy[g].v[k] *= gamma.v[k];
                    of_row[0] += dy[g].v[k];
                    of_row[1] += dy[g].v[k] * xhat.v[k];
                }
            }
        }
        team_sums<S>(of_row, partial[row % 2]);
        float mean_g = c.n.mean == NULL ? 0.0f : of_row[0] / (float)cols,
              mean_g_xhat = of_row[1] / (float)cols;
        rounded_row to_row = {};
        if (ROUNDS) {
            to_row = round_rows_at(to, band, (int)(row - first), row, cols);
        }
        UNROLL
        for (int g = 0; g < S::GROUPS; g++) {
            int column = S::column(g);
            if (column < cols) {
                eight factors = dropout_factors(key_after, c.after, row, column),
                      xhat = normalized(unpack(now.in[g]), now.mean, now.rstd);
                UNROLL
                for (int k = 0; k < EIGHT; k++) {
                    dy[g].v[k] = now.rstd * (dy[g].v[k] - mean_g - xhat.v[k] * mean_g_xhat);
                }
                if (ADDS) {
                    add_eight(&dy[g], unpack(before[ADDS ? g : 0]));
                }
                store_group<S::WHOLE>(din, column, cols, dy[g]);
                UNROLL
                for (int k = 0; k < EIGHT; k++) {
                    dy[g].v[k] *= factors.v[k];
                    sums[2][g].v[k] += dy[g].v[k];
                }
                if (ROUNDS) {
                    round_rows_put<A, e5m2>(to_row, &largest, column, dy[g], inverse);
                } else if (c.dropped != NULL) {
                    store_group<S::WHOLE>(c.dropped + row * cols, column, cols, dy[g]);
                    for (int k = 0; !S::WHOLE && k < EIGHT; k++) { /* beyond the end it is not */
                        dy[g].v[k] = column + k < cols ? dy[g].v[k] : 0.0f;
                    }
                    take_largest(&largest, dy[g]);
                }
            }
        }
        int64_t begun = row - S::row() + S::ROWS; /* the same in all warps: their numbers of rows are equal */
        if (ROUNDS && (begun - first == to.band || begun >= end)) {
            round_rows_store(to, band, first, end, cols);
            first += to.band;
        }
    }
    if (ROUNDS) {
        raise_largest(to.to.now, largest);
    } else {
        assign_maxima<A>(c.maxima, largest);
    }
    store_sums<S>(c.partials, cols, sums, shared_sums);
}

template <typename S, typename A, typename R, typename D, bool ADDS>
__global__ static void __launch_bounds__(BLOCK, blocks_for<R, ADDS>(S::GROUPS))
    norm_backward_kernel(backward_call<A, R, D> c)
{
    __shared__ block_sums<S> sums;
    norm_backward<S, A, R, D, ADDS, false>(c, round_rows{{}, 1, 0}, NULL, &sums);
}

template <typename S, typename A, typename R, typename D>
__global__ static void __launch_bounds__(BLOCK, blocks_for<R, false>(S::GROUPS))
    norm_backward_round_kernel(backward_call<A, R, D> c, round_rows to)
{
    SHARED_MEMORY(memory); /* memory of the band, and of the sums once that is written */
    norm_backward<S, A, R, D, false, true>(c, to, (uint32_t *)memory, (block_sums<S> *)memory);
}

/* A kernel that adds does not round: rounding may need a second launch, which would add twice. */
template <typename S, typename A, typename R, typename D>
static void launch_shape(const launch *l, const backward_call<A, R, D> &c, const launch_rounding *to,
                         unsigned runs)
{
    for (int again = 0; to != NULL && again < 2; again++) {
        round_rows rounding = {round_to_of(*to), band_rows(c.n.cols), again};
        size_t band = band_bytes(c.n.cols), sums = sizeof(block_sums<S>);
        LAUNCH(l, (norm_backward_round_kernel<S, A, R, D>), runs, BLOCK, band > sums ? band : sums, c,
               rounding);
    }
    if (to == NULL && c.adds) {
        LAUNCH(l, (norm_backward_kernel<S, A, R, D, true>), runs, BLOCK, 0, c);
    } else if (to == NULL) {
        LAUNCH(l, (norm_backward_kernel<S, A, R, D, false>), runs, BLOCK, 0, c);
    }
}

template <typename A, typename R, typename D>
static void launch_shapes(const launch *l, const backward_call<A, R, D> &c, const launch_rounding *to,
                          unsigned runs)
{
    const void *addresses[] = {c.din, c.dropped, c.dout, c.in, c.partials, c.n.gamma};
    int64_t cols = c.n.cols;
    if (to != NULL && (c.adds || !rows_are_whole(cols, addresses, 6) || !band_fits(c.n.rows, cols))) {
        launch_shapes(l, c, NULL, runs); /* and from where it is stored */
        round_stored<A, e5m2>(l, round_to_of(*to), launch_rows{c.dropped, cols}, c.n.rows, cols);
    } else if (!rows_are_whole(cols, addresses, 6) || !places_are_whole(c.n.in, c.n.out) ||
               c.din_places.stride % EIGHT != 0) {
        launch_shape<row_shape<4, 8, false>>(l, c, NULL, runs);
    } else if (cols <= 512) {
        launch_shape<row_shape<1, 2, true>>(l, c, to, runs);
    } else if (cols <= 1024 && sizeof(R) == 2) { /* with elements of four bytes it would not fit the
                                                  * registers */
        launch_shape<row_shape<1, 4, true>>(l, c, to, runs);
    } else if (cols <= 2048) {
        launch_shape<row_shape<4, 2, true>>(l, c, to, runs);
    } else if (cols <= 4096) {
        launch_shape<row_shape<4, 4, true>>(l, c, to, runs);
    } else {
        launch_shape<row_shape<4, 8, true>>(l, c, NULL, runs);
    }
}

template <typename A, typename R, typename D>
static void launch_backward(const launch *l, const launch_norm *n, const launch_norm_backward *b)
{
    const launch_dropout none = {0, 0, 1.0f, NULL};
    backward_call<A, R, D> c = {(D *)b->din,
                                b->din_places,
                                (A *)b->dropped,
                                b->maxima,
                                (const A *)b->dout,
                                (const R *)b->in,
                                b->adds != 0,
                                l->scratch,
                                *n,
                                l->dropout_key,
                                b->before == NULL ? none : *b->before,
                                b->after == NULL ? none : *b->after};
    launch_shapes(l, c, b->to, (unsigned)b->runs);
    add_runs(l, run_totals{{b->dgamma, b->dbeta, b->dbias}}, SUMS, l->scratch, b->runs, n->cols);
}

void cuda_launch_layernorm_backward(const launch *l, const launch_norm *n, const launch_norm_backward *b,
                                    launch_type type)
{
    if (n->rows == 0) {
        return;
    }
    BY_TYPES(
        type, b->stream_type, if (b->din_type == type) { launch_backward<A, R, A>(l, n, b); } else {
            launch_backward<A, R, R>(l, n, b);
        });
}
