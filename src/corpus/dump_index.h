/* dump_index: the index that Wikipedia publishes beside a multistream dump: a line OFFSET:PAGE_ID:TITLE for
 * each page, where OFFSET is the byte of the dump at which the bzip2 stream with that page begins.
 *
 * The rule: an index is no text, and decides nothing that is written.  It tells before any text is read that
 * a dump was cut, and behind the last page that some are missing.  docs/decisions/0049_dumps.md. */
#ifndef KILN_CORPUS_DUMP_INDEX_H
#define KILN_CORPUS_DUMP_INDEX_H

#include "corpus/input_files.h"

#include <stddef.h>

/* Of up to so many files each is looked at, of more only those with "index" in their names: the first block
 * of a file must be unpacked for it. */
enum { DUMP_INDEX_LOOK_FILES = 64 };

/* Whether a file that begins with text[0..n) is an index: nine of ten lines are as above. */
bool dump_index_recognises(const char *text, size_t n);

/* Marks the indexes among the files.  What cannot be opened is left to whoever reads it. */
void dump_index_find(struct input_files *f);

/* Reads the indexes that were found, and sets `n_listed` of their dumps.  STATUS_DATA: an index that is cut,
 * damaged or not of a dump among the files, or a dump that ends before a place in its index;
 * STATUS_PREEMPTED. */
struct status dump_index_read(struct input_files *f);

#endif
