/* A signal during a product is handled on a stack: some of oneDNN's kernels point the stack register at their
 * scratch memory on the heap, where a handler's frame would overwrite what lies below. */
#define _GNU_SOURCE
#include "test.h"

#include "ops/ops.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

enum { T = 1024, H = 192 };

enum { STACK_BYTES = 64 << 20, N_SIGNALS = 100 };

static volatile sig_atomic_t n_handled, n_elsewhere;
static pthread_t main_thread;
static const char *main_top;

/* Whether the handler's own frame lies below the top of the thread's stack: glibc keeps what pthread_self
 * points at there, but for the first thread. */
static void on_signal(int number)
{
    char here;
    uintptr_t top =
        (uintptr_t)(pthread_equal(pthread_self(), main_thread) ? main_top : (const char *)pthread_self());
    (void)number;
    n_handled++;
    n_elsewhere += (uintptr_t)&here > top || top - (uintptr_t)&here > STACK_BYTES;
}

/* Until so many signals were handled: they come by the time that the process computes. */
static void multiply_until(int n_signals, enum dtype dtype)
{
    struct exec x = {.device = &device_cpu, .ops = ops_cpu(), .layer_index = -1};
    void *memory;
    EXPECT_OK(device_cpu.allocate(&memory, 3 * T * H * sizeof(float), "matrices"));
    char *at = memory;
    tensor in = tensor_2d(at, dtype, T, H), out = tensor_2d(at + T * H * sizeof(float), dtype, T, H);
    tensor w = tensor_2d(at + 2 * T * H * sizeof(float), dtype, H, H);
    tensor dw = tensor_2d(at + 2 * T * H * sizeof(float), DTYPE_F32, H, H);
    do {
        x.ops->linear(&x, out, in, w, NULL_TENSOR);
        x.ops->linear_backward_input(&x, in, out, w, false);
        x.ops->linear_backward_weight(&x, dw, NULL_TENSOR, out, in, true);
        EXPECT_OK(x.status);
    } while (n_handled < n_signals);
    device_cpu.release(memory, 3 * T * H * sizeof(float));
}

int main(void)
{
    char top;
    main_top = &top;
    main_thread = pthread_self();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    EXPECT(sigaction(SIGPROF, &action, NULL) == 0, "sigaction");
    multiply_until(0, DTYPE_F32); /* libraries are open, workers are there */
    EXPECT(setitimer(ITIMER_PROF, &often, NULL) == 0, "setitimer");
    multiply_until(N_SIGNALS, DTYPE_F32);
    multiply_until(2 * N_SIGNALS, DTYPE_BF16);
    EXPECT(setitimer(ITIMER_PROF, &never, NULL) == 0, "setitimer");
    EXPECT(n_elsewhere == 0, "%d of %d signals were handled outside of a stack", (int)n_elsewhere,
           (int)n_handled);
    printf("%d signals, all on stacks\n", (int)n_handled);
    return 0;
}
