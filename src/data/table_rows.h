/* table_rows: how a table keeps its rows, for the readers of its forms (data/table_file.c,
 * data/separated_table.c) and nobody else. */
#ifndef KILN_DATA_TABLE_ROWS_H
#define KILN_DATA_TABLE_ROWS_H

#include "data/table_file.h"

struct stored_cell {
    size_t start, n; /* in table_file.text */
    int64_t n_items;
    bool is_there, is_list, has_null, has_nested;
};

struct stored_row {
    int64_t first, n; /* its range of cells: one for each column known at that time */
    int64_t line;
};

/* The rows, [n_rows]; borrowed until the next is added. */
const struct stored_row *table_rows_view(const struct table_file *t);

/* Appends a row, whose cells were appended, and says whether memory ran out anywhere.  STATUS_MEMORY. */
struct status table_rows_add(struct table_file *t, const struct stored_row *row);

/* Appends a column; `line` is where its name was met.  STATUS_DATA: there is one of this name, or there are
 * too many. */
struct status table_rows_add_column(struct table_file *t, const char *name, int64_t line);

/* Whether a text is this name, where upper and lower case are alike and blanks around the text do not
 * count. */
bool table_rows_is_called(const char *text, const char *name);

/* STATUS_DATA: "PATH line LINE: WHAT". */
struct status table_rows_refuse(const struct table_file *t, int64_t line, const char *what);

#endif
