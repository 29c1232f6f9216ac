/* host_memory: the host memory that a process may still take: free memory, the limit of its cgroup, and
 * addresses where those are limited (RLIMIT_AS, `ulimit -v`).
 *
 * Libraries handle a shortage badly: oneDNN writes code to memory it did not get, OpenBLAS retries forever.
 * So device_cpu.free_bytes leaves memory for them, and kiln checks for it before it calls them. */
#ifndef KILN_DEV_HOST_MEMORY_H
#define KILN_DEV_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that can be allocated without swapping and within the process's cgroup. */
size_t host_memory_free(void);

/* Bytes of address space left to the process; SIZE_MAX without a limit. */
size_t host_memory_addresses(void);

/* Bytes of addresses that the libraries of the cpu's operations and kiln's threads will take: code, stacks,
 * files. */
size_t host_memory_library_addresses(void);

/* Memory that the process holds now, without mapped files. */
size_t host_memory_taken(void);

/* The most that it has held since the last reset, or since it began; 0 if the system does not say (proc(5),
 * clear_refs). */
size_t host_memory_peak(void);
void host_memory_reset_peak(void);

/* Whether that many bytes can be mapped now. */
bool host_memory_can_map(size_t bytes);

/* Makes malloc use one arena for all threads, if addresses are limited, instead of 64 MiB of addresses for
 * each.  Call it before any thread starts. */
void host_memory_save_addresses(void);

#endif
