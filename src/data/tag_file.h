/* tag_file: sentences with a label for each word, from CoNLL columns or JSON lines.
 *
 * CoNLL: one word per line (data/conll_file.h).  JSON lines: {"tokens": [...], "labels": [...]}, also
 * "words", and "ner_tags" or "tags". */
#ifndef KILN_DATA_TAG_FILE_H
#define KILN_DATA_TAG_FILE_H

#include "data/conll_file.h"
#include "data/tag_examples.h"

/* Reads the file, as JSON lines if its name ends in .json, .jsonl or .ndjson.  Columns of JSON lines by key.
 * STATUS_DATA names the line.  The caller calls tag_examples_fini after success. */
struct status tag_file_read(struct tag_examples *e, const char *path, const struct conll_columns *c);

#endif
