/* cuda_attention_cached: keys and values in pages: writes those of new tokens, and attention that reads
 * them, of one query (a decoder's step) or of a prompt's.
 *
 * A block owns one query of one head.  A thread has a key of BLOCK at a time for its score, reading
 * neighbouring tokens of a page's columns, then columns of the values; the softmax is rescaled as the
 * largest score grows (Dao 2023, arXiv:2307.08691, algorithm 1).  Bound by memory for single queries; a
 * prompt's queries read keys again from the cache.  The order of sums depends on the places of keys alone. */
#include "ops/cuda/kernels/attention_code.cuh"

static const int PAGE = LAUNCH_CACHE_PAGE, MOST_HEAD_SIZE = 256, OWN_COLUMNS = MOST_HEAD_SIZE / BLOCK;

/* ---- the pages of a cache ---- */

template <typename A>
__global__ static void append_kernel(launch_cached c, launch_rows k, launch_rows v, const int32_t *slots,
                                     int32_t *fault)
{
    int64_t row = blockIdx.x, d = c.head_size;
    if (slots[row] < 0) {
        return;
    }
    int64_t slot = checked_index(slots, row, c.n_pages * PAGE, fault), place = slot % PAGE;
    for (int64_t i = threadIdx.x; i < c.n_kv_heads * d; i += blockDim.x) {
        int64_t page = (slot / PAGE * c.n_kv_heads + i / d) * PAGE * d, column = i % d;
        ((A *)c.keys)[page + column * PAGE + place] = ((const A *)k.data)[row * k.stride + i];
        ((A *)c.values)[page + place * d + column] = ((const A *)v.data)[row * v.stride + i];
    }
}

void cuda_launch_append(const launch *l, const launch_cached *c, launch_rows k, launch_rows v,
                        launch_type type, const int32_t *slots, int64_t rows)
{
    if (rows > 0) {
        BY_TYPE(type, LAUNCH(l, append_kernel<A>, (unsigned)rows, BLOCK, 0, *c, k, v, slots, l->fault));
    }
}

/* ---- attention ---- */

/* The query of a block: its sequence, and the keys [first, n_keys) that it sees. */
struct query {
    int64_t sequence, first, n_keys;
};

__device__ static query query_of(const launch_attention &a, int64_t row)
{
    int64_t low = 0, high = a.n_sequences;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (a.cu_q[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    place p = place_at(a, (int)low, 0, 0);
    int64_t own = row - p.q0, n = row >= a.cu_q[a.n_sequences] ? 0 : visible_keys(a, p, own);
    return query{low, first_key(a, p, own), n};
}

/* The first element of the part of the page of key j that a head of keys and values has. */
__device__ static int64_t page_at(const launch_cached &c, int64_t sequence, int64_t j, int64_t kv_head,
                                  int32_t *fault)
{
    int64_t page = checked_index(c.block_table, sequence * c.table_width + j / PAGE, c.n_pages, fault);
    return (page * c.n_kv_heads + kv_head) * PAGE * c.head_size;
}

template <typename A>
__device__ static float score_of(const launch_cached &c, const float *q, int64_t page, int64_t place)
{
    const A *keys = (const A *)c.keys + page + place;
    float sum = 0;
    for (int64_t i = 0; i < c.head_size; i++) {
        sum += q[i] * to_float(keys[i * PAGE]);
    }
    return sum;
}

__device__ static float largest_of(const float *scores, int64_t n)
{
    float largest = -INFINITY;
    for (int64_t j = 0; j < n; j++) {
        largest = fmaxf(largest, scores[j]);
    }
    return largest;
}

template <typename A>
__global__ static void cached_kernel(launch_attention a, launch_cached c, launch_rows out, launch_rows in,
                                     int32_t *fault)
{
    __shared__ float q[MOST_HEAD_SIZE], scores[BLOCK];
    __shared__ int64_t pages[BLOCK / PAGE];
    int64_t row = blockIdx.x, head = blockIdx.y, d = c.head_size, t = threadIdx.x;
    int64_t kv_head = head / (a.n_heads / c.n_kv_heads);
    query own = query_of(a, row);
    float slope = a.slopes == NULL ? 0.0f : a.slopes[head], most = -INFINITY, sum = 0,
          result[OWN_COLUMNS] = {0};
    for (int64_t i = t; i < d; i += BLOCK) {
        q[i] = to_float(((const A *)in.data)[row * in.stride + head * d + i]);
    }
    for (int64_t first = own.first / PAGE * PAGE; first < own.n_keys; first += BLOCK) {
        int64_t n = own.n_keys - first < BLOCK ? own.n_keys - first : BLOCK;
        __syncthreads(); /* the scores before are read */
        if (t % PAGE == 0 && t < n) {
            pages[t / PAGE] = page_at(c, own.sequence, first + t, kv_head, fault);
        }
        __syncthreads();
        if (t < n) {
            float score = a.scale * score_of<A>(c, q, pages[t / PAGE], t % PAGE) +
                          slope * (float)(first + t + 1 - own.n_keys);
            scores[t] = first + t < own.first ? -INFINITY : score;
        }
        __syncthreads();
        float before = most;
        most = fmaxf(most, largest_of(scores, n));
        __syncthreads();
        if (t < n) {
            scores[t] = expf(scores[t] - most);
        }
        __syncthreads();
        float shrink = before == -INFINITY ? 0.0f : expf(before - most);
        sum *= shrink;
        for (int i = 0; i < OWN_COLUMNS; i++) {
            result[i] *= shrink;
        }
        for (int64_t j = 0; j < n; j++) {
            const A *values = (const A *)c.values + pages[j / PAGE] + j % PAGE * d;
            sum += scores[j];
            for (int i = 0; i < OWN_COLUMNS && t + i * BLOCK < d; i++) {
                result[i] += scores[j] * to_float(values[t + i * BLOCK]);
            }
        }
    }
    for (int i = 0; i < OWN_COLUMNS && t + i * BLOCK < d; i++) {
        from_float((A *)out.data + row * out.stride + head * d + t + i * BLOCK,
                   own.n_keys == 0 ? 0.0f : result[i] / sum);
    }
}

void cuda_launch_attention_cached(const launch *l, const launch_attention *a, const launch_cached *c,
                                  launch_rows out, launch_rows q, launch_type type)
{
    dim3 grid((unsigned)a->n_rows_q, (unsigned)a->n_heads);
    if (a->n_rows_q > 0) {
        BY_TYPE(type, LAUNCH(l, cached_kernel<A>, grid, BLOCK, 0, *a, *c, out, q, l->fault));
    }
}
