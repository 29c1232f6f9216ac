/* cuda_traffic: what each op of the cuda table launches, as a table of operations that computes nothing: for every
 * kernel the bytes that it moves, the instructions and products that it issues, and the waits that it cannot hide.
 *
 * Bytes are those that the kernels really move, pass by pass, not the least that the op could do with (ops_plan counts
 * those).  Who changes what a kernel reads, writes or launches changes its line in cuda_traffic*.c too:
 * tests/emulated/traffic_check.c holds names and numbers of launches against the kernels as they run on the emulator.
 * Plain C, part of the program and not of libkiln_cuda.so: it needs no GPU. */
#ifndef KILN_OPS_CUDA_FORECAST_CUDA_TRAFFIC_H
#define KILN_OPS_CUDA_FORECAST_CUDA_TRAFFIC_H

#include "ops/cuda/kernels/launch.h"
#include "ops/ops.h"

/* Which of a linear layer's products: they are laid out, and run, differently. */
enum cuda_product_side { CUDA_FORWARD, CUDA_INPUT_GRADIENT, CUDA_WEIGHT_GRADIENT, CUDA_PRODUCT_SIDES };

/* One launch.  Its time is the longest of what its bytes, instructions and products take (gpu_chips.h). */
struct cuda_launch {
    const char *kernel; /* its name in cuda_*.cu, "product" for the library's, "memset" for the runtime's */
    double bytes;       /* read and written in device memory; what comes from the caches is left out */
    double copy_share;  /* of the rate of copies that it comes to where it has nothing else to wait for */
    double
        instructions; /* issued by all its threads together, where bytes are not what bounds it, or behind the
                          * products of an own kernel; or 0 */
    double issue_share; /* of the slots for instructions that it fills */
    double first_bytes; /* that each block which runs at first waits for, where later ones are under way
                         * beside its instructions */
    int64_t blocks;     /* that `instructions` are spread over, two of which share a multiprocessor */
    bool early;         /* it may begin while the launch before it ends */
    bool beside;        /* it was recorded between queue_beside and queue_back (dev/queue.h) */
    double waits;       /* memory accesses in a row that nothing else runs beside */

    /* Of a product, [m, k] by [k, n]: flops > 0. */
    double flops;
    enum cuda_product_side side;
    int64_t m, n, k;
    enum dtype factor; /* e4m3 for fp8 */
    bool tf32;
    int64_t tile_rows, tile_cols; /* of an own kernel's blocks; 0: the library's, which chooses them */
    int64_t parts;                /* of k, each a block's of a cluster */
};

enum { CUDA_TRAFFIC_ANY = -1 };

struct cuda_traffic {
    struct ops table; /* first: what an exec points at */

    /* Told of every launch.  `seconds` prices one, and decides between forms of a product as time does on a device
     * (product_forms.h). */
    void (*launched)(void *self, const struct cuda_launch *l);
    double (*seconds)(void *self, const struct cuda_launch *l);
    void *self;

    int form, attention; /* enum product_form and enum launch_attention_kernel to take; CUDA_TRAFFIC_ANY */
};

/* Forms and kernels are any; the callbacks are the caller's to set. */
void cuda_traffic_init(struct cuda_traffic *t);

#endif
