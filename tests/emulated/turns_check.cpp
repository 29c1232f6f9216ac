/* Attention by kernels of sm_90a whose blocks take one head of a sequence after the other and copy the rows
 * of the next while they compute one (attention_pieces_code.cuh): the bits are the same on chips of any
 * number of multiprocessors, from one, whose blocks take all heads, to so many that each head has a block.
 * The emulator fills the place of a copy with NaN until it is waited for, so what is read or overwritten
 * too early shows. */
#include "ending.hpp"
#include "ops/cuda/kernels/attention_code.cuh"

#include <vector>

enum { HEADS = 3, REST = 9, MANY = 1000 }; /* rows behind the last sequence; multiprocessors for all */

struct problem {
    const char *name;
    std::vector<int32_t> of_queries, of_keys; /* lengths */
    int64_t head_size;
    bool causal, drops, keeps_bits, sums;
    int most = 1; /* multiprocessors that it is tried on, but for MANY */
};

/* Memory of the emulated device, of one computation at a time. */
enum { ARENA_BYTES = 16 << 20, ALIGNMENT = 16 };
static unsigned char *arena;
static size_t used;

template <typename T> static T *take(size_t n)
{
    unsigned char *memory = arena + used;
    size_t bytes = n * sizeof(T);
    used += (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    expect(used <= ARENA_BYTES, "no memory");
    memset(memory, 0xcd, bytes); /* what is not written shows */
    return (T *)memory;
}

static uint16_t *take_numbers(size_t n, int seed)
{
    uint16_t *numbers = take<uint16_t>(n);
    for (size_t i = 0; i < n; i++) {
        float v = sinf((float)(i + 1) * 12.9898f + (float)seed) * 0.7f;
        numbers[i] = (uint16_t)pack_two(v, v, bf16());
    }
    return numbers;
}

static const int32_t *bounds_of(const std::vector<int32_t> &lengths, int64_t *longest)
{
    int32_t *bounds = take<int32_t>(lengths.size() + 1);
    bounds[0] = 0;
    *longest = 0;
    for (size_t i = 0; i < lengths.size(); i++) {
        bounds[i + 1] = bounds[i] + lengths[i];
        *longest = lengths[i] > *longest ? lengths[i] : *longest;
    }
    return bounds;
}

static launch_attention sizes_of(const problem &p)
{
    launch_attention a = {};
    a.n_sequences = (int64_t)p.of_queries.size();
    a.n_heads = a.n_kv_heads = HEADS;
    a.head_size = p.head_size;
    a.cu_q = bounds_of(p.of_queries, &a.max_seqlen_q);
    a.cu_kv = bounds_of(p.of_keys, &a.max_seqlen_kv);
    a.n_rows_q = a.cu_q[a.n_sequences] + REST;
    a.n_rows_kv = a.cu_kv[a.n_sequences] + REST;
    a.scale = 0.125f;
    a.causal = p.causal;
    a.dropout.scale = p.drops ? 1 / 0.9f : 1;
    a.dropout.threshold = p.drops ? 6554 : 0;
    int32_t *row_keys = take<int32_t>((size_t)a.n_rows_q * 2);
    for (int i = 0; i < 2 * a.n_rows_q; i++) {
        row_keys[i] = i / 2;
    }
    a.dropout.row_keys = row_keys;
    if (p.keeps_bits) {
        int64_t chunks = (a.max_seqlen_kv + LAUNCH_BITS_CHUNK - 1) / LAUNCH_BITS_CHUNK;
        a.bit_cols = (a.n_rows_q / SIDE + a.n_sequences + 1) * LAUNCH_BITS_WORDS; /* ops/attention_bits.h */
        a.bits = take<uint32_t>((size_t)(HEADS * chunks * a.bit_cols));
    }
    return a;
}

/* Everything that forward and backward write. */
typedef std::vector<unsigned char> results;

template <typename T> static void append(results *all, const T *numbers, size_t n)
{
    all->insert(all->end(), (const unsigned char *)numbers, (const unsigned char *)(numbers + n));
}

static results compute(const problem &p, const launch_attention &a, int multiprocessors)
{
    launch l = {};
    launch_attention_rows r = {};
    size_t mark = used;
    int64_t cols = HEADS * a.head_size;
    size_t of_queries = (size_t)(a.n_rows_q * cols), of_keys = (size_t)(a.n_rows_kv * cols);
    struct {
        launch_rows *rows;
        size_t n;
        bool given;
    } tensors[] = {{&r.q, of_queries, true},    {&r.k, of_keys, true},       {&r.v, of_keys, true},
                   {&r.dout, of_queries, true}, {&r.out, of_queries, false}, {&r.dq, of_queries, false},
                   {&r.dk, of_keys, false},     {&r.dv, of_keys, false}};
    int seed = 0;
    for (auto &t : tensors) {
        *t.rows = launch_rows{t.given ? take_numbers(t.n, seed++) : take<uint16_t>(t.n), cols};
    }
    size_t n_lse = (size_t)a.n_rows_q * HEADS;
    r.lse = take<float>(n_lse);
    int64_t longest = a.max_seqlen_q > a.max_seqlen_kv ? a.max_seqlen_q : a.max_seqlen_kv;
    r.tiles = (longest + LAUNCH_ATTENTION_TILE - 1) / LAUNCH_ATTENTION_TILE;
    if (p.sums) {
        r.dbias = take<float>((size_t)(3 * cols));
        memset(r.dbias, 0, (size_t)(3 * cols) * sizeof(float));
        r.partial_sums = take<float>((size_t)(3 * a.n_sequences * r.tiles * cols));
    }
    emulated_multiprocessors = multiprocessors;
    cuda_launch_attention(&l, LAUNCH_ATTENTION_WGMMA, &a, &r, LAUNCH_BF16);
    cuda_launch_attention_backward(&l, LAUNCH_ATTENTION_WGMMA, &a, &r, LAUNCH_BF16);
    results all;
    used = mark;
    for (auto &t : tensors) {
        append(&all, (const uint16_t *)t.rows->data, t.n);
    }
    append(&all, r.lse, n_lse);
    if (p.sums) {
        append(&all, r.dbias, (size_t)(3 * cols));
    }
    return all;
}

/* As ordinary numbers go: a NaN anywhere would be the same bits too. */
static void expect_numbers(const results &all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float v = to_float(bf16{(uint16_t)(all[2 * i] | all[2 * i + 1] << 8)});
        expect(fabsf(v) < 100, "what was computed is no number");
    }
}

