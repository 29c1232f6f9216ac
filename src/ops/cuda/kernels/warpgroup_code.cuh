/* warpgroup_code: products of tiles in shared memory by the matrix instructions that only sm_90a has: four
 * warps, a warpgroup, multiply 64 rows at a time while they do something else, and the right factor comes
 * from shared memory.
 *
 * The instructions are wrapped here and nowhere else; tests/emulated/warpgroup_emulator.hpp has functions of
 * the same names that follow the documented layouts.  For other chips than sm_90a they compile to a trap, and
 * warpgroup_is_there() says so before anything is launched.
 *
 * Who holds what (PTX ISA 9.0, "Matrix Fragments for wgmma.mma_async.m64nNk16"): warp w of the group has rows
 * 16 w to 16 w + 15 of the sums and of a left factor in registers, and in it a lane has what it has of
 * squares (matrix_code.cuh): squares side by side are the sums of one instruction.
 *
 * A tile: rows of 64 elements, 128 bytes, lie one after the other and make a panel; wider tiles are panels
 * one after the other.  The 16-byte piece c of row r lies at place c XOR r % 8 of its row, so that eight
 * rows of a column of pieces lie in different banks: "128-Byte swizzle", whose pattern repeats every 1,024
 * bytes, to which tiles are aligned.  An instruction finds a tile by a descriptor (PTX ISA 9.0, "Matrix
 * Descriptor Format" and "Canonical Layouts"; the same in CUTLASS, cute/atom/mma_traits_sm90_gmma.hpp,
 * "make_gmma_desc"):
 *
 *   bits 0 to 13   the tile's address / 16
 *   bits 16 to 29  the bytes from one panel to the next / 16 where sums run over rows; otherwise not used,
 *   and 1 bits 32 to 45  the bytes from eight rows to the next eight / 16
 *   bits 49 to 51  where in the pattern the tile begins: 0
 *   bits 62, 63    1: this swizzle
 *
 * Sums run over 16 columns an instruction ("K-major", the next 16 are 32 bytes on) or over 16 rows
 * ("MN-major", 2,048 bytes on).  So one tile serves as a factor and as its transpose. */
#ifndef KILN_OPS_CUDA_KERNELS_WARPGROUP_CODE_CUH
#define KILN_OPS_CUDA_KERNELS_WARPGROUP_CODE_CUH

#include "ops/cuda/kernels/matrix_code.cuh"

enum { WARPGROUP = 4 * WARP, GROUP_ROWS = 4 * SIDE, PANEL = 64, PANEL_ROW_BYTES = 128, PATTERN_BYTES = 1024 };

/* The layout (matrix_code.cuh) of a tile of ROWS rows in panels. */
template <int ROWS> struct panels {
    static const int EIGHT_ROWS = 8 * PANEL;
    __device__ static int at(int row, int column)
    {
        unsigned r = (unsigned)row, c = (unsigned)column; /* divided by shifts alone */
        return (int)((c / PANEL * ROWS + r) * PANEL + (c / EIGHT % 8 ^ r % 8) * EIGHT + c % EIGHT);
    }
};

/* The head sizes that are whole panels: calls function<E, size>(...) for this one. */
#define BY_PANELS(function, E, size, ...)                                                                    \
    switch (size) {                                                                                          \
    case 64: function<E, 64>(__VA_ARGS__); break;                                                            \
    case 128: function<E, 128>(__VA_ARGS__); break;                                                          \
    }

#ifdef KILN_EMULATED_WARPGROUP
#    include KILN_EMULATED_WARPGROUP
#else
#    if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#        define WARPGROUP_ASM(...) __trap()
#        define MOST_PROBE_THREADS WARP
#    else
#        define WARPGROUP_ASM(...) asm volatile(__VA_ARGS__)
#        define MOST_PROBE_THREADS WARPGROUP
#    endif

/* Shared memory for tiles. */
#    define SHARED_TILES(name) extern __shared__ __align__(1024) unsigned char name[]

/* Never runs: its attributes show which code the device chose. */
__global__ __launch_bounds__(MOST_PROBE_THREADS) static void warpgroup_probe_kernel(void) {}

__device__ inline uint32_t shared_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* Makes this thread's writes to shared memory, copies that it waited for included, visible to matrix
 * instructions after the next barrier. */
__device__ inline void fence_for_products(void)
{
    WARPGROUP_ASM("fence.proxy.async.shared::cta;" : : : "memory");
}

/* Writes the transposes of four matrices of 8 x 8, which a warp has as a left factor: lane 8 m + r says where
 * row r of the m-th is put (PTX ISA 9.0, "stmatrix"). */
