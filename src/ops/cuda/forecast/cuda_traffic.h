/* cuda_traffic: the launches of each op of the cuda table, as a table of operations that computes nothing:
 * for every kernel the bytes that it moves, the instructions and products that it issues, and the waits that
 * it cannot hide.
 *
 * Bytes are those that the kernels really move, pass by pass, not the least that the op needs (ops_plan
 * counts those).  A change of what a kernel reads, writes or launches needs a change of its line in
 * cuda_traffic*.c: tests/emulated/traffic_check.c compares names and numbers of launches with the kernels as
 * they run on the emulator.  Plain C, part of the program and not of libkiln_cuda.so: it needs no GPU. */
#ifndef KILN_OPS_CUDA_FORECAST_CUDA_TRAFFIC_H
#define KILN_OPS_CUDA_FORECAST_CUDA_TRAFFIC_H

#include "ops/cuda/kernels/launch.h"
#include "ops/ops.h"

/* The products of a linear layer: their layouts and rates differ. */
enum cuda_product_side { CUDA_FORWARD, CUDA_INPUT_GRADIENT, CUDA_WEIGHT_GRADIENT, CUDA_PRODUCT_SIDES };

/* One launch.  Its time is the longest of the times of its bytes, instructions and products (gpu_chips.h). */
struct cuda_launch {
    const char *kernel; /* its name in cuda_*.cu, "product" for the library's, "memset" for the runtime's */
    double bytes;       /* read and written in device memory, without those from the caches */
    double copy_share;  /* of the rate of copies that it reaches if it waits for nothing else */
    double
        instructions;   /* issued by all its threads together, if bytes do not bound it, or after the products
                       * of kiln's own product kernel; else 0 */
    double issue_share; /* of the issue slots that it fills */
    double first_bytes; /* that each of the first blocks waits for; later bytes arrive during the block's
                         * instructions */
    int64_t blocks;     /* that share `instructions`; two of them run on a multiprocessor */
    bool early;         /* it may begin while the previous launch ends */
    bool beside;        /* it was recorded between queue_beside and queue_back (dev/queue.h) */
    double waits;       /* memory accesses in a row, during which nothing else runs */

    /* Of a product, [m, k] by [k, n]: flops > 0. */
    double flops;
    enum cuda_product_side side;
    int64_t m, n, k;
    enum dtype factor; /* e4m3 for fp8 */
    bool tf32;
    int64_t tile_rows, tile_cols; /* of the blocks of kiln's own kernel; 0: the library chooses them */
    int64_t parts;                /* of k, each a block's of a cluster */
};

enum { CUDA_TRAFFIC_ANY = -1 };

struct cuda_traffic {
    struct ops table; /* first: an exec points at it */

    /* `launched` is called for every launch.  `seconds` gives the time of one, and decides between forms of a
     * product, as timing does on a device (product_forms.h). */
    void (*launched)(void *self, const struct cuda_launch *l);
    double (*seconds)(void *self, const struct cuda_launch *l);
    void *self;

    int form, attention; /* enum product_form and enum launch_attention_kernel to take; CUDA_TRAFFIC_ANY */
};

/* With any forms and kernels; the caller sets the callbacks. */
void cuda_traffic_init(struct cuda_traffic *t);

#endif
