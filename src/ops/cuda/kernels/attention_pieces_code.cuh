/* attention_pieces_code: how blocks of attention with the matrix instructions of sm_90a compute one piece of
 * work after the other, and copy the rows of the next piece meanwhile.  A piece is a head
 * of a sequence that one block holds: of at most 128 queries and 128 keys. */
#ifndef KILN_OPS_CUDA_KERNELS_ATTENTION_PIECES_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_ATTENTION_PIECES_CODE_CUH

#include "ops/cuda/kernels/attention_code.cuh"
#include "ops/cuda/kernels/warpgroup_code.cuh"

/* Heads are neighbours, then sequences. */
struct piece {
    int sequence, head;
};

/* The number of blocks is the one that the multiprocessors hold at a time; blocks stay as long as there is
 * work: after piece p a block computes piece p plus the number of blocks. */
struct pieces {
    unsigned n;
    int heads;
    piece step;
};

/* The number of blocks. */
static inline pieces cut_into_pieces(const launch_attention *a, int blocks_of_multiprocessor,
                                     unsigned *blocks)
{
    int device = 0, multiprocessors = 1;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    int64_t n = a->n_sequences * a->n_heads, most = (int64_t)multiprocessors * blocks_of_multiprocessor;
    *blocks = (unsigned)(n < most ? n : most);
    int heads = (int)a->n_heads;
    return pieces{(unsigned)n, heads, {(int)*blocks / heads, (int)*blocks % heads}};
}

__device__ static inline piece first_piece(const pieces &all)
{
    return piece{(int)blockIdx.x / all.heads, (int)blockIdx.x % all.heads};
}

__device__ static inline piece next_piece(piece now, const pieces &all)
{
    piece next = {now.sequence + all.step.sequence, now.head + all.step.head};
    bool over = next.head >= all.heads;
    return piece{next.sequence + over, over ? next.head - all.heads : next.head};
}

__device__ static inline place place_of(const launch_attention &a, piece i)
{
    return place_at(a, i.sequence, i.head, 0);
}

#endif
