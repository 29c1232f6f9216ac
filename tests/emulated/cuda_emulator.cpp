#include "cuda_emulator.hpp"
#include "emulated_graphs.h"
#include "emulated_memory.h"

#include <deque>
#include <memory>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <vector>

enum {
    MOST_THREADS = 1024,
    WARP_THREADS = 32,
    GROUP_THREADS = 128,
    MOST_BLOCKS = 8, /* of a cluster */
    STACK_BYTES = 64 << 10,
    SHARED_BYTES = 227 << 10
};

enum fiber_state { READY, AT_WARP, AT_GROUP, AT_BLOCK, AT_CLUSTER, DONE };

/* A context is entered once; after that fibers and the scheduler jump, which asks the kernel for nothing. */
struct fiber {
    ucontext_t context;
    jmp_buf resume;
    bool entered, waited; /* for the launch before */
    emulated_thread place;
    fiber_state state;
    int arrivals, waits; /* at the barrier of the cluster */
};

/* Those of a block behind those of the block before it. */
static fiber fibers[MOST_THREADS];
static unsigned n_fibers, block_fibers, running;
static jmp_buf scheduler;
static const std::function<void()> *body;
static uint64_t exchange[MOST_THREADS];
alignas(1024) static unsigned char shared_memory[MOST_BLOCKS][SHARED_BYTES];
static size_t shared_bytes;
static int forgotten_wait = EMULATED_NO_WAIT;
emulated_thread *emulated;
int emulated_multiprocessors = 2;

void *emulated_shared(void)
{
    return shared_memory[emulated_block()];
}

unsigned emulated_block(void)
{
    return running / block_fibers;
}

size_t emulated_shared_bytes(void)
{
    return shared_bytes;
}

uint64_t *emulated_exchange(void)
{
    return exchange;
}

unsigned emulated_index(void)
{
    return running;
}

[[noreturn]] static void refuse(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void leave(fiber_state state)
{
    fiber *own = &fibers[running];
    own->state = state;
    if (_setjmp(own->resume) == 0) {
        _longjmp(scheduler, 1);
    }
}

void emulated_barrier(emulated_scope scope)
{
    leave(scope == EMULATED_WARP ? AT_WARP : scope == EMULATED_WARPGROUP ? AT_GROUP : AT_BLOCK);
}

void emulated_forget_wait(int number)
{
    forgotten_wait = number;
}

void emulated_arrive(void)
{
    fiber *own = &fibers[running];
    if (own->arrivals != own->waits) {
        refuse("a thread arrives twice at the barrier of its cluster");
    }
    own->arrivals++;
}

void emulated_wait_for_cluster(void)
{
    fiber *own = &fibers[running];
    if (own->arrivals != own->waits + 1) {
        refuse("a thread waits for its cluster and has not arrived");
    }
    if (own->waits++ != forgotten_wait) {
        leave(AT_CLUSTER);
    }
}

unsigned char *emulated_place_of(unsigned block, size_t offset)
{
    bool begun = false, lives = false;
    for (unsigned i = block * block_fibers; i < (block + 1) * block_fibers && i < n_fibers; i++) {
        begun |= fibers[i].entered;
        lives |= fibers[i].state != DONE;
    }
    if (!begun || !lives || offset + sizeof(uint4) > shared_bytes) {
        refuse("what is written into the memory of another block of the cluster: it may not be there");
    }
    return shared_memory[block] + offset;
}

/* Of the launch that runs: it may have begun before the end of the one before it. */
static bool is_early, any_waited;

void emulated_wait_for_launch_before(void)
{
    if (is_early && !any_waited) {
        emulated_memory_open();
    }
    any_waited = fibers[running].waited = true;
}

static void run_body(void)
{
    (*body)();
    if (is_early && !fibers[running].waited) {
        refuse("a thread that began early did not wait for the launch before");
    }
    if (fibers[running].arrivals != fibers[running].waits) {
        refuse("a thread ends between its arrival at the barrier of its cluster and the wait");
    }
    emulated_end();
    emulated_end_products();
    fibers[running].state = DONE;
    _longjmp(scheduler, 1);
}

static void start_fiber(unsigned i, dim3 thread, dim3 block, dim3 block_size, dim3 grid)
{
    static std::vector<char> stacks((size_t)MOST_THREADS * STACK_BYTES);
    fiber *f = &fibers[i];
    f->place = emulated_thread{thread, block, block_size, grid};
    f->state = READY;
    f->arrivals = f->waits = 0;
    f->entered = f->waited = false;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stacks.data() + (size_t)i * STACK_BYTES;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, run_body, 0);
}

