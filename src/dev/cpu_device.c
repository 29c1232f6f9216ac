/* The host as a device: anonymous pages. */
#define _GNU_SOURCE
#include "core/arena.h"
#include "core/parallel.h"
#include "dev/device.h"
#include "dev/host_memory.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static size_t cpu_free_bytes(void)
{
    size_t bytes = host_memory_free(), addresses = host_memory_addresses();
    if (addresses == SIZE_MAX) {
        return bytes;
    }
    size_t libraries = host_memory_library_addresses();
    size_t left = addresses > libraries ? addresses - libraries : 0;
    return bytes < left ? bytes : left;
}

struct block {
    char *bytes;
    size_t n;
};

/* By all threads: one clears about 8 GB/s. */
static void touch_part(void *context, int part, int n_parts)
{
    const struct block *b = context;
    size_t first = b->n / (size_t)n_parts * (size_t)part;
    size_t n = part == n_parts - 1 ? b->n - first : b->n / (size_t)n_parts;
    memset(b->bytes + first, 0, n);
}

/* Checks free memory only, without the addresses that libraries need: by now they have taken some of
 * these. */
static struct status cpu_allocate(void **memory, size_t bytes, const char *what)
{
    *memory = NULL;
    size_t available = host_memory_free();
    FAIL_IF(bytes > available, STATUS_MEMORY, "%s needs %.2f GiB, but only %.2f GiB of memory are free", what,
            (double)bytes / 0x1p30, (double)available / 0x1p30);
    void *p = mmap(NULL, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FAIL_IF(p == MAP_FAILED, STATUS_MEMORY, "%s: cannot allocate %zu bytes: %s", what, bytes,
            strerror(errno));
    madvise(p, bytes, MADV_HUGEPAGE); /* only a hint: large matrices read with fewer TLB misses */
    parallel_run(touch_part, &(struct block){p, bytes});
    *memory = p;
    return status_ok();
}

static void cpu_release(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, bytes == 0 ? 1 : bytes);
    }
}

static struct status cpu_open(void **context)
{
    *context = NULL;
    host_memory_save_addresses();
    return status_ok();
}

static void cpu_close(void *context)
{
    (void)context;
}

static struct status cpu_copy(void *context, void *to, const void *from, size_t bytes)
{
    (void)context;
    memmove(to, from, bytes);
    return status_ok();
}

static struct status cpu_synchronize(void *context)
{
    (void)context;
    return status_ok();
}

const struct device device_cpu = {
    .name = "cpu",
    .is_host = true,
    .multiplies_int8 = true,
    .open = cpu_open,
    .close = cpu_close,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .synchronize = cpu_synchronize,
    .free_bytes = cpu_free_bytes,
};
