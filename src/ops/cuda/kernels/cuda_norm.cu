/* cuda_norm: LayerNorm and the ops fused with it: the embedding sum, and bias + dropout + residual at the end
 * of both halves of a layer; forward (cuda_norm_backward.cu: backward).
 *
 * A row is kept as fp32 in the registers of a team (norm_code.cuh).  All of its loads are issued before the
 * first is used.  Bound by memory: each row of each tensor is read or written once. */
#include "ops/cuda/kernels/maxima_code.cuh"
#include "ops/cuda/kernels/norm_code.cuh"
#include "ops/cuda/kernels/round_rows_code.cuh"

/* A source of rows to normalize: `begin` a row, `load` a group of it as stored, `take` its values; `sum`, in
 * sources that have one, keeps them for the backward, or is NULL. */
template <typename A, typename R> struct plain_input {
    typedef A element;
    static const bool DROPS_OUTPUT = false;
    const R *in;
    typedef const R *row;
    typedef packed_eight<R> loaded;

    __device__ row begin(int64_t index, const launch_norm &n, int32_t *) const
    {
        return in + place_of(n.in, index, n.cols);
    }
    template <typename S> __device__ loaded load(row from, int column, int cols) const
    {
        return load_group<S::WHOLE>(from, column, cols);
    }
    template <typename S> __device__ eight take(const loaded &l, int64_t, int, int, uint64_t) const
    {
        return unpack(l);
    }
};

/* residual + dropout(in + bias). */
template <typename A, typename R> struct residual_input {
    typedef A element;
    static const bool DROPS_OUTPUT = false;
    const A *in;
    const R *residual;
    const float *bias;
    R *sum;
    launch_dropout dropout;
    struct row {
        const A *in;
        const R *residual;
    };
    struct loaded {
        packed_eight<A> in;
        packed_eight<R> residual;
    };

    __device__ row begin(int64_t index, const launch_norm &n, int32_t *) const
    {
        return row{in + index * n.cols, residual + index * n.cols};
    }
    template <typename S> __device__ loaded load(row from, int column, int cols) const
    {
        return loaded{load_group<S::WHOLE>(from.in, column, cols),
                      load_group<S::WHOLE>(from.residual, column, cols)};
    }
    template <typename S>
    __device__ eight take(const loaded &l, int64_t index, int column, int cols, uint64_t key) const
    {
        eight e = unpack(l.in), r = unpack(l.residual), b = load_values_or_0<S::WHOLE>(bias, column, cols);
        eight factors = dropout_factors(key, dropout, index, column);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] = r.v[k] + (e.v[k] + b.v[k]) * factors.v[k];
        }
        if (sum != NULL) {
            store_group<S::WHOLE>(sum + index * cols, column, cols, e);
        }
        return e;
    }
};

/* The sum of three rows of tables; dropout is applied after normalization. */
template <typename A> struct embedding_input {
    typedef A element;
    static const bool DROPS_OUTPUT = true;
    const A *word, *position, *type;
    A *sum;
    launch_tables tables;
    struct row {
        const A *word, *position, *type;
    };
    struct loaded {
        packed_eight<A> word, position, type;
    };

    __device__ row begin(int64_t index, const launch_norm &n, int32_t *fault) const
    {
        int64_t cols = n.cols;
        return row{word + checked_index(tables.ids, index, tables.n_ids, fault) * cols,
                   position + checked_index(tables.positions, index, tables.n_positions, fault) * cols,
                   type + checked_index(tables.types, index, tables.n_types, fault) * cols};
    }
    template <typename S> __device__ loaded load(row from, int column, int cols) const
    {
        return loaded{load_group<S::WHOLE>(from.word, column, cols),
                      load_group<S::WHOLE>(from.position, column, cols),
                      load_group<S::WHOLE>(from.type, column, cols)};
    }
    template <typename S>
    __device__ eight take(const loaded &l, int64_t index, int column, int cols, uint64_t) const
    {
        eight e = unpack(l.word), p = unpack(l.position), t = unpack(l.type);
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            e.v[k] += p.v[k] + t.v[k];
        }
        if (sum != NULL) {
            store_group<S::WHOLE>(sum + index * cols, column, cols, e);
        }
        return e;
    }
};

/* Arguments that are the same for all rows; `dropout` is that of the output, if any. */
template <typename Input> struct norm_call {
    typename Input::element *out;
    Input input;
    launch_norm norm;
    launch_dropout dropout;
    const uint64_t *dropout_key;
    int32_t *fault;
};

