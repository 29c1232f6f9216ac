/* warpgroup_emulator: the instructions that ops/cuda/kernels/warpgroup_code.cuh wraps, between the fibers of
 * a warpgroup, with the fragments, descriptors and layouts that the PTX ISA documents (9.0, "Register
 * Fragments and Shared Memory Matrix Layouts", "wgmma.fence", "wgmma.mma_async"), written from there and not
 * from their use.
 *
 * An instruction needs all 128 threads, with the same operands, as `.aligned` asks.  A product takes place as
 * late as it may, when its thread waits for its group: it reads shared memory then, through descriptors, and
 * until then the sums hold a NaN, so that what reads them early shows, and what writes them ends the
 * program.  So does a product whose sums no fence went before; a descriptor of another layout than 128-byte
 * swizzle, of a place where no pattern begins, or of more memory than there is; and a product that reads what
 * a thread wrote without its fence.proxy.async and then a barrier of the block.  Not imitated: other
 * swizzles, and the chip's order of sums.
 *
 * Included by warpgroup_code.cuh, whose types it uses. */
#ifndef KILN_TESTS_WARPGROUP_EMULATOR_HPP
#define KILN_TESTS_WARPGROUP_EMULATOR_HPP

#define SHARED_TILES(name) unsigned char *name = (unsigned char *)emulated_shared()

/* A product as all threads of the warpgroup name it. */
struct emulated_product {
    int squares, left_over_rows, right_over_rows; /* left_over_rows < 0: the left factor is in registers */
    bool add;
    uint64_t left, right;
    float (*value)(uint16_t bits);
};

/* Where dynamic shared memory begins, for matrix instructions: not at 0. */
enum { EMULATED_SHARED_START = 1024 };

uint32_t shared_address(const void *shared);
void fence_for_products(void);
void stmatrix_x4_trans(void *row, factor f);
void cluster_arrive(void);
void cluster_wait(void);
uint32_t address_in_cluster(const void *shared, uint32_t block);
void put_in_cluster(uint32_t address, uint4 v);
void commit_products(void);
void emulated_begin_products(float *sums);
void emulated_issue_product(const emulated_product &product, float *sums, factor left);
void emulated_wait_for_products(int pending, const float *sums);

static void warpgroup_probe_kernel(void) {}

static inline void renew(int &) {}

template <int N> static inline void begin_products(square (&sums)[N])
{
    emulated_begin_products(sums[0].v);
}

template <int N, int M> static inline void begin_products(square (&sums)[N], factor (&)[M])
{
    emulated_begin_products(sums[0].v);
}

template <int PENDING, int N> static inline void wait_for_products(square (&sums)[N])
{
    emulated_wait_for_products(PENDING, sums[0].v);
}

template <int PENDING> static inline void wait_for_tiles(void)
{
    emulated_wait_for_products(PENDING, NULL);
}

template <typename E> static float emulated_value(uint16_t bits)
{
    return to_float(E{bits});
}

template <int LEFT_OVER_ROWS, int RIGHT_OVER_ROWS, typename E, int N>
static inline void wgmma_shared(square (&sums)[N], uint64_t left, uint64_t right, bool add, E)
{
    emulated_product product = {N, LEFT_OVER_ROWS, RIGHT_OVER_ROWS, add, left, right, emulated_value<E>};
    emulated_issue_product(product, sums[0].v, factor{});
}

template <int RIGHT_OVER_ROWS, typename E, int N>
static inline void wgmma_registers(square (&sums)[N], factor left, uint64_t right, bool add, E)
{
    emulated_product product = {N, -1, RIGHT_OVER_ROWS, add, 0, right, emulated_value<E>};
    emulated_issue_product(product, sums[0].v, left);
}

#endif
