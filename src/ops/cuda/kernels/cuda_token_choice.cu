/* cuda_token_choice: chooses a token from each row of logits without sorting them.
 *
 * A block owns a row.  The order of tokens is that of integers, the logit's bits above the token's, all
 * different.  The first tokens whose weights sum to something are those from a number on, which is found two
 * bits at a time: each reading of the row, from the cache, sums what is above three bounds.  Sums are trees
 * of fixed shape, so the same row gives the same token. */
#include "ops/cuda/kernels/tally_code.cuh"

/* Tokens of a row: those from place `last` on that weigh at least `least`. */
struct candidates {
    const float *logits;
    int64_t n;
    float largest, cold; /* weight = exp((logit - largest) cold) */
    uint64_t last;
    float least;
};

__device__ static inline uint64_t place_of(float logit, int64_t token)
{
    uint32_t bits = __float_as_uint(logit == 0.0f ? 0.0f : logit); /* zeros of both signs are equal */
    bits = bits >> 31 ? ~bits : bits | 0x80000000U;
    return (uint64_t)bits << 32 | (uint32_t) ~(uint32_t)token;
}

__device__ static inline int32_t token_of(uint64_t place)
{
    return (int32_t) ~(uint32_t)place;
}

/* The weight of a token; 0: it is no candidate. */
__device__ static inline float weight(const candidates &c, float logit, uint64_t place)
{
    float w = expf((logit - c.largest) * c.cold);
    return place >= c.last && w >= c.least ? w : 0.0f;
}

/* The largest of a block; `partial` is shared memory, [32]. */
__device__ static uint64_t block_largest(uint64_t v, uint64_t *partial)
{
    int warp = threadIdx.x / WARP, n_warps = (blockDim.x + WARP - 1) / WARP;
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        uint64_t other = __shfl_xor_sync(0xffffffffU, v, distance);
        v = other > v ? other : v;
    }
    __syncthreads(); /* the last call's values are read */
    if (threadIdx.x % WARP == 0) {
        partial[warp] = v;
    }
    __syncthreads();
    for (int i = 0; i < n_warps; i++) {
        v = partial[i] > v ? partial[i] : v;
    }
    return v;
}

/* The first place of tokens [0, n) after `before`; 0: there is none. */
__device__ static uint64_t next_place(const float *logits, int64_t n, uint64_t before, uint64_t *partial)
{
    uint64_t next = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        uint64_t place = place_of(logits[i], i);
        next = place < before && place > next ? place : next;
    }
    return block_largest(next, partial);
}

/* The last place of candidates that is not after `from`. */
__device__ static uint64_t last_place(const candidates &c, uint64_t from, uint64_t *partial)
{
    uint64_t last = 0; /* the largest complement of a place */
    for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
        uint64_t place = place_of(c.logits[i], i);
        bool counts = place >= from && weight(c, c.logits[i], place) > 0.0f;
        last = counts && ~place > last ? ~place : last;
    }
    return ~block_largest(last, partial);
}

__device__ static double sum_of(const candidates &c, double *partial)
{
    float sum = 0;
    for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
        sum += weight(c, c.logits[i], place_of(c.logits[i], i));
    }
    return block_sum((double)sum, partial);
}

/* Whether there is one logit whose bits are those of a place. */
__device__ static bool is_alone(const candidates &c, uint64_t at, double *partial)
{
    float n = 0;
    for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
        n += place_of(c.logits[i], i) >> 32 == at >> 32 ? 1.0f : 0.0f;
    }
    return block_sum((double)n, partial) == 1;
}

/* A bound such that the candidates from it on are the first whose weights, or numbers, sum to `wanted`, or
 * with `above` to more; 0 if all do not. */
template <bool COUNTS>
__device__ static uint64_t first_up_to(const candidates &c, double wanted, bool above, double *partial)
{
    uint64_t bound = 0;
    for (int shift = 62; shift >= 0; shift -= 2) {
        float sums[3] = {0.0f, 0.0f, 0.0f};
        for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) {
            uint64_t place = place_of(c.logits[i], i);
            float counts = COUNTS ? 1.0f : weight(c, c.logits[i], place);
            for (int k = 0; k < 3; k++) {
                sums[k] += place >= bound + ((uint64_t)(k + 1) << shift) ? counts : 0.0f;
            }
        }
        int digit = 0;
        for (int k = 0; k < 3; k++) {
            double sum = block_sum((double)sums[k], partial);
            digit = (above ? sum > wanted : sum >= wanted) ? k + 1 : digit;
        }
        bound += (uint64_t)digit << shift;
        if (shift == 32 && is_alone(c, bound, partial)) {
            break;
        }
    }
    return bound;
}

