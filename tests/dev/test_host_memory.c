/* Limits of addresses are seen, left to the libraries, and survived by work in threads that cannot be had. */
#include "test.h"

#include "core/parallel.h"
#include "dev/device.h"
#include "dev/host_memory.h"

#include <omp.h>
#include <stdatomic.h>
#include <sys/resource.h>

static const size_t MIB = 1 << 20;

enum { PARTS = 8 };

static atomic_int done[PARTS];

static void count(void *context, int part, int n_parts)
{
    EXPECT(context == done && n_parts == PARTS, "%d parts", n_parts);
    atomic_fetch_add(&done[part], 1);
}

static void every_part_is_done_once(const char *when)
{
    for (int i = 0; i < PARTS; i++) {
        atomic_store(&done[i], 0);
    }
    parallel_run(count, done);
    for (int i = 0; i < PARTS; i++) {
        EXPECT(atomic_load(&done[i]) == 1, "%s: part %d was done %d times", when, i, atomic_load(&done[i]));
    }
}

/* Lets the process have so many bytes of addresses more. */
static void limit_to(size_t left)
{
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_AS, &limit) == 0, "getrlimit");
    limit.rlim_cur = RLIM_INFINITY;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    const size_t far = (size_t)1 << 46; /* a limit by which what is taken can be told */
    limit.rlim_cur = far;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    limit.rlim_cur = far - host_memory_addresses() + left;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

int main(void)
{
    struct rlimit limit;
    omp_set_num_threads(PARTS);
    every_part_is_done_once("without a limit");
    EXPECT(getrlimit(RLIMIT_AS, &limit) == 0, "getrlimit");
    if (limit.rlim_max != RLIM_INFINITY) {
        test_skip("addresses", "addresses are limited here already");
    }
#if KILN_SANITIZED
    test_skip("addresses", "AddressSanitizer takes terabytes of addresses");
#endif
    EXPECT(host_memory_free() > 0 && host_memory_addresses() == SIZE_MAX, "no limit");
    size_t libraries = host_memory_library_addresses(), unlimited = device_cpu.free_bytes();
    EXPECT(host_memory_taken() > 0 && libraries > 0, "nothing is taken");

    limit_to(400 * MIB);
    EXPECT_NEAR((double)host_memory_addresses(), 400.0 * (double)MIB, 8.0 * (double)MIB);
    EXPECT(host_memory_can_map(350 * MIB) && !host_memory_can_map(450 * MIB), "what can be mapped");
    limit_to(libraries + 10 * MIB);
    EXPECT(device_cpu.free_bytes() <= 10 * MIB && device_cpu.free_bytes() < unlimited, "%zu bytes are free",
           device_cpu.free_bytes());
    limit_to(libraries - MIB);
    EXPECT(device_cpu.free_bytes() == 0, "%zu bytes are free", device_cpu.free_bytes());

    limit_to(MIB); /* no stack fits */
    every_part_is_done_once("without room for threads");
    limit.rlim_cur = RLIM_INFINITY;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
    return 0;
}
