/* document_merge: several stores of complete documents as one. */
#ifndef KILN_CORPUS_DOCUMENT_MERGE_H
#define KILN_CORPUS_DOCUMENT_MERGE_H

#include "corpus/document_shuffle.h"

/* Writes PREFIX.bin, .idx and .json of the stores of `prefixes`: one after the other, as
 * merge_preprocessed_data.py does, or shuffled.  Memory does not grow with them.  STATUS_DATA: one is
 * damaged, or of another tokenizer than the first; STATUS_USAGE: the output is there already, or is one of
 * them. */
struct status document_merge(const char *output_prefix, const char *const *prefixes, int n_prefixes,
                             struct document_shuffle_config shuffle, bool overwrite, bool dry_run);

#endif
