/* table_file: rows of cells with named columns, as data/table_open.h reads them from a file. */
#ifndef KILN_DATA_TABLE_FILE_H
#define KILN_DATA_TABLE_FILE_H

#include "core/buf.h"

enum { TABLE_MOST_COLUMNS = 1024 };

struct table_cell {
    const char *text; /* items of the cell, each ended by a NUL; borrowed from the table */
    size_t n;         /* bytes of the first item */
    int64_t n_items;  /* 1 except in a list; 0: an empty list, or no cell */
    bool is_there, is_list;
    bool has_null;   /* an item is null, and reads as "" */
    bool has_nested; /* an item is an object or an array, or the cell is an object */
};

struct table_file {
    const char *path; /* borrowed */
    struct buf names; /* names of the columns, each ended by a NUL */
    struct buf text;  /* text of all cells */
    struct buf cells; /* struct stored_cell, row after row */
    struct buf rows;  /* struct stored_row */
    int64_t n_columns, n_rows;
    bool has_names; /* the file names its columns */
};

struct table_options {
    const char *encoding; /* corpus/text_file.h's; NULL: UTF-8 */
    const char *const
        *names;     /* names that show a line of names, up to a NULL; NULL: the first line has names */
    bool no_header; /* the first line is a row */
};

/* Frees the names, cells and rows.  Safe on a zeroed struct. */
void table_file_close(struct table_file *t);

/* The column of this name, -1: there is none. */
int64_t table_file_column(const struct table_file *t, const char *name);

/* The column of exactly this name or, if there is none, of this name in upper or lower case; -1: there is
 * none. */
int64_t table_file_find(const struct table_file *t, const char *name);

/* The name of a column, borrowed. */
const char *table_file_name(const struct table_file *t, int64_t column);

/* The cell of a row; column -1 has none. */
struct table_cell table_file_cell(const struct table_file *t, int64_t row, int64_t column);

/* A cell that is one text, of any length.  STATUS_DATA names the line: it is not there, null, a list or an
 * object. */
struct status table_file_text(const struct table_file *t, int64_t row, int64_t column,
                              struct table_cell *cell);

/* The line of the file on which the row begins, from 1. */
int64_t table_file_line(const struct table_file *t, int64_t row);

/* Whether a text is this name, in upper or lower case, with or without blanks around it. */
bool table_file_is_called(const char *text, const char *name);

/* ---- for the readers of formats ---- */

struct stored_cell {
    size_t start, n; /* in table_file.text */
    int64_t n_items;
    bool is_there, is_list, has_null, has_nested;
};

struct stored_row {
    int64_t first, n; /* range of the row's cells: one for each column known at that time */
    int64_t line;
};

/* The rows, [n_rows]; borrowed until the next is added. */
const struct stored_row *table_file_rows(const struct table_file *t);

/* Appends a row, whose cells were appended, and says whether memory ran out anywhere.  STATUS_MEMORY. */
struct status table_file_add(struct table_file *t, const struct stored_row *row);

/* Appends a column; `line` is where its name was met.  STATUS_DATA: there is one of this name, or there are
 * too many. */
struct status table_file_add_column(struct table_file *t, const char *name, int64_t line);

/* Makes the failure STATUS_DATA, "PATH line LINE: WHAT". */
struct status table_file_refuse(const struct table_file *t, int64_t line, const char *what);

#endif
