/* input_guard: checks that output does not overwrite the input text.  Files are compared by device and inode,
 * so links cannot hide one. */
#ifndef KILN_CORPUS_INPUT_GUARD_H
#define KILN_CORPUS_INPUT_GUARD_H

#include "corpus/input_files.h"

/* STATUS_USAGE, naming both, if the file at `path` is one of the inputs; `flag` is the flag that named it. */
struct status input_guard_check_file(const struct input_files *f, const char *flag, const char *path);

/* STATUS_USAGE, naming both, if the directory `path`, which need not exist, is one of the inputs of `f` or
 * below one: the next run would read what this one writes. */
struct status input_guard_check_directory(const struct input_files *f, const char *const *inputs,
                                          int n_inputs, const char *flag, const char *path);

#endif
