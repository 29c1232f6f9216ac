/* What the emulator says of clusters of blocks: barriers that are not met in pairs, and what is written into
 * a block that may not be there, end the program.  And what it makes of attention's gradient in clusters
 * (cuda_attention_wgmma_cluster.cu): the same bits again, and other bits, or an end, if any wait for the
 * cluster is left out. */
#include "ending.hpp"
#include "ops/cuda/kernels/attention_code.cuh"
#include "ops/cuda/kernels/warpgroup_code.cuh"

#include <signal.h>
#include <vector>

enum { BLOCKS = 4 };

__device__ static void put_next(uint4 *place)
{
    uint32_t next = (blockIdx.x + 1) % BLOCKS;
    put_in_cluster(address_in_cluster(place, next), make_uint4(blockIdx.x, 0, 0, 0));
}

__global__ static void ring_kernel(uint32_t *number)
{
    SHARED_TILES(memory);
    uint4 *place = (uint4 *)memory + threadIdx.x;
    cluster_arrive();
    cluster_wait();
    put_next(place);
    cluster_arrive();
    cluster_wait();
    number[blockIdx.x * THREADS + threadIdx.x] = place->x;
}

__global__ static void unmet_kernel(uint32_t *)
{
    SHARED_TILES(memory);
    put_next((uint4 *)memory + threadIdx.x);
}

__global__ static void twice_kernel(uint32_t *)
{
    cluster_arrive();
    cluster_arrive();
}

__global__ static void unannounced_kernel(uint32_t *)
{
    cluster_wait();
}

__global__ static void hasty_kernel(uint32_t *)
{
    cluster_arrive();
}

__global__ static void ended_kernel(uint32_t *)
{
    SHARED_TILES(memory);
    cluster_arrive();
    cluster_wait();
    if (blockIdx.x > 0) {
        return;
    }
    __syncthreads();
    cluster_arrive();
    cluster_wait(); /* the others have ended by now */
    put_next((uint4 *)memory + threadIdx.x);
}

static int end_of_launch(void (*kernel)(uint32_t *), uint32_t *number)
{
    return end_of([=] {
        launch l = {};
        LAUNCH_CLUSTERS(&l, kernel, dim3(BLOCKS), THREADS, THREADS * 16, number);
        for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
            if (number[i] != (i / THREADS + BLOCKS - 1) % BLOCKS) {
                return 1;
            }
        }
        return 0;
    });
}

static void check_barriers(void)
{
    uint32_t *number = (uint32_t *)emulated_memory_take_pinned(BLOCKS * THREADS * sizeof *number);
    expect(number != NULL, "no memory");
    expect(end_of_launch(ring_kernel, number) == 0, "blocks do not find what others wrote into them");
    expect(end_of_launch(unmet_kernel, number) == SIGABRT, "a block may be written into before it has begun");
    expect(end_of_launch(ended_kernel, number) == SIGABRT, "a block may be written into when it has ended");
    expect(end_of_launch(twice_kernel, number) == SIGABRT, "a thread may arrive twice");
    expect(end_of_launch(unannounced_kernel, number) == SIGABRT, "a thread may wait and not arrive");
    expect(end_of_launch(hasty_kernel, number) == SIGABRT, "a thread may end between arrival and wait");
}

/* One sequence of a head, or of heads that share keys and values. */
enum { ROWS = 450, D = 64, TENSORS = 8, STEPS = 8 };

struct problem {
    launch_attention sizes;
    launch_attention_rows rows;
    uint16_t *tensors[TENSORS]; /* q, k, v, out, dout, dq, dk, dv */
};

/* Columns of a tensor: D for each head, or for that of keys and values. */
static int cols_of(int tensor, int heads)
{
    bool of_keys = tensor == 1 || tensor == 2 || tensor >= 6;
    return of_keys ? D : heads * D;
}

static uint16_t number_of(int i)
{
    float v = sinf((float)i * 12.9898f) * 0.7f;
    return (uint16_t)pack_two(v, v, bf16());
}

