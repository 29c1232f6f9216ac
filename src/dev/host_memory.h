/* host_memory: what of the host's memory a process may still have: what is free, what its cgroup allows, and addresses
 * where those are limited (RLIMIT_AS, `ulimit -v`).
 *
 * Libraries end the process where they get none: oneDNN writes code to where it has no memory, OpenBLAS asks for ever.
 * So what they take is left free by device_cpu.free_bytes, and looked for before they are entered. */
#ifndef KILN_DEV_HOST_MEMORY_H
#define KILN_DEV_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that can be had without swapping and within the process's cgroup. */
size_t host_memory_free(void);

/* Bytes of addresses that are left to the process; SIZE_MAX where there is no limit. */
size_t host_memory_addresses(void);

/* Bytes of addresses that the libraries of the cpu's operations and kiln's threads will take: code, stacks, files. */
size_t host_memory_library_addresses(void);

/* Memory that libraries and threads of the cpu's operations take while they train a model with these sizes: code, tables,
 * panels of matrices, scratch of each thread. */
size_t host_memory_library_bytes(int64_t hidden_size, int64_t intermediate_size, bool in_fp32);

/* Memory that the process has for itself now: no files. */
size_t host_memory_taken(void);

/* Whether so many bytes could be mapped just now. */
bool host_memory_can_map(size_t bytes);

/* Where addresses are limited: lets malloc have one arena for all threads, instead of 64 MiB of addresses for each.  Before
 * any thread is started. */
void host_memory_save_addresses(void);

#endif
