/* input_guard: that what is written is none of the text that it is made from, under whatever name: by device and
 * inode, so that links do not hide it. */
#ifndef KILN_CORPUS_INPUT_GUARD_H
#define KILN_CORPUS_INPUT_GUARD_H

#include "corpus/input_files.h"

/* STATUS_USAGE, naming both, if the file at `path` is one of the text's; `flag` is the one that names it. */
struct status input_guard_check_file(const struct input_files *f, const char *flag, const char *path);

/* STATUS_USAGE, naming both, if the directory `path`, which need not be there, is one of the inputs that `f` was
 * listed from or below one: the next run would read what this one writes. */
struct status input_guard_check_directory(const struct input_files *f, const char *const *inputs,
                                          int n_inputs, const char *flag, const char *path);

#endif