__device__ inline void stmatrix_x4_trans(void *row, factor f)
{
    WARPGROUP_ASM("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                  :
                  : "r"(shared_address(row)), "r"(f.word[0]), "r"(f.word[1]), "r"(f.word[2]), "r"(f.word[3])
                  : "memory");
}

/* The barrier of a cluster of blocks, in two halves (PTX ISA 9.0, "barrier.cluster"): what a thread wrote
 * before it arrived is there for those that have waited.  Blocks that have ended are not waited for. */
__device__ inline void cluster_arrive(void)
{
    WARPGROUP_ASM("barrier.cluster.arrive.release.aligned;" : : : "memory");
}

__device__ inline void cluster_wait(void)
{
    WARPGROUP_ASM("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

/* The address of the same place in the shared memory of another block of the cluster, for put_in_cluster
 * alone. */
__device__ inline uint32_t address_in_cluster(const void *shared, uint32_t block)
{
    uint32_t address = 0;
    WARPGROUP_ASM("mapa.shared::cluster.u32 %0, %1, %2;"
                  : "=r"(address)
                  : "r"(shared_address(shared)), "r"(block));
    return address;
}

__device__ inline void put_in_cluster(uint32_t address, uint4 v)
{
    WARPGROUP_ASM("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};"
                  :
                  : "r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                  : "memory");
}

/* A number that the compiler takes for another one. */
__device__ inline void renew(int &number)
{
    asm volatile("" : "+r"(number));
}

/* Values are in their registers here, and what uses them does not move up: the compiler does not know that
 * products are still under way after their instructions. */
template <int N> __device__ inline void pin(square (&sums)[N])
{
    UNROLL
    for (int i = 0; i < 8 * N; i++) {
        asm volatile("" : "+f"(sums[i / 8].v[i % 8]) : : "memory");
    }
}

template <int N> __device__ inline void pin(factor (&factors)[N])
{
    UNROLL
    for (int i = 0; i < 4 * N; i++) {
        asm volatile("" : "+r"(factors[i / 4].word[i % 4]) : : "memory");
    }
}

/* Before the first product whose sums, or whose left factors, the program has touched. */
template <int N> __device__ inline void begin_products(square (&sums)[N])
{
    pin(sums);
    WARPGROUP_ASM("wgmma.fence.sync.aligned;" : : : "memory");
}

template <int N, int M> __device__ inline void begin_products(square (&sums)[N], factor (&factors)[M])
{
    pin(factors);
    begin_products(sums);
}

/* Products since the last commit become a group. */
__device__ inline void commit_products(void)
{
    WARPGROUP_ASM("wgmma.commit_group.sync.aligned;" : : : "memory");
}

/* Returns when all groups but the last PENDING are done; `sums` are those that are. */
template <int PENDING, int N> __device__ inline void wait_for_products(square (&sums)[N])
{
    WARPGROUP_ASM("wgmma.wait_group.sync.aligned %0;" : : "n"(PENDING) : "memory");
    pin(sums);
}

/* Returns when all groups but the last PENDING are done with their tiles; their sums are not to be used
 * yet. */
template <int PENDING> __device__ inline void wait_for_tiles(void)
{
    WARPGROUP_ASM("wgmma.wait_group.sync.aligned %0;" : : "n"(PENDING) : "memory");
}

#    define SQUARE(s)                                                                                        \
        "+f"(s.v[0]), "+f"(s.v[1]), "+f"(s.v[2]), "+f"(s.v[3]), "+f"(s.v[4]), "+f"(s.v[5]), "+f"(s.v[6]),    \
            "+f"(s.v[7])
#    define SQUARES_2  SQUARE(sums[0]), SQUARE(sums[1])
#    define SQUARES_4  SQUARES_2, SQUARE(sums[2]), SQUARE(sums[3])
#    define SQUARES_8  SQUARES_4, SQUARE(sums[4]), SQUARE(sums[5]), SQUARE(sums[6]), SQUARE(sums[7])
#    define SQUARES_12 SQUARES_8, SQUARE(sums[8]), SQUARE(sums[9]), SQUARE(sums[10]), SQUARE(sums[11])
#    define PLACES_2   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#    define PLACES_4                                                                                         \
        PLACES_2 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#    define PLACES_8                                                                                         \
        PLACES_4 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, "   \
                 "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#    define PLACES_12                                                                                        \
        PLACES_8 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "   \
                 "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

/* The operands after the sums: the left factor, the right one's descriptor, whether to add to the sums, and
 * for each descriptor whether sums run over rows. */
#    define WGMMA_TEXT(places, columns, type, left, right, add, over_rows)                                   \
        "{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" columns               \
        "k16.f32." type "." type " {" places "}, " left ", " right ", p, 1, 1, " over_rows "; }"
#    define WGMMA_SHARED_2(type)                                                                             \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_2, "32", type, "%16", "%17", "%18", "%19, %20")                      \
                      : SQUARES_2                                                                            \
                      : "l"(left), "l"(right), "r"((int)add), "n"(LEFT_OVER_ROWS), "n"(RIGHT_OVER_ROWS))
#    define WGMMA_SHARED_4(type)                                                                             \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_4, "64", type, "%32", "%33", "%34", "%35, %36")                      \
                      : SQUARES_4                                                                            \
                      : "l"(left), "l"(right), "r"((int)add), "n"(LEFT_OVER_ROWS), "n"(RIGHT_OVER_ROWS))
#    define WGMMA_SHARED_8(type)                                                                             \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_8, "128", type, "%64", "%65", "%66", "%67, %68")                     \
                      : SQUARES_8                                                                            \
                      : "l"(left), "l"(right), "r"((int)add), "n"(LEFT_OVER_ROWS), "n"(RIGHT_OVER_ROWS))
