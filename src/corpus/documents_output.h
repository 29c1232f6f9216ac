/* documents_output: that what is written is none of the text that it is made from, under whatever name: by device and
 * inode, so that links do not hide it. */
#ifndef KILN_CORPUS_DOCUMENTS_OUTPUT_H
#define KILN_CORPUS_DOCUMENTS_OUTPUT_H

#include "corpus/documents.h"

/* STATUS_USAGE, naming both, if the file at `path` is one of the text's; `flag` is the one that names it. */
struct status documents_output_check_file(const struct documents *d, const char *flag, const char *path);

/* STATUS_USAGE, naming both, if the directory `path`, which need not be there, is one of the inputs that `d` was
 * opened with or below one: the next run would read what this one writes. */
struct status documents_output_check_directory(const struct documents *d, const char *const *inputs,
                                               int n_inputs, const char *flag, const char *path);

#endif
