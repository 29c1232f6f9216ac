/* map_fault: which mapped file a memory fault is about.
 *
 * Who maps a file is shown its end for as long as it has one: a page behind it, when another process has cut the file,
 * or one that the disk does not give, is SIGBUS (mmap(2)).  A program that handles it asks here for the file's name,
 * which the kernel knows of every mapping: nothing has to be kept for it, by whoever maps
 * (docs/decisions/0029_cut_files.md). */
#ifndef KILN_IO_MAP_FAULT_H
#define KILN_IO_MAP_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* The path, cut to n - 1 bytes, of the file that is mapped at `address`, as /proc/self/maps has it; false if none is,
 * or /proc is not there.  For signal handlers: calls nothing but open, read and close. */
bool map_fault_find(char *path, size_t n, const void *address);

#endif