/* Mean, of the RMS norm 0, and 1 / sqrt(variance + eps) of a row. */
template <typename S>
__device__ static inline void statistics(const eight *values, int cols, float eps, bool is_rms, float *mean,
                                         float *rstd)
{
    __shared__ float partial[2][NORM_WARPS][1];
    float sum[1] = {0}, squares[1] = {0};
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        if (S::column(g) < cols) {
            UNROLL
            for (int k = 0; k < EIGHT; k++) {
                sum[0] += values[g].v[k];
            }
        }
    }
    team_sums<S>(sum, partial[0]);
    *mean = is_rms ? 0.0f : sum[0] / (float)cols;
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        UNROLL
        for (int k = 0; k < EIGHT; k++) {
            float distance = values[g].v[k] - *mean;
            squares[0] += S::column(g) + (S::WHOLE ? 0 : k) < cols ? distance * distance : 0.0f;
        }
    }
    team_sums<S>(squares, partial[1]);
    *rstd = 1.0f / sqrtf(squares[0] / (float)cols + eps);
}

/* The blocks per multiprocessor for which a kernel's registers suffice. */
template <typename A> static constexpr int blocks_for(int groups)
{
    return groups <= 4 ? 4 : sizeof(A) == 4 ? 2 : 3;
}

/* A row of dropout(LN(input)), stored; 0 beyond its end. */
template <typename S, typename Input>
__device__ static inline void normalize_row(eight (&values)[S::GROUPS], const norm_call<Input> &c,
                                            int64_t index, uint64_t key)
{
    int cols = (int)c.norm.cols;
    typename Input::row row = c.input.begin(index, c.norm, c.fault);
    typename Input::loaded loaded[S::GROUPS];
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        if (S::column(g) < cols) {
            loaded[g] = c.input.template load<S>(row, S::column(g), cols);
        }
    }
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        values[g] = eight{};
        if (S::column(g) < cols) {
            values[g] = c.input.template take<S>(loaded[g], index, S::column(g), cols, key);
        }
    }
    float mean, rstd;
    statistics<S>(values, cols, c.norm.eps, c.norm.beta == NULL && c.norm.mean == NULL, &mean, &rstd);
    if (S::column(0) == 0 && c.norm.mean != NULL) {
        c.norm.mean[index] = mean;
    }
    if (S::column(0) == 0 && c.norm.rstd != NULL) {
        c.norm.rstd[index] = rstd;
    }
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        int column = S::column(g);
        if (column < cols) {
            eight gamma = load_values<S::WHOLE>(c.norm.gamma, column, cols),
                  beta = load_values_or_0<S::WHOLE>(c.norm.beta, column, cols);
            UNROLL
            for (int k = 0; k < EIGHT; k++) { /* beyond the end gamma and beta are 0 */
                values[g].v[k] = (values[g].v[k] - mean) * rstd * gamma.v[k] + beta.v[k];
            }
            if (Input::DROPS_OUTPUT) {
                eight factors = dropout_factors(key, c.dropout, index, column);
                UNROLL
                for (int k = 0; k < EIGHT; k++) {
                    values[g].v[k] *= factors.v[k];
                }
            }
            store_group<S::WHOLE>(c.out + place_of(c.norm.out, index, cols), column, cols, values[g]);
        }
    }
}

/* out = dropout(LN(input)). */
template <typename S, typename Input>
__global__ static void __launch_bounds__(BLOCK, blocks_for<typename Input::element>(S::GROUPS))
    norm_kernel(early_start start, norm_call<Input> c)
{
    start.wait();
    int64_t index = (int64_t)blockIdx.x * S::ROWS + S::row();
    if (index >= c.norm.rows) {
        return;
    }
    eight values[S::GROUPS];
    float largest = 0;
    normalize_row<S>(values, c, index, dropout_key_of(c.dropout_key, c.dropout));
    UNROLL
    for (int g = 0; g < S::GROUPS; g++) {
        if (S::column(g) < (int)c.norm.cols) {
            take_largest(&largest, values[g]);
        }
    }
    raise_maxima<typename Input::element>(c.norm.maxima, largest);
}

/* The result of norm_kernel with a band of rows per block, also rounded to fp8. */
template <typename S, typename Input>
__global__ static void __launch_bounds__(BLOCK, blocks_for<typename Input::element>(S::GROUPS))
    norm_round_kernel(norm_call<Input> c, round_rows to)
{
    SHARED_MEMORY(band);
    int64_t first = (int64_t)blockIdx.x * to.band;
    int cols = (int)c.norm.cols;
    uint64_t key = dropout_key_of(c.dropout_key, c.dropout);
    float inverse, largest = 0;
    if (!round_rows_begin<e4m3>(to, &inverse)) {
        return;
    }
    for (int r = S::row(); r < to.band && first + r < c.norm.rows; r += S::ROWS) {
        eight values[S::GROUPS];
        normalize_row<S>(values, c, first + r, key);
        rounded_row row = round_rows_at(to, (uint32_t *)band, r, first + r, cols);
        UNROLL
        for (int g = 0; g < S::GROUPS; g++) {
            if (S::column(g) < cols) {
                round_rows_put<typename Input::element, e4m3>(row, &largest, S::column(g), values[g],
                                                              inverse);
            }
        }
    }
    round_rows_store(to, (const uint32_t *)band, first, c.norm.rows, cols);
    raise_largest(to.to.now, largest);
}

