/* table_file: rows with named columns, from CSV, TSV and JSON lines.
 *
 * CSV and TSV: data/separated_table.h.  Each line of JSON lines is an object whose keys are the columns; an
 * array becomes a list of items, and numbers and booleans become their JSON text.  null is a cell that is not
 * there, as an absent key is; an object is no text. */
#ifndef KILN_DATA_TABLE_FILE_H
#define KILN_DATA_TABLE_FILE_H

#include "core/buf.h"

enum { TABLE_MOST_COLUMNS = 1024 };

struct table_cell {
    const char *text; /* its items, each ended by a NUL; borrowed from the table */
    size_t n;         /* bytes of the first item */
    int64_t n_items;  /* 1 except in a list; 0: an empty list, or no cell */
    bool is_there, is_list;
    bool has_null;   /* an item is null, and reads as "" */
    bool has_nested; /* an item is an object or an array, or the cell is an object */
};

struct table_file {
    const char *path; /* borrowed */
    struct buf names; /* of the columns, each ended by a NUL */
    struct buf text;  /* of all cells */
    struct buf cells; /* struct stored_cell, row after row */
    struct buf rows;  /* struct stored_row */
    int64_t n_columns, n_rows;
    bool has_names; /* the file names its columns */
};

struct table_options {
    const char *encoding; /* corpus/text_file.h's; NULL: UTF-8 */
    const char *const
        *names;     /* one of which a line of names has, up to a NULL; NULL: the first line has names */
    bool no_header; /* the first line is a row */
};

/* Reads the file, whose name ends in .csv, .tsv, .json, .jsonl or .ndjson (STATUS_USAGE).  STATUS_DATA names
 * the line. */
struct status table_file_open(struct table_file *t, const char *path, const struct table_options *o);
void table_file_close(struct table_file *t);

/* The column of this name, -1: there is none. */
int64_t table_file_column(const struct table_file *t, const char *name);

/* The same where upper and lower case are alike, if none has this very name. */
int64_t table_file_find(const struct table_file *t, const char *name);

/* The name of a column, borrowed. */
const char *table_file_name(const struct table_file *t, int64_t column);

/* Column -1 has no cells. */
struct table_cell table_file_cell(const struct table_file *t, int64_t row, int64_t column);

/* A cell that is one text, of any length.  STATUS_DATA names the line: it is not there, null, a list or an
 * object. */
struct status table_file_text(const struct table_file *t, int64_t row, int64_t column,
                              struct table_cell *cell);

/* The line of the file on which the row begins, from 1. */
int64_t table_file_line(const struct table_file *t, int64_t row);

#endif
