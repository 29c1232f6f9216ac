/* input_files: the files that the user's inputs name, in order.
 *
 * The rule: the order depends on names only.  Directories are walked to the bottom in byte order; names that
 * begin with a dot are skipped, and so are files that are not regular. */
#ifndef KILN_CORPUS_INPUT_FILES_H
#define KILN_CORPUS_INPUT_FILES_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct input_file {
    char *path;
    uint64_t n_bytes;
    int64_t changed_ns; /* time of last modification */
    bool in_directory;  /* the file was found in a directory that is an input */
    bool is_index;      /* the file is the index of a dump, and no text (corpus/dump_index.h) */
    int64_t n_listed;   /* pages that the index of this dump lists; 0: it has none */
};

struct input_files {
    struct input_file *files; /* [n] */
    int64_t n;
    size_t capacity;
    int64_t n_indexes;    /* indexes of dumps, among the n */
    uint64_t total_bytes; /* size of all files of text */
};

/* STATUS_DATA: an input that is missing, empty or neither file nor directory, or a directory without
 * files. */
struct status input_files_list(struct input_files *f, const char *const *inputs, int n_inputs);
void input_files_fini(struct input_files *f);

/* ---- checks that output does not overwrite the input: by device and inode, so links cannot hide one ---- */

/* STATUS_USAGE, naming both, if the file at `path` is one of the inputs; `flag` is the flag that named it. */
struct status input_files_check_output(const struct input_files *f, const char *flag, const char *path);

/* STATUS_USAGE, naming both, if the directory `path`, which need not exist, is one of the inputs of `f` or
 * below one: the next run would read what this one writes. */
struct status input_files_check_output_directory(const struct input_files *f, const char *const *inputs,
                                                 int n_inputs, const char *flag, const char *path);

#endif