template <typename S, typename Input> static void launch_shape(const launch *l, const norm_call<Input> &c)
{
    clear_maxima(l, c.norm.maxima);
    LAUNCH_EARLY(l, (norm_kernel<S, Input>), blocks_of(c.norm.rows, S::ROWS), BLOCK, c);
}

/* `addresses`: those of everything that is loaded and stored in groups. */
template <typename Input>
static void launch_norm_of(const launch *l, const norm_call<Input> &c, const void *const *addresses, int n)
{
    int64_t cols = c.norm.cols;
    if (!rows_are_whole(cols, addresses, n) || !places_are_whole(c.norm.in, c.norm.out)) {
        launch_shape<row_shape<4, 8, false>>(l, c);
    } else if (cols <= 512) {
        launch_shape<row_shape<1, 2, true>>(l, c);
    } else if (cols <= 1024) {
        launch_shape<row_shape<1, 4, true>>(l, c);
    } else if (cols <= 2048) {
        launch_shape<row_shape<1, 8, true>>(l, c);
    } else {
        launch_shape<row_shape<4, 8, true>>(l, c);
    }
}

template <typename S, typename Input>
static void launch_bands(const launch *l, const norm_call<Input> &c, const launch_rounding &to)
{
    for (int again = 0; again < 2; again++) {
        round_rows rounding = {round_to_of(to), band_rows(c.norm.cols), again};
        LAUNCH(l, (norm_round_kernel<S, Input>), blocks_of(c.norm.rows, rounding.band), BLOCK,
               band_bytes(c.norm.cols), c, rounding);
    }
}

/* The output is stored too: if the row does not fit the kernel, it is rounded from there. */
template <typename Input>
static void launch_rounded(const launch *l, const norm_call<Input> &c, const launch_rounding &to,
                           const void *const *addresses, int n)
{
    int64_t rows = c.norm.rows, cols = c.norm.cols;
    if (!rows_are_whole(cols, addresses, n) || !band_fits(rows, cols)) {
        launch_norm_of(l, c, addresses, n);
        round_stored<typename Input::element, e4m3>(l, round_to_of(to), launch_rows{c.out, cols}, rows, cols);
    } else if (cols <= 512) {
        launch_bands<row_shape<1, 2, true>>(l, c, to);
    } else if (cols <= 1024) {
        launch_bands<row_shape<1, 4, true>>(l, c, to);
    } else if (cols <= 2048) {
        launch_bands<row_shape<1, 8, true>>(l, c, to);
    } else {
        launch_bands<row_shape<4, 8, true>>(l, c, to);
    }
}

static const launch_dropout NO_DROPOUT = {0, 0, 1.0f, NULL};

void cuda_launch_layernorm(const launch *l, const launch_norm *n, void *out, launch_type type, const void *in,
                           launch_type stream_type)
{
    const void *addresses[] = {out, in, n->gamma, n->beta};
    if (n->rows == 0) {
        return;
    }
    BY_TYPES(type, stream_type,
             norm_call<plain_input<A, R>> c = {(A *)out, {(const R *)in}, *n, NO_DROPOUT, NULL, l->fault};
             launch_norm_of(l, c, addresses, 4));
}

template <typename A, typename R>
static void launch_residual(const launch *l, const norm_call<residual_input<A, R>> &c,
                            const launch_rounding *to)
{
    const void *addresses[] = {c.out,        c.input.sum, c.input.in, c.input.bias, c.input.residual,
                               c.norm.gamma, c.norm.beta};
    if (to != NULL) {
        launch_rounded(l, c, *to, addresses, 7);
    } else {
        launch_norm_of(l, c, addresses, 7);
    }
}

void cuda_launch_bias_dropout_add_layernorm(const launch *l, const launch_norm *n, const launch_rounding *to,
                                            void *out, void *sum, const void *in, const float *bias,
                                            const void *residual, launch_type type, launch_type stream_type,
                                            const launch_dropout *d)
{
    if (n->rows == 0) {
        return;
    }
    BY_TYPES(type, stream_type,
             residual_input<A, R> input = {(const A *)in, (const R *)residual, bias, (R *)sum, *d};
             norm_call<residual_input<A, R>> c = {(A *)out, input, *n, *d, l->dropout_key, l->fault};
             launch_residual(l, c, to));
}

void cuda_launch_embed(const launch *l, const launch_norm *n, const launch_tables *t, void *out, void *sum,
                       const void *word, const void *position, const void *segment, launch_type type,
                       const launch_dropout *d)
{
    const void *addresses[] = {out, sum, word, position, segment, n->gamma, n->beta};
    if (n->rows == 0) {
        return;
    }
    BY_TYPE(type, launch_norm_of(l,
                                 norm_call<embedding_input<A>>{
                                     (A *)out,
                                     {(const A *)word, (const A *)position, (const A *)segment, (A *)sum, *t},
                                     *n,
                                     *d,
                                     l->dropout_key,
                                     l->fault},
                                 addresses, 7));
}
