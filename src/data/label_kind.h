/* label_kind: how the labels of a file become those of a batch: a class, several classes, or numbers.
 *
 * The rule: a class is found by name.  A model whose labels are LABEL_0, LABEL_1, ..., as `transformers`
 * calls them where nobody named them, takes the label i of a file as LABEL_i. */
#ifndef KILN_DATA_LABEL_KIND_H
#define KILN_DATA_LABEL_KIND_H

#include "nn/label_names.h"

struct label_kind {
    const struct model_labels *model; /* borrowed */
    bool is_labelled;                 /* the file has labels, and they are read; set by label_kind_read */
    const char *path;                 /* path of the file, borrowed, for messages */
    struct label_names file;          /* sorted; owned */
    bool by_number;
};

/* Takes the sorted names of a file, `names`, which is zeroed, into a kind that has a model and a path, and
 * logs a match by number. */
void label_kind_read(struct label_kind *k, struct label_names *names);
void label_kind_fini(struct label_kind *k);

/* Numbers that a batch holds for the labels of a text or a word.  label_kind_clear sets them as for one
 * without a label, which among several classes has none. */
int64_t label_kind_width(const struct model_labels *model);
void label_kind_clear(const struct label_kind *k, int32_t *labels);

/* The model's label of this name; -1: it has none. */
int64_t label_kind_find(const struct label_kind *k, const char *name, size_t n);

/* Puts label `at` of a text or a word, name[0..n) and a NUL or a separator, among its labels [width].
 * STATUS_DATA names the line: the model has no such label, or it is no number. */
struct status label_kind_put(const struct label_kind *k, int32_t *labels, int64_t at, const char *name,
                             size_t n, int64_t line);

/* Whether a text is a finite number, blanks around it allowed. */
bool label_kind_is_number(const char *text, double *value);

/* The problem that labels suggest which are added to a zeroed struct: numbers, one of them with a decimal
 * point, are regression; all else is one label. */
struct label_guess {
    int64_t n, n_numbers, n_points;
};
void label_guess_add(struct label_guess *g, const char *label);
enum label_problem label_guess_problem(const struct label_guess *g);

/* Appends the names, with commas between; of many, the first. */
void label_kind_list(struct buf *out, const struct label_names *names);

#endif
