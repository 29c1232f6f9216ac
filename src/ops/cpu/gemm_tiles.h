/* gemm_tiles: a product of ops/cpu/gemm.h as tiles of C, each of which one thread computes. */
#ifndef KILN_OPS_CPU_GEMM_TILES_H
#define KILN_OPS_CPU_GEMM_TILES_H

#include "ops/cpu/gemm_backend.h"

#include <stdatomic.h>

struct gemm_call {
    const struct gemm *g;
    const struct gemm_backend *backend;
    gemm_after *after;
    const void *context;
    size_t backend_bytes;           /* the backend's part of the lane; `after` has the rest */
    int64_t tile_m, tile_n, tile_k; /* full tiles; those at the edges are smaller */
    int64_t tiles_m, tiles_n;
    /* The handle of a tile that is smaller (1) or full (0) in k, n and m: index 4 k + 2 n + m. */
    const void *forms[GEMM_MAX_FORMS];
    atomic_bool *failed;
    bool no_memory; /* the memory that the backend needs is not available */
};

/* The number of blocks of n. */
static inline int64_t gemm_blocks(int64_t n, int64_t block)
{
    return (n + block - 1) / block;
}

/* The size of equal parts of n, a multiple of `grain`; only the last part may be smaller. */
static inline int64_t gemm_part_size(int64_t n, int64_t n_parts, int64_t grain)
{
    return gemm_blocks(gemm_blocks(n, n_parts), grain) * grain;
}

/* The element n after p, each of so many bytes. */
static inline const void *gemm_element(const void *p, size_t bytes, int64_t n)
{
    return (const char *)p + n * (int64_t)bytes;
}

/* Bytes of an element of A. */
size_t gemm_a_bytes(const struct gemm *g);

/* Handles of the backend for every form of tile; false if it lacks one, or its memory (c->no_memory). */
bool gemm_tiles_prepare(struct gemm_call *c, const struct gemm_backend *b);

/* The body of lanes_run for each of tiles_m x tiles_n tiles; `context` is a struct gemm_call. */
void gemm_tiles_item(const void *context, int64_t item, void *lane);

#endif
