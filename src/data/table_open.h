/* table_open: reads a table (data/table_file.h) from CSV, TSV and JSON lines.
 *
 * Each line of JSON lines is an object whose keys are the columns; an array becomes a list of items, and
 * numbers and booleans become their JSON text.  null is a cell that is not there, as an absent key is; an
 * object is no text.
 *
 * CSV is that of RFC 4180: fields in quotes may hold separators, line ends and doubled quotes.  The separator
 * is the comma, or the semicolon, tab or bar that splits the first rows into the same number of fields;
 * Excel's line "sep=;" names it.  TSV has no quotes: fields are separated by tabs.  Lines end in LF, CR LF
 * or, where the first one does, in CR.
 *
 * The rule: the first line has the names of the columns, unless the reader says that it is a row or, where
 * none of the names that the reader knows is in it, a column shows that: its first cell occurs again, or is
 * a number like all others, which no name does. Columns without names are called 1, 2 and so on. */
#ifndef KILN_DATA_TABLE_OPEN_H
#define KILN_DATA_TABLE_OPEN_H

#include "data/table_file.h"

/* Reads the file, whose name ends in .csv, .tsv, .json, .jsonl or .ndjson (STATUS_USAGE).  STATUS_DATA
 * names the line.  The caller closes it after success. */
struct status table_open(struct table_file *t, const char *path, const struct table_options *o);

#endif
