/* What the emulator says of kernels that begin before the launch before them has ended (device_code.cuh):
 * each thread must wait, and none may touch device memory before the first has. */
#include "ending.hpp"
#include "ops/cuda/kernels/device_code.cuh"

#include <signal.h>

__global__ static void waiting_kernel(early_start start, int32_t *number)
{
    start.wait();
    number[threadIdx.x] += 1;
}

__global__ static void hasty_kernel(early_start start, int32_t *number)
{
    int32_t old = *(volatile int32_t *)&number[threadIdx.x];
    start.wait();
    number[threadIdx.x] = old + 1;
}

__global__ static void leaving_kernel(early_start start, int32_t *number)
{
    if (threadIdx.x == 3) {
        return;
    }
    start.wait();
    number[threadIdx.x] += 1;
}

/* How a process ends that launches it. */
static int end_of_launch(void (*kernel)(early_start, int32_t *), int32_t *number)
{
    return end_of([=] {
        launch l = {};
        LAUNCH_EARLY(&l, kernel, 2, 64, number);
        return 0;
    });
}

int main(void)
{
    int32_t *number = (int32_t *)emulated_memory_take(64 * sizeof(int32_t));
    expect(number != NULL, "no memory");
    expect(end_of_launch(waiting_kernel, number) == 0, "a kernel that waits fails");
    expect(end_of_launch(hasty_kernel, number) == SIGSEGV, "memory is there before the first wait");
    expect(end_of_launch(leaving_kernel, number) == SIGABRT, "a thread may leave without a wait");
    printf("kernels that begin early: all threads wait, before they touch memory\n");
    return 0;
}
