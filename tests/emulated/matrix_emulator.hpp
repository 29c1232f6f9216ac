/* matrix_emulator: the instructions that ops/cuda/kernels/matrix_code.cuh wraps, between fibers, with the
 * layouts of fragments that the PTX ISA documents (8.7, "Matrix Fragments for mma.m16n8k16 with floating
 * point type", "ldmatrix", "movmatrix", "cp.async"), written from there and not from their use.
 *
 * An instruction of a warp needs all of its 32 lanes: one that another lane meets with another instruction
 * ends the program, as `.aligned` asks.  A copy into shared memory takes place when its thread waits for its
 * group, and until then its place holds NaN: a wait that is missing, or a copy over what another warp still
 * reads, shows in the results.  Sums of products are fp32 in the order of k; the chip promises no order.
 *
 * Included by matrix_code.cuh, whose types it uses. */
#ifndef KILN_TESTS_MATRIX_EMULATOR_HPP
#define KILN_TESTS_MATRIX_EMULATOR_HPP

enum emulated_instruction {
    EMULATED_MMA,
    EMULATED_LDMATRIX,
    EMULATED_LDMATRIX_TRANS,
    EMULATED_MOVMATRIX,
    EMULATED_STMATRIX
};

/* What a lane brings to an instruction of its warp. */
struct emulated_operand {
    emulated_instruction instruction;
    float a[8], b[4];
    const uint16_t *row;
    uint32_t word;
    factor stored;
};

/* Those of all 32 lanes, until this lane's next but one instruction of a warp. */
const emulated_operand *emulated_meet(const emulated_operand *own);

/* Ends the program. */
[[noreturn]] void emulated_refuse(const char *what);

/* Ends the program unless these 16 bytes lie in shared memory, aligned to 16. */
void emulated_check_shared(const void *p);

/* The running thread has written 16 aligned bytes of shared memory, or some of them: what reads them
 * otherwise than threads do must wait for it (warpgroup_emulator.cpp). */
void emulated_wrote(const void *p);

static inline void put_word(void *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
    emulated_wrote(at);
}

void cp_async_16(void *shared, const void *global, int bytes);
void cp_async_commit(void);
void emulated_wait(int pending);

/* Element i of the left factor is in row g or g + 8 and column 2 t + {0, 1} or 2 t + 8 + {0, 1}: bit 0 of
 * i adds a column, bit 1 eight rows, bit 2 eight columns.  Element i of the right one is in column g and
 * row 2 t + (i & 1), and eight further down for i >= 2.  Sum i is in row g, for i >= 2 in row g + 8, and
 * in column 2 t + (i & 1). */
template <typename E> static inline void mma_m16n8k16(float *sums, factor a, uint32_t b0, uint32_t b1, E)
{
    const uint32_t b[2] = {b0, b1};
    emulated_operand own = {EMULATED_MMA};
    for (int i = 0; i < 8; i++) {
        own.a[i] = to_float(E{(uint16_t)(a.word[i / 2] >> (16 * (i % 2)))});
    }
    for (int i = 0; i < 4; i++) {
        own.b[i] = to_float(E{(uint16_t)(b[i / 2] >> (16 * (i % 2)))});
    }
    const emulated_operand *lanes = emulated_meet(&own);
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int i = 0; i < 4; i++) {
        int lower = i / 2, column = 2 * t + i % 2;
        for (int k = 0; k < 16; k++) {
            const float *left = lanes[4 * g + k % 8 / 2].a, *right = lanes[4 * column + k % 8 / 2].b;
            sums[i] += left[k % 2 + 2 * lower + 4 * (k / 8)] * right[k % 2 + 2 * (k / 8)];
        }
    }
}

static inline const emulated_operand *emulated_rows(emulated_instruction instruction, const void *row)
{
    emulated_check_shared(row);
    emulated_operand own = {instruction};
    own.row = (const uint16_t *)row;
    return emulated_meet(&own);
}

static inline const emulated_operand *emulated_stored(const void *row, factor f)
{
    emulated_check_shared(row);
    emulated_operand own = {EMULATED_STMATRIX};
    own.stored = f;
    return emulated_meet(&own);
}

/* Lanes 8 m to 8 m + 7 bring the rows of matrix m; a lane receives elements 2 t and 2 t + 1 of row g. */
static inline factor ldmatrix_x4(const void *row)
{
    const emulated_operand *lanes = emulated_rows(EMULATED_LDMATRIX, row);
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    factor f;
    for (int m = 0; m < 4; m++) {
        const uint16_t *r = lanes[8 * m + g].row;
        f.word[m] = r[2 * t] | (uint32_t)r[2 * t + 1] << 16;
    }
    return f;
}

/* The same of the transposed matrices: rows 2 t and 2 t + 1 of column g. */
static inline factor ldmatrix_x4_trans(const void *row)
{
    const emulated_operand *lanes = emulated_rows(EMULATED_LDMATRIX_TRANS, row);
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    factor f;
    for (int m = 0; m < 4; m++) {
        f.word[m] = lanes[8 * m + 2 * t].row[g] | (uint32_t)lanes[8 * m + 2 * t + 1].row[g] << 16;
    }
    return f;
}

/* A lane brings elements 2 t and 2 t + 1 of row g, and receives rows 2 t and 2 t + 1 of column g. */
static inline uint32_t movmatrix_trans(uint32_t word)
{
    emulated_operand own = {EMULATED_MOVMATRIX};
    own.word = word;
    const emulated_operand *lanes = emulated_meet(&own);
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    uint32_t both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = lanes[4 * (2 * t + i) + g / 2].word >> (16 * (g % 2)) & 0xffff;
    }
    return both[0] | both[1] << 16;
}

template <int PENDING> static inline void cp_async_wait(void)
{
    emulated_wait(PENDING);
}

#endif