static uint64_t hash_of(const results &all)
{
    uint64_t hash = 14695981039346656037U;
    for (unsigned char c : all) {
        hash = (hash ^ c) * 1099511628211U;
    }
    return hash;
}

static void check(const problem &p)
{
    used = 0;
    launch_attention a = sizes_of(p);
    results right = compute(p, a, MANY);
    expect_numbers(right, (size_t)((4 * a.n_rows_q + 4 * a.n_rows_kv) * HEADS * a.head_size));
    for (int multiprocessors = 1; multiprocessors <= p.most; multiprocessors += 2) {
        expect(compute(p, a, multiprocessors) == right, p.name);
    }
    printf("%s: %016llx on any number of multiprocessors\n", p.name, (unsigned long long)hash_of(right));
}

int main(void)
{
    const std::vector<int32_t> ragged = {1, 63, 0, 64, 65, 128}, other = {128, 0, 20, 65, 1, 64},
                               full = {128, 128, 128}, longer = {129, 20, 260, 1}, one = {128};
    const problem problems[] = {
        {"full sequences", full, full, 64, false, true, false, true},
        {"one sequence", one, one, 64, false, true, false, true},
        {"ragged", ragged, ragged, 64, false, true, false, true, 3},
        {"ragged, nothing dropped", ragged, ragged, 64, false, false, false, false},
        {"ragged, causal", ragged, ragged, 64, true, true, false, true},
        {"other keys than queries", ragged, other, 64, false, true, false, true},
        {"other keys than queries, causal", ragged, other, 64, true, false, false, true},
        {"longer", longer, longer, 64, false, true, true, true},
        {"longer, causal", longer, longer, 64, true, true, false, true},
        {"heads of 128 columns", ragged, other, 128, false, true, false, true},
        {"heads of 128 columns, longer", longer, longer, 128, false, true, true, true},
    };
    arena = (unsigned char *)emulated_memory_take_pinned(ARENA_BYTES);
    expect(arena != NULL, "no memory");
    for (const problem &p : problems) {
        check(p);
    }
    return 0;
}
