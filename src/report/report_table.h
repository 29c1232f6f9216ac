/* report_table: a table of a report as HTML: any title, columns and rows, as an event of the log has them.
 *
 * The rule: what is in a table is text of others, which is escaped.  A table without the form below is not
 * drawn. */
#ifndef KILN_REPORT_REPORT_TABLE_H
#define KILN_REPORT_REPORT_TABLE_H

#include "core/buf.h"
#include "core/json.h"

/* Appends {"title": text, "note": text, "columns": [text], "rows": [[text or number]], "shaded": bool}, where
 * "note" and "shaded" may be missing.  Integers are shown whole; in a shaded table, an integer has the more
 * colour the larger its part of its row's sum is. */
void report_table_append(struct buf *b, const json_t *table);

#endif
