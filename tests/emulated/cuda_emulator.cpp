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
    STACK_BYTES = 64 << 10,
    SHARED_BYTES = 227 << 10
};

enum fiber_state { READY, AT_WARP, AT_GROUP, AT_BLOCK, DONE };

/* A context is entered once; after that fibers and the scheduler jump, which asks the kernel for nothing. */
struct fiber {
    ucontext_t context;
    jmp_buf resume;
    bool entered, waited; /* for the launch before */
    emulated_thread place;
    fiber_state state;
};

static fiber fibers[MOST_THREADS];
static unsigned n_fibers, running;
static jmp_buf scheduler;
static const std::function<void()> *body;
static uint64_t exchange[MOST_THREADS];
alignas(1024) static unsigned char shared_memory[SHARED_BYTES];
static size_t shared_bytes;
emulated_thread *emulated;

void *emulated_shared(void)
{
    return shared_memory;
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

void emulated_barrier(emulated_scope scope)
{
    fiber *own = &fibers[running];
    own->state = scope == EMULATED_WARP ? AT_WARP : scope == EMULATED_WARPGROUP ? AT_GROUP : AT_BLOCK;
    if (_setjmp(own->resume) == 0) {
        _longjmp(scheduler, 1);
    }
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
        fprintf(stderr, "a thread that began early did not wait for the launch before\n");
        abort();
    }
    emulated_end();
    emulated_end_products();
    fibers[running].state = DONE;
    _longjmp(scheduler, 1);
}

static void start_fiber(unsigned i, dim3 block, dim3 block_size, dim3 grid)
{
    static std::vector<char> stacks((size_t)MOST_THREADS * STACK_BYTES);
    fiber *f = &fibers[i];
    f->place = emulated_thread{dim3(i), block, block_size, grid};
    f->state = READY;
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

/* Runs a warp until all of its fibers are done or wait for the block, or for each other in vain: the first lane first or,
 * every other time, the last, so that what lanes do to each other without a barrier shows. */
static void run_warp(unsigned first)
{
    unsigned end = first + WARP_THREADS < n_fibers ? first + WARP_THREADS : n_fibers;
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

/* Opens the barriers of warpgroups whose fibers have all come. */
static bool open_groups(void)
{
    bool opened = false;
    for (unsigned first = 0; first + GROUP_THREADS <= n_fibers; first += GROUP_THREADS) {
        opened |= open_barrier(first, first + GROUP_THREADS, AT_GROUP);
    }
    return opened;
}

static bool open_block(void)
{
    bool opened = open_barrier(0, n_fibers, AT_BLOCK);
    if (opened) {
        emulated_met();
    }
    return opened;
}

/* Between two barriers of the block a warp runs as far ahead of the others as it can, the first warp or,
 * every other time, the last: what others should have written by then and have not, or still read, shows. */
static void run_block(void)
{
    unsigned n_warps = (n_fibers + WARP_THREADS - 1) / WARP_THREADS;
    bool backwards = false;
    do {
        for (unsigned warp = 0; warp < n_warps; warp++) {
            run_warp((backwards ? n_warps - 1 - warp : warp) * WARP_THREADS);
        }
        backwards = !backwards;
    } while (open_groups() || open_block());
    for (unsigned i = 0; i < n_fibers; i++) {
        if (fibers[i].state != DONE) {
            fprintf(stderr, "threads of a block wait at different barriers\n");
            abort();
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

static void run_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel);

void emulated_launch(const char *name, dim3 grid, dim3 block, size_t shared,
                     const std::function<void()> &kernel, bool early)
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
        run_launch(grid, block, shared, kernel);
    });
    emulated_counts_done();
}

void emulated_launch_early(const char *name, dim3 grid, dim3 block, const std::function<void()> &kernel)
{
    emulated_launch(name, grid, block, 0, kernel, true);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    emulated_counts_launch("memset");
    run_or_record([=] { memset(memory, value, bytes); });
    emulated_counts_bytes((double)bytes);
    return cudaSuccess;
}

static void run_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel)
{
    n_fibers = block.x;
    body = &kernel;
    shared_bytes = shared;
    if (block.x > MOST_THREADS || shared > SHARED_BYTES || block.y != 1 || block.z != 1 || grid.y > 65535 ||
        grid.z > 65535) {
        fprintf(stderr, "a launch of %u threads, %zu bytes of shared memory, grid %u x %u x %u\n", block.x,
                shared, grid.x, grid.y, grid.z);
        abort();
    }
    for (unsigned z = 0; z < grid.z; z++) {
        for (unsigned y = 0; y < grid.y; y++) {
            for (unsigned x = 0; x < grid.x; x++) {
                memset(shared_memory, 0xff, shared);
                emulated_new_block();
                for (unsigned i = 0; i < n_fibers; i++) {
                    start_fiber(i, dim3(x, y, z), block, grid);
                }
                run_block();
            }
        }
    }
}
