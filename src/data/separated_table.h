/* separated_table: the rows of CSV and TSV.
 *
 * CSV is that of RFC 4180: fields in quotes may hold separators, line ends and doubled quotes.  The separator
 * is the comma, or the semicolon, tab or bar that splits the first rows alike; Excel's line "sep=;" names
 * it.  TSV has no quotes: fields are separated by tabs.  Lines end in LF, CR LF or, where the first one does,
 * in CR.
 *
 * The rule: the first line has the names of the columns, unless the reader says that it is a row or, where
 * none of the names that the reader knows is in it, a column shows that: its first cell occurs again, or is a
 * number like all others, which no name does. Columns without names are called 1, 2 and so on. */
#ifndef KILN_DATA_SEPARATED_TABLE_H
#define KILN_DATA_SEPARATED_TABLE_H

#include "corpus/text_file.h"
#include "data/table_file.h"

/* Reads all rows of the file into an empty table.  STATUS_DATA names the line. */
struct status separated_table_read(struct table_file *t, const struct text_file *f, bool is_csv,
                                   const struct table_options *o);

#endif
