/* The part of matrix_emulator.hpp that fibers share. */
#include "ops/cuda/kernels/matrix_code.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <vector>

enum { MOST_THREADS = 1024, LANES = 32, PIECE = 16 };

/* Written in turn: a lane that is one instruction ahead does not touch what the others still read, and it
 * cannot be two ahead of them. */
static emulated_operand operands[2][MOST_THREADS];
static unsigned char turn[MOST_THREADS];

struct copy {
    void *to;
    const void *from;
    int bytes, group;
};

static std::vector<copy> copies[MOST_THREADS];
static int groups[MOST_THREADS]; /* committed */

void emulated_refuse(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

const emulated_operand *emulated_meet(const emulated_operand *own)
{
    unsigned i = emulated_index(), first = i / LANES * LANES;
    emulated_operand *now = operands[turn[i]];
    if (threadIdx.x / LANES * LANES + LANES > blockDim.x) {
        emulated_refuse("an instruction of a warp of fewer than 32 threads");
    }
    now[i] = *own;
    turn[i] ^= 1;
    emulated_barrier(EMULATED_WARP);
    for (unsigned lane = first; lane < first + LANES; lane++) {
        if (now[lane].instruction != own->instruction) {
            emulated_refuse("lanes of a warp meet different instructions");
        }
    }
    return now + first;
}

void emulated_check_shared(const void *p)
{
    size_t offset = (size_t)((const char *)p - (const char *)emulated_shared());
    if (offset % PIECE != 0 || offset + PIECE > emulated_shared_bytes()) {
        emulated_refuse("not 16 aligned bytes of the shared memory that was asked for");
    }
}

void cp_async_16(void *shared, const void *global, int bytes)
{
    unsigned i = emulated_index();
    emulated_check_shared(shared);
    if ((uintptr_t)global % PIECE != 0 || (bytes != 0 && bytes != PIECE)) {
        emulated_refuse("a copy of other than 16 aligned bytes");
    }
    memset(shared, 0xff, PIECE);
    copies[i].push_back(copy{shared, global, bytes, groups[i]});
}

void cp_async_commit(void)
{
    groups[emulated_index()]++;
}

void emulated_wait(int pending)
{
    unsigned i = emulated_index();
    std::vector<copy> left;
    for (const copy &c : copies[i]) {
        if (c.group >= groups[i] - pending) {
            left.push_back(c);
            continue;
        }
        memset(c.to, 0, PIECE);
        memcpy(c.to, c.from, (size_t)c.bytes);
        if (c.bytes > 0) {
            emulated_touch(c.from, false);
        }
        emulated_wrote(c.to);
    }
    copies[i] = left;
}

void emulated_end(void)
{
    if (!copies[emulated_index()].empty()) {
        emulated_refuse("a thread ends before its copies");
    }
}