/* Opens a barrier at which all living fibers of [first, end) wait. */
static bool open_barrier(unsigned first, unsigned end, fiber_state barrier)
{
    unsigned waiting = 0;
    for (unsigned i = first; i < end; i++) {
        if (fibers[i].state != barrier && fibers[i].state != DONE) {
            return false;
        }
        waiting += fibers[i].state == barrier;
    }
    for (unsigned i = first; i < end; i++) {
        fibers[i].state = fibers[i].state == barrier ? READY : fibers[i].state;
    }
    return waiting > 0;
}

/* Runs the fiber to its next barrier or end. */
static void run_fiber(fiber *f)
{
    if (_setjmp(scheduler) != 0) {
        return;
    }
    if (f->entered) {
        _longjmp(f->resume, 1);
    }
    f->entered = true;
    setcontext(&f->context);
}

/* Runs a warp until all of its fibers are done or wait for the block, or for each other in vain: the first
 * lane first or, every other time, the last, so that what lanes do to each other without a barrier shows. */
static void run_warp(unsigned first, unsigned end_of_block)
{
    unsigned end = first + WARP_THREADS < end_of_block ? first + WARP_THREADS : end_of_block;
    bool backwards = false;
    do {
        for (unsigned i = first; i < end; i++) {
            running = backwards ? first + end - 1 - i : i;
            if (fibers[running].state == READY) {
                emulated = &fibers[running].place;
                run_fiber(&fibers[running]);
            }
        }
        backwards = !backwards;
    } while (open_barrier(first, end, AT_WARP));
}

/* Opens the barriers of warpgroups of fibers [first, end) that have all come. */
static bool open_groups(unsigned first, unsigned end)
{
    bool opened = false;
    for (; first + GROUP_THREADS <= end; first += GROUP_THREADS) {
        opened |= open_barrier(first, first + GROUP_THREADS, AT_GROUP);
    }
    return opened;
}

static bool open_block(unsigned first, unsigned end)
{
    bool opened = open_barrier(first, end, AT_BLOCK);
    if (opened) {
        emulated_met(first, end);
    }
    return opened;
}

/* Between two barriers of the block a warp runs as far ahead of the others as it can, the first warp or,
 * every other time, the last: what others should have written by then and have not, or still read, shows. */
static void run_block(unsigned first)
{
    unsigned end = first + block_fibers, n_warps = (block_fibers + WARP_THREADS - 1) / WARP_THREADS;
    bool backwards = false;
    do {
        for (unsigned warp = 0; warp < n_warps; warp++) {
            run_warp(first + (backwards ? n_warps - 1 - warp : warp) * WARP_THREADS, end);
        }
        backwards = !backwards;
    } while (open_groups(first, end) || open_block(first, end));
}

/* Lets those go on that wait for a turn of the cluster's barrier at which all living fibers have arrived. */
static bool open_cluster(void)
{
    bool opened = false;
    int least = INT32_MAX;
    for (unsigned i = 0; i < n_fibers; i++) {
        least = fibers[i].state != DONE && fibers[i].arrivals < least ? fibers[i].arrivals : least;
    }
    for (unsigned i = 0; i < n_fibers; i++) {
        if (fibers[i].state == AT_CLUSTER && fibers[i].waits <= least) {
            fibers[i].state = READY;
            opened = true;
        }
    }
    return opened;
}

/* A block, too, runs as far ahead of the others of its cluster as it can. */
static void run_cluster(void)
{
    unsigned n_blocks = n_fibers / block_fibers;
    bool backwards = false;
    do {
        for (unsigned block = 0; block < n_blocks; block++) {
            run_block((backwards ? n_blocks - 1 - block : block) * block_fibers);
        }
        backwards = !backwards;
    } while (open_cluster());
    for (unsigned i = 0; i < n_fibers; i++) {
        if (fibers[i].state != DONE) {
            refuse("threads of a block wait at different barriers");
        }
    }
}

typedef std::vector<std::function<void()>> work_list;

