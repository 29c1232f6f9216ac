/* map_fault: finds the mapped file that caused a memory fault.
 *
 * Reading a mapped page is a SIGBUS (mmap(2)) if another process has truncated the file before that page, or
 * if the disk fails to read it.  A signal handler asks here for the file's name.
 * The kernel knows it for every mapping, so code that maps files need not record it
 * (docs/decisions/0029_cut_files.md). */
#ifndef KILN_IO_MAP_FAULT_H
#define KILN_IO_MAP_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* The path, cut to n - 1 bytes, of the file that is mapped at `address`, as /proc/self/maps has it; false if
 * none is, or /proc is not there.  For signal handlers: calls nothing but open, read and close. */
bool map_fault_find(char *path, size_t n, const void *address);

#endif
