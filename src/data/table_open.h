/* table_open: reads a table (data/table_file.h) from CSV, TSV and JSON lines.
 *
 * CSV and TSV: data/separated_table.h.  Each line of JSON lines is an object whose keys are the columns; an
 * array becomes a list of items, and numbers and booleans become their JSON text.  null is a cell that is not
 * there, as an absent key is; an object is no text. */
#ifndef KILN_DATA_TABLE_OPEN_H
#define KILN_DATA_TABLE_OPEN_H

#include "data/table_file.h"

/* Reads the file, whose name ends in .csv, .tsv, .json, .jsonl or .ndjson (STATUS_USAGE).  STATUS_DATA names
 * the line.  The caller closes it after success. */
struct status table_open(struct table_file *t, const char *path, const struct table_options *o);

#endif