static problem make_problem(int heads)
{
    problem p = {};
    launch_rows *rows[] = {&p.rows.q,    &p.rows.k,  &p.rows.v,  &p.rows.out,
                           &p.rows.dout, &p.rows.dq, &p.rows.dk, &p.rows.dv};
    for (int t = 0; t < TENSORS; t++) {
        int cols = cols_of(t, heads);
        p.tensors[t] = (uint16_t *)emulated_memory_take_pinned((size_t)(ROWS * cols) * sizeof(uint16_t));
        expect(p.tensors[t] != NULL, "no memory");
        *rows[t] = launch_rows{p.tensors[t], cols};
        for (int i = 0; i < ROWS * cols; i++) {
            p.tensors[t][i] = number_of(t * ROWS * D + i);
        }
    }
    int32_t *bounds = (int32_t *)emulated_memory_take_pinned(2 * sizeof *bounds);
    p.rows.lse = (float *)emulated_memory_take_pinned((size_t)(ROWS * heads) * sizeof(float));
    expect(bounds != NULL && p.rows.lse != NULL, "no memory");
    bounds[1] = ROWS;
    for (int i = 0; i < ROWS * heads; i++) {
        p.rows.lse[i] = 6.0f + 0.01f * (float)(i % 7);
    }
    p.rows.tiles = 4;
    p.sizes.n_rows_q = p.sizes.n_rows_kv = p.sizes.max_seqlen_q = p.sizes.max_seqlen_kv = ROWS;
    p.sizes.n_sequences = p.sizes.n_kv_heads = 1;
    p.sizes.n_heads = heads;
    p.sizes.head_size = D;
    p.sizes.cu_q = p.sizes.cu_kv = bounds;
    p.sizes.scale = 0.125f;
    p.sizes.dropout.scale = 1;
    return p;
}

typedef std::vector<uint16_t> gradients;

static gradients compute(const problem &p, launch_attention_kernel kernel)
{
    launch l = {};
    gradients all;
    cuda_launch_attention_backward(&l, kernel, &p.sizes, &p.rows, LAUNCH_BF16);
    for (int t = 5; t < TENSORS; t++) {
        all.insert(all.end(), p.tensors[t], p.tensors[t] + ROWS * cols_of(t, (int)p.sizes.n_heads));
    }
    return all;
}

/* The waits of the last of the heads are left out, one after the other. */
static void check_gradient(int heads)
{
    problem p = make_problem(heads);
    gradients right = compute(p, LAUNCH_ATTENTION_CLUSTER), by_keys = compute(p, LAUNCH_ATTENTION_WGMMA);
    expect(compute(p, LAUNCH_ATTENTION_CLUSTER) == right, "other bits the second time");
    int others = 0;
    for (size_t i = 0; i < right.size(); i++) {
        float a = to_float(bf16{right[i]}), b = to_float(bf16{by_keys[i]});
        expect(fabsf(a - b) <= 0.01f * fabsf(b) + 1e-4f, "a gradient is far from that of two passes");
        others += right[i] != by_keys[i];
    }
    expect(others > 0, "sums have the order that they have in two passes: it is the same kernel");
    for (int number = (heads - 1) * STEPS; number < heads * STEPS; number++) {
        int how = end_of([&] {
            emulated_forget_wait(number);
            return compute(p, LAUNCH_ATTENTION_CLUSTER) == right ? 0 : 1;
        });
        expect(how == 1 || how == SIGABRT, "a wait for the cluster may be left out");
        printf("without wait %d: %s\n", number, how == 1 ? "other bits" : "an end");
    }
    expect(end_of([&] { return compute(p, LAUNCH_ATTENTION_CLUSTER) == right ? 0 : 1; }) == 0,
           "a process of its own computes other bits");
}

int main(void)
{
    check_barriers();
    check_gradient(1);
    check_gradient(2);
    printf("clusters of blocks: all barriers are met in pairs, and none can be left out\n");
    return 0;
}
