/* dump_index: the index that Wikipedia publishes with a multistream dump: a line OFFSET:PAGE_ID:TITLE for
 * each page, where OFFSET is the byte of the dump at which the bzip2 stream with that page begins.
 *
 * The rule: an index is no text, and decides nothing that is written.  It shows before any text is read that
 * a dump was cut, and after the last page that some are missing.  docs/decisions/0049_dumps.md. */
#ifndef KILN_CORPUS_DUMP_INDEX_H
#define KILN_CORPUS_DUMP_INDEX_H

#include "corpus/input_files.h"

#include <stddef.h>

/* Up to this number of files, each is examined; of more files, only those with "index" in their names: the
 * first block of a file must be unpacked for that. */
enum { DUMP_INDEX_LOOK_FILES = 64 };

/* Whether a file that begins with text[0..n) is an index: nine of ten lines are as above. */
bool dump_index_recognises(const char *text, size_t n);

/* Marks the indexes among the files.  A file that cannot be opened is not marked: reading it returns the
 * error. */
void dump_index_find(struct input_files *f);

/* Reads the indexes that were found, and sets `n_listed` of their dumps.  STATUS_DATA: an index that is cut,
 * damaged or not of a dump among the files, or a dump that ends before a place in its index;
 * STATUS_PREEMPTED. */
struct status dump_index_read(struct input_files *f);

#endif