__device__ static int32_t choose(const float *logits, int64_t n, const double *options, double *partial,
                                 uint64_t *places)
{
    uint64_t first = next_place(logits, n, UINT64_MAX, places);
    if (options[LAUNCH_TEMPERATURE] == 0) {
        return token_of(first);
    }
    double cold = 1 / options[LAUNCH_TEMPERATURE];
    candidates c = {logits, n, logits[token_of(first)], (float)(cold < 1e30 ? cold : 1e30), 0, 0.0f};
    if (options[LAUNCH_TOP_K] > 0 && options[LAUNCH_TOP_K] < (double)n) {
        c.last = first_up_to<true>(c, options[LAUNCH_TOP_K], false, partial);
    }
    if (options[LAUNCH_TOP_P] < 1) {
        uint64_t last = first_up_to<false>(c, options[LAUNCH_TOP_P] * sum_of(c, partial), false, partial);
        c.last = last > c.last ? last : c.last;
    }
    c.least = (float)options[LAUNCH_MIN_P];
    double wanted = options[LAUNCH_RANDOM] * sum_of(c, partial);
    return token_of(last_place(c, first_up_to<false>(c, wanted, true, partial), places));
}

/* Puts a changed logit in its place, and the logit before where the change was. */
__device__ static void change_logit(float *logits, float *change, const double *options, int64_t n_words,
                                    int32_t *fault)
{
    int32_t id = (int32_t)change[LAUNCH_ID];
    float *logit = &logits[checked_index(&id, 0, n_words, fault)], before = *logit;
    float v = before + change[LAUNCH_ADD], n_new = change[LAUNCH_N_NEW];
    double penalty = options[LAUNCH_REPETITION];
    v *= change[LAUNCH_WAS] == 0.0f ? 1.0f : (float)(v < 0.0f ? penalty : 1 / penalty);
    v -= n_new > 0.0f ? (float)((double)n_new * options[LAUNCH_FREQUENCY] + options[LAUNCH_PRESENCE]) : 0.0f;
    change[LAUNCH_ADD] = before;
    *logit = v;
}

__device__ static void rate(int32_t *tokens, float *log_ps, int64_t n_rated, const float *logits,
                            int64_t n_tokens, float all, uint64_t *places)
{
    uint64_t place = UINT64_MAX;
    for (int64_t k = 0; k < n_rated && place != 0; k++) {
        place = k == 0 ? place : next_place(logits, n_tokens, place, places);
        if (threadIdx.x == 0 && place != 0) {
            int32_t token = k == 0 ? tokens[0] : token_of(place);
            tokens[k] = token;
            log_ps[k] = -(all - logits[token]);
        }
    }
}

__global__ static void choose_tokens_kernel(launch_choice c, int32_t *fault)
{
    __shared__ double partial[WARP];
    __shared__ uint64_t places[WARP];
    int64_t row = blockIdx.x, first = c.starts[row], end = c.starts[row + 1];
    float *logits = (float *)c.logits.data + row * c.logits.stride, *log_ps = c.log_ps + row * c.most;
    const double *options = c.options + row * LAUNCH_N_OPTIONS;
    int32_t *tokens = c.tokens + row * c.most, label = (int32_t)options[LAUNCH_LABEL];
    end = end < c.n_changes ? end : c.n_changes;
    float bad = 0;
    for (int64_t i = threadIdx.x; i < c.n_words; i += blockDim.x) {
        bad += isfinite(logits[i]) ? 0.0f : 1.0f;
    }
    bool finite = block_sum((double)bad, partial) == 0;
    for (int64_t i = threadIdx.x; i < c.most; i += blockDim.x) {
        tokens[i] = -1;
        log_ps[i] = i == 0 && !finite ? NAN : 0.0f;
    }
    if (!finite) {
        return;
    }
    if (label < 0) {
        for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
            change_logit(logits, c.changes + i * LAUNCH_N_CHANGE_COLUMNS, options, c.n_words, fault);
        }
        __syncthreads();
        label = choose(logits, c.n_tokens, options, partial, places);
        __syncthreads();
        for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
            const float *change = c.changes + i * LAUNCH_N_CHANGE_COLUMNS;
            int32_t id = (int32_t)change[LAUNCH_ID];
            logits[checked_index(&id, 0, c.n_words, fault)] = change[LAUNCH_ADD];
        }
    } else {
        label = (int32_t)checked_index(&label, 0, c.n_words, fault);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        tokens[0] = label;
    }
    if (options[LAUNCH_N_RATED] > 0) {
        float all = log_sum_exp(row_tally(logits, c.n_words));
        rate(tokens, log_ps, (int64_t)options[LAUNCH_N_RATED], logits, c.n_tokens, all, places);
    }
}

void cuda_launch_choose_tokens(const launch *l, const launch_choice *c)
{
    if (c->rows > 0) {
        LAUNCH(l, choose_tokens_kernel, (unsigned)c->rows, threads_for(c->n_words), 0, *c, l->fault);
    }
}
