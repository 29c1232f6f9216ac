#define _GNU_SOURCE
#include "dev/host_memory.h"

#include "core/cgroup.h"
#include "core/kernel_file.h"

#include <malloc.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* Measured on x86-64 with oneDNN 2.6 and OpenBLAS 0.3.21: 45 MiB for OpenBLAS's library file and its
 * dependencies, some 20 MiB for the code and tables that oneDNN generates.  Threads that do not compute:
 * batches, saving, checking of data, a log. */
static const size_t LIBRARY_ADDRESSES = (size_t)96 << 20, MORE_OF_A_THREAD = (size_t)1 << 20;
enum { OWN_THREADS = 4 };

/* Bytes that a cgroup may still take; its cached files count as free.  SIZE_MAX without a limit. */
static size_t cgroup_left(const char *directory, const char *limit_name, const char *usage_name,
                          const char *cached)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", directory, limit_name);
    unsigned long long limit = kernel_file_read(path, "");
    if (limit == 0 || limit >= (unsigned long long)INT64_MAX / 2) { /* "max", or no such file */
        return SIZE_MAX;
    }
    snprintf(path, sizeof path, "%s/%s", directory, usage_name);
    unsigned long long usage = kernel_file_read(path, "");
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    unsigned long long files = kernel_file_read(path, cached);
    usage = usage > files ? usage - files : 0;
    return limit > usage ? (size_t)(limit - usage) : 0;
}

static void take_least(void *context, const char *directory)
{
    size_t *least = context, here = cgroup_left(directory, "memory.max", "memory.current", "inactive_file ");
    *least = here < *least ? here : *least;
}

/* The least over the process's groups (version 2), and over the root that a container sees (version 1). */
static size_t all_cgroups_left(void)
{
    size_t left = cgroup_left("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file ");
    cgroup_visit("", take_least, &left);
    return left;
}

size_t host_memory_free(void)
{
    size_t kib = (size_t)kernel_file_read("/proc/meminfo", "MemAvailable:"); /* the kernel's own estimate */
    size_t bytes = kib == 0 ? (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) : kib * 1024;
    size_t allowed = all_cgroups_left();
    return bytes < allowed ? bytes : allowed;
}

size_t host_memory_addresses(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return SIZE_MAX;
    }
    size_t used = (size_t)kernel_file_read("/proc/self/statm", "") * (size_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? (size_t)limit.rlim_cur - used : 0;
}

size_t host_memory_library_addresses(void)
{
    const size_t default_stack = (size_t)8 << 20;
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    size_t stack = limited ? (size_t)limit.rlim_cur : default_stack; /* pthread_create(3) */
    return LIBRARY_ADDRESSES + (size_t)(omp_get_max_threads() + OWN_THREADS) * (stack + MORE_OF_A_THREAD);
}

size_t host_memory_taken(void)
{
    return (size_t)kernel_file_read("/proc/self/status", "RssAnon:") * 1024;
}

/* The peak counts all resident memory, so the bytes that are now mapped from files are subtracted. */
size_t host_memory_peak(void)
{
    static const char status[] = "/proc/self/status";
    unsigned long long peak = kernel_file_read(status, "VmHWM:"),
                       of_files = kernel_file_read(status, "RssFile:");
    of_files += kernel_file_read(status, "RssShmem:");
    return (size_t)(peak > of_files ? peak - of_files : 0) * 1024;
}

void host_memory_reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f != NULL) {
        fputs("5", f);
        fclose(f);
    }
}

bool host_memory_can_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && munmap(p, bytes) == 0;
}

void host_memory_save_addresses(void)
{
    if (host_memory_addresses() != SIZE_MAX) {
        mallopt(M_ARENA_MAX, 1);
    }
}
