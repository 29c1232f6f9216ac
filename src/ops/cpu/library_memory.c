/* Measured: resident memory of training steps beyond the plan, for 1, 2, 4 and 8 threads, BERT-tiny,
 * BERT-mini and BERT-base, in fp32 and bf16: on Zen 5 with oneDNN 2.6, on Zen 3 with OpenBLAS 0.3.21.
 * Counted, and added to these: the scratch of a product that BLAS adds to C, a tile of at most 1 MiB. */
#include "ops/cpu/cpu_isa.h"
#include "ops/ops.h"

#include <omp.h>

struct memory {
    int64_t fixed_kib;      /* code and tables */
    int64_t lane_kib;       /* memory of each thread */
    int64_t panel_factor;   /* and panels of the model's largest matrix: bytes for each of its elements, */
    int64_t most_panel_kib; /* up to the size of a cache */
};

static const struct memory onednn_fp32 = {5632, 512, 5, 1536}, onednn_bf16 = {3072, 512, 5, 1536},
                           blas_fp32 = {256, 640, 4, 1024}, blas_bf16 = {256, 512, 11, 3328},
                           plain = {0, 4224, 0, 0};

/* The memory of the library that computes the products (gemm.c). */
static const struct memory *library_memory(bool in_fp32)
{
    if (KILN_HAVE_BLAS && !(KILN_HAVE_ONEDNN && cpu_isa_has_avx512())) {
        return in_fp32 ? &blas_fp32 : &blas_bf16;
    }
    if (KILN_HAVE_ONEDNN) {
        return in_fp32 ? &onednn_fp32 : &onednn_bf16;
    }
    return &plain;
}

size_t ops_cpu_library_bytes(int64_t hidden_size, int64_t feed_forward_size, bool in_fp32)
{
    const struct memory *m = library_memory(in_fp32);
    int64_t panels = m->panel_factor * hidden_size * feed_forward_size, most = m->most_panel_kib << 10;
    int64_t lane = (m->lane_kib << 10) + (panels < most ? panels : most);
    return (size_t)((m->fixed_kib << 10) + omp_get_max_threads() * lane);
}
