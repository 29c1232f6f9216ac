/* conll_file: sentences as lines of columns, one word a line: the tables of CoNLL-2003 and their kin, CoNLL-U
 * and CoNLL-U Plus.
 *
 * The rule: the file itself says what it is, and every row has the same columns or is refused by line.
 * Columns are separated by tabs or, in a file whose first row has none, by spaces.  An empty line ends a
 * sentence, and so does -DOCSTART-.  The word is in the first column and the label in the last.  In a file
 * whose rows begin with their number in the sentence, the word is in the second; with ten columns that is
 * CoNLL-U, whose label is UPOS; ranges (1-2) and empty nodes (3.1) are no words there. A line that begins
 * with # and stands before a sentence is a comment, unless it is a row like the others. Source:
 * https://universaldependencies.org/format.html; Tjong Kim Sang and De Meulder 2003. */
#ifndef KILN_DATA_CONLL_FILE_H
#define KILN_DATA_CONLL_FILE_H

#include "corpus/text_file.h"
#include "nn/label_names.h"

enum { CONLL_MOST_COLUMNS = 64 };

/* Columns by their names in CoNLL-U, or by their numbers from 1; NULL: the usual ones. */
struct conll_columns {
    const char *text, *label;
    const char *encoding; /* corpus/text_file.h's; NULL: UTF-8 */
};

struct conll_span {
    const char *text; /* [n], borrowed from the file */
    size_t n;
};

/* A row; a label is absent where n is 0. */
struct conll_row {
    struct conll_span word, label;
    int64_t line;
    bool ends_sentence; /* no row, but what ends one */
};

struct conll_file {
    struct text_file file;
    struct label_names names;   /* names of the columns, where they have some */
    struct label_names labels;  /* labels of rows that do not begin with # */
    int64_t first_line;         /* line of the first row; 0: there is none */
    int n_columns, word, label; /* columns from 0; label -1: there is none */
    bool has_tabs, is_numbered; /* rows begin with their numbers */
    bool underscore_is_absent;  /* "_" in the column of labels is no label */
    bool inside;                /* a row of the sentence was read */
};

/* Reads the file and finds its columns.  STATUS_DATA: it is not text, a row is not like the first or is a
 * sentence; STATUS_USAGE: there is no such column. */
struct status conll_file_open(struct conll_file *f, const char *path, const struct conll_columns *c);
void conll_file_close(struct conll_file *f);

/* The next row or end of a sentence; false after the last. */
bool conll_file_next(struct conll_file *f, struct conll_row *row);

/* Appends where words and labels are: "words in column 2 (FORM), labels in column 4 (UPOS)". */
void conll_file_describe(struct buf *out, const struct conll_file *f);

#endif