#    define WGMMA_SHARED_12(type)                                                                            \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_12, "192", type, "%96", "%97", "%98", "%99, %100")                   \
                      : SQUARES_12                                                                           \
                      : "l"(left), "l"(right), "r"((int)add), "n"(LEFT_OVER_ROWS), "n"(RIGHT_OVER_ROWS))
#    define WORDS "r"(left.word[0]), "r"(left.word[1]), "r"(left.word[2]), "r"(left.word[3])
#    define WGMMA_REGISTERS_2(type)                                                                          \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_2, "32", type, "{%16, %17, %18, %19}", "%20", "%21", "%22")          \
                      : SQUARES_2                                                                            \
                      : WORDS, "l"(right), "r"((int)add), "n"(RIGHT_OVER_ROWS))
#    define WGMMA_REGISTERS_4(type)                                                                          \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_4, "64", type, "{%32, %33, %34, %35}", "%36", "%37", "%38")          \
                      : SQUARES_4                                                                            \
                      : WORDS, "l"(right), "r"((int)add), "n"(RIGHT_OVER_ROWS))
#    define WGMMA_REGISTERS_8(type)                                                                          \
        WARPGROUP_ASM(WGMMA_TEXT(PLACES_8, "128", type, "{%64, %65, %66, %67}", "%68", "%69", "%70")         \
                      : SQUARES_8                                                                            \
                      : WORDS, "l"(right), "r"((int)add), "n"(RIGHT_OVER_ROWS))

/* sums = left right, or sums += left right, of 64 rows and 32 to 192 columns, over 16 columns or rows. */
#    define DEFINE_WGMMA_SHARED(squares, type, name)                                                         \
        template <int LEFT_OVER_ROWS, int RIGHT_OVER_ROWS>                                                   \
        __device__ inline void wgmma_shared(square(&sums)[squares], uint64_t left, uint64_t right, bool add, \
                                            type)                                                            \
        {                                                                                                    \
            WGMMA_SHARED_##squares(name);                                                                    \
        }
#    define DEFINE_WGMMA(squares, type, name)                                                                \
        DEFINE_WGMMA_SHARED(squares, type, name)                                                             \
        template <int RIGHT_OVER_ROWS>                                                                       \
        __device__ inline void wgmma_registers(square(&sums)[squares], factor left, uint64_t right,          \
                                               bool add, type)                                               \
        {                                                                                                    \
            WGMMA_REGISTERS_##squares(name);                                                                 \
        }
DEFINE_WGMMA(2, bf16, "bf16")
DEFINE_WGMMA(4, bf16, "bf16")
DEFINE_WGMMA(8, bf16, "bf16")
DEFINE_WGMMA(2, f16, "f16")
DEFINE_WGMMA(4, f16, "f16")
DEFINE_WGMMA(8, f16, "f16")
DEFINE_WGMMA_SHARED(12, bf16, "bf16")
DEFINE_WGMMA_SHARED(12, f16, "f16")
#endif

/* Whether the device runs code that was compiled for sm_90a. */
static inline bool warpgroup_is_there(void)
{
    cudaFuncAttributes attributes = {};
    bool there = cudaFuncGetAttributes(&attributes, warpgroup_probe_kernel) == cudaSuccess &&
                 attributes.maxThreadsPerBlock >= WARPGROUP;
    cudaGetLastError(); /* forgets a failure */
    return there;
}

