/* class_examples: texts or pairs of texts, and their labels, from a table (data/table_file.h).
 *
 * The rule: several labels of a text are a JSON array, or in a cell of text separated by a character. */
#ifndef KILN_DATA_CLASS_EXAMPLES_H
#define KILN_DATA_CLASS_EXAMPLES_H

#include "data/encoded_texts.h"
#include "data/label_kind.h"
#include "data/table_file.h"

/* Columns by name, in upper or lower case, or by number from 1.  NULL: those with a usual name or, of two
 * columns without names, the one with fewer different cells for the labels, and the other. */
struct class_columns {
    const char *text, *pair, *label;
    char separator;       /* separates the labels in a cell */
    const char *encoding; /* corpus/text_file.h's; NULL: UTF-8 */
    bool no_header;       /* the first line of a table is a row */
};

struct class_examples {
    struct table_file table;
    int64_t text, pair, label, id; /* columns; -1: there is none */
    const char *label_name;        /* name that was asked for; NULL: a usual one */
    char separator;
    struct encoded_texts texts; /* filled by class_examples_encode */
    struct buf scores;          /* float: of each pair, by class_examples_encode_pairs */
};

/* Reads the table and finds its columns; `path` is borrowed.  If one is missing, STATUS_DATA names those
 * that exist. */
struct status class_examples_open(struct class_examples *e, const char *path, const struct class_columns *c);
void class_examples_fini(struct class_examples *e);

/* Appends which columns were chosen, and the first example. */
void class_examples_describe(struct buf *out, const struct class_examples *e);

/* The kind of problem that the labels suggest: lists are multi-label, numbers with a decimal point are
 * regression, everything else is single-label. */
enum label_problem class_examples_problem(const struct class_examples *e);

/* Appends the names of all labels to `names`, which is zeroed, and sorts them.  STATUS_DATA: there is no
 * column of labels; a row has no label, or an empty one. */
struct status class_examples_names(const struct class_examples *e, enum label_problem problem,
                                   struct label_names *names);

/* Fills e->texts, with labels if they were read.  STATUS_DATA: as above, or a label is not of the kind. */
struct status class_examples_encode(struct class_examples *e, struct tokenizer_scratch *scratch,
                                    int64_t max_seq_length, const struct label_kind *kind);

/* Fills e->texts with both texts of each pair as sequences of their own, and e->scores with the numbers of
 * the column of labels, if there is one.  STATUS_DATA: there is no second text, or a score is no number. */
struct status class_examples_encode_pairs(struct class_examples *e, struct tokenizer_scratch *scratch,
                                          int64_t max_seq_length);

#endif