/* Launches with their arguments, as a graph of CUDA holds them, and pieces of them that run beside. */
struct recording {
    work_list work;
    work_list *piece = NULL; /* that is being given */
    std::shared_ptr<std::deque<std::shared_ptr<work_list>>>
        waiting = /* pieces that a replay has still to do */
        std::make_shared<std::deque<std::shared_ptr<work_list>>>();
    std::shared_ptr<bool> late = std::make_shared<bool>(true); /* in this replay */

    void give(const std::function<void()> &one)
    {
        (piece != NULL ? *piece : work).push_back(one);
    }
};

static recording *recorder; /* NULL: work is done as it is given */

void emulated_record_begin(void)
{
    recorder = new recording;
}

void *emulated_record_end(void)
{
    recording *r = recorder;
    recorder = NULL;
    return r;
}

static void do_all(const work_list &work)
{
    for (const std::function<void()> &one : work) {
        one();
    }
}

void emulated_record_beside(bool begins)
{
    recording *r = recorder;
    if (!begins) {
        r->piece = NULL;
        return;
    }
    auto piece = std::make_shared<work_list>();
    r->piece = piece.get();
    auto late = r->late;
    auto waiting = r->waiting;
    r->work.push_back([=] {
        if (*late) {
            waiting->push_back(piece);
        } else {
            do_all(*piece);
        }
    });
}

void emulated_record_join(int n_left)
{
    auto waiting = recorder->waiting;
    recorder->work.push_back([=] {
        for (; (int)waiting->size() > n_left; waiting->pop_front()) {
            do_all(*waiting->front());
        }
    });
}

void emulated_replay(const void *graph)
{
    const recording *r = (const recording *)graph;
    emulated_memory_open();
    do_all(r->work);
    emulated_memory_close();
    if (!r->waiting->empty()) {
        fprintf(stderr, "a recording ends before work beside it\n");
        abort();
    }
    *r->late = !*r->late;
}

void emulated_forget(void *graph)
{
    delete (recording *)graph;
}

bool emulated_is_recording(void)
{
    return recorder != NULL;
}

void emulated_record(void (*call)(const void *arguments), const void *arguments, size_t bytes)
{
    const unsigned char *first = (const unsigned char *)arguments;
    std::vector<unsigned char> copy(first, first + bytes);
    recorder->give([=] { call(copy.data()); });
}

static void run_or_record(const std::function<void()> &work)
{
    if (recorder != NULL) {
        recorder->give(work);
    } else {
        emulated_memory_open();
        work();
        emulated_memory_close();
    }
}

static void run_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel,
                       unsigned cluster);

void emulated_launch(const char *name, dim3 grid, dim3 block, size_t shared,
                     const std::function<void()> &kernel, bool early, unsigned cluster)
{
    emulated_counts_launch(name);
    if (early) {
        emulated_counts_early();
    }
    run_or_record([=] {
        is_early = early;
        any_waited = false;
        if (early) {
            emulated_memory_close();
        }
        run_launch(grid, block, shared, kernel, cluster);
    });
    emulated_counts_done();
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    emulated_counts_launch("memset");
    run_or_record([=] { memset(memory, value, bytes); });
    emulated_counts_bytes((double)bytes);
    return cudaSuccess;
}

static void run_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel,
                       unsigned cluster)
{
    block_fibers = block.x;
    n_fibers = block.x * cluster;
    body = &kernel;
    shared_bytes = shared;
    if (n_fibers > MOST_THREADS || shared > SHARED_BYTES || block.y != 1 || block.z != 1 || grid.y > 65535 ||
        grid.z > 65535 || cluster > MOST_BLOCKS || grid.x % cluster != 0 ||
        (cluster > 1 && block.x % GROUP_THREADS != 0)) {
        fprintf(stderr,
                "a launch of %u threads, %zu bytes of shared memory, grid %u x %u x %u, clusters of %u\n",
                block.x, shared, grid.x, grid.y, grid.z, cluster);
        abort();
    }
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x += cluster) {
                emulated_new_blocks(cluster);
                for (unsigned i = 0; i < n_fibers; i++) {
                    start_fiber(i, dim3(i % block.x), dim3(x + i / block.x, y, z), block, grid);
                }
                for (unsigned i = 0; i < cluster; i++) {
                    memset(shared_memory[i], 0xff, shared);
                }
                run_cluster();
            }
        }
    }
}