/* The number of this thread's warpgroup: the same in all lanes, which the compiler cannot know of
 * threadIdx. */
__device__ inline int warpgroup_of_block(void)
{
    return __shfl_sync(0xffffffffU, (int)(threadIdx.x / WARPGROUP), 0);
}

/* The descriptor of a tile whose columns, or whose rows, sums run over. */
__device__ inline uint64_t describe_tile(const void *tile, uint64_t panel_bytes)
{
    return (shared_address(tile) & 0x3ffff) >> 4 | panel_bytes >> 4 << 16 |
           (uint64_t)(PATTERN_BYTES >> 4) << 32 | (uint64_t)1 << 62;
}

__device__ inline uint64_t over_columns(const void *tile)
{
    return describe_tile(tile, 1 << 4);
}

template <int ROWS> __device__ inline uint64_t over_rows(const void *tile)
{
    return describe_tile(tile, ROWS * PANEL_ROW_BYTES);
}

/* The increase of a descriptor for a part that begins at a column, or at a row. */
template <int ROWS> __device__ inline uint64_t at_column(int column)
{
    return (uint64_t)(column / PANEL * ROWS * PANEL_ROW_BYTES + column % PANEL * 2) >> 4;
}

__device__ inline uint64_t at_row(int row)
{
    return (uint64_t)(row * PANEL_ROW_BYTES) >> 4;
}

/* sums = left right^T, or sums += left right^T, over COLUMNS columns of both, which are tiles of so many
 * rows. */
template <typename E, int COLUMNS, int LEFT_ROWS, int RIGHT_ROWS, int N>
__device__ inline void multiply_over_columns(square (&sums)[N], uint64_t left, uint64_t right,
                                             bool add = false)
{
    UNROLL
    for (int c = 0; c < COLUMNS; c += SIDE) {
        wgmma_shared<0, 0>(sums, left + at_column<LEFT_ROWS>(c), right + at_column<RIGHT_ROWS>(c),
                           add || c != 0, E());
    }
}

/* sums = left right, or sums += left right, over the rows of `right`, where `left` is in registers. */
template <typename E, int N, int M>
__device__ inline void multiply_factors(square (&sums)[N], const factor (&left)[M], uint64_t right, bool add)
{
    UNROLL
    for (int i = 0; i < M; i++) {
        wgmma_registers<1>(sums, left[i], right + at_row(i * SIDE), add || i != 0, E());
    }
}

/* A block of attention is two warpgroups.  Sums of one panel leave registers for a second block on a
 * multiprocessor. */
enum { OWN = 2 * GROUP_ROWS, THREADS = 2 * WARPGROUP };

template <int D> struct room {
    static const int BLOCKS = D <= PANEL ? 2 : 1;
};

/* The first rows of a warp's work: of its warpgroup's 64, and of its own 16. */
struct rows_of_warp {
    int group, own;
};

__device__ inline rows_of_warp find_rows(void)
{
    return rows_of_warp{warpgroup_of_block() * GROUP_ROWS, (int)(threadIdx.x / WARP) * SIDE};
}

/* Writes the transposes of left factors, one below the other, as squares of a tile from a column on. */
template <typename LAYOUT, typename E, int N>
__device__ inline void store_transposed(E *tile, int column, const factor (&f)[N])
{
    int lane = lane_of_warp();
    E *to = tile + LAYOUT::at(lane % 8 + lane / SIDE * 8, column + lane / 8 % 2 * 8);
    UNROLL
    for (int i = 0; i < N; i++) {
        stmatrix_x4_trans(to + 2 * i * LAYOUT::EIGHT_ROWS, f[i]);
    }
}

/* Rows equal to `rows`, of which the compiler knows nothing: what a loop computes of them is computed there,
 * and not kept from before. */
__device__ inline rows_of_warp anew(rows_of_warp rows)
{
    renew(rows.group);
    renew(rows.own);
    return rows;
}

/* Starts to copy ROWS rows of a head of two tensors, one tile after the other. */
template <int ROWS, int D, typename E>
__device__ inline void copy_pair(E *tiles, launch_rows one, launch_rows other, int row, int n, int head)
{
    start_copy<ROWS, D, THREADS, panels<ROWS>>(tiles, one, row, n, head * D);
    start_copy<ROWS, D, THREADS, panels<ROWS>>(tiles + ROWS * D, other, row, n, head * D);
}

#endif
