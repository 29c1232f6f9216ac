/* label_names: the labels of a classifier: how many, of which kind, and their names in order, "problem_type",
 * "id2label" and "label2id" of Hugging Face's config.json. */
#ifndef KILN_NN_LABEL_NAMES_H
#define KILN_NN_LABEL_NAMES_H

#include "core/buf.h"
#include "core/json.h"

struct label_names {
    struct buf text;   /* the names, each ended by a NUL */
    struct buf starts; /* size_t: where each begins */
    struct buf order;  /* int64_t: the labels by name, for finding */
    int64_t n;
};

/* Safe on a zeroed struct, which is a list without names. */
void label_names_fini(struct label_names *l);

/* Frees the names and the struct itself, which is on the heap, from calloc; safe on NULL. */
void label_names_destroy(struct label_names *l);

/* Appends a name; label_names_find finds it after label_names_index.  STATUS_MEMORY. */
struct status label_names_add(struct label_names *l, const char *name, size_t n);
struct status label_names_index(struct label_names *l);

/* Appends a name to a list in which most are repeated; it sorts from time to time to drop duplicates.  Call
 * label_names_sort at the end. */
struct status label_names_gather(struct label_names *l, const char *name, size_t n);

/* Sorts the names, removes duplicates and indexes them: by value if all are whole numbers, else by their
 * bytes. */
struct status label_names_sort(struct label_names *l);

/* The name of label i; borrowed until the next change. */
const char *label_names_get(const struct label_names *l, int64_t i);

/* The first label of this name; -1: there is none. */
int64_t label_names_find(const struct label_names *l, const char *name, size_t n);

/* Reads "id2label" of a configuration with num_labels labels; without that key "LABEL_0" and so on.
 * Indexed. */
struct status label_names_parse(struct label_names *l, const json_t *config, int64_t num_labels,
                                const char *source);

/* The kind of a classifier's labels: Hugging Face's "problem_type". */
enum label_problem {
    PROBLEM_SINGLE_LABEL, /* one of C classes */
    PROBLEM_MULTI_LABEL,  /* any of them */
    PROBLEM_REGRESSION,   /* C numbers */
};

/* "single_label_classification" and so on; and the kind of such a name, false if it is none. */
const char *label_problem_name(enum label_problem p);
bool label_problem_find(enum label_problem *p, const char *name);

/* The scores of a model with a classifier. */
struct model_labels {
    int64_t n; /* C */
    enum label_problem problem;
    const struct label_names *names; /* borrowed; NULL: no classifier */
};

/* Sets "id2label" and "label2id"; false if memory runs out. */
bool label_names_to_json(const struct label_names *l, json_t *config);

/* Reads the number and kind of labels, 2 of one class where a file says nothing.  Without "problem_type" one
 * label means regression, and several mean classes, as in Hugging Face's models.  STATUS_DATA. */
struct status model_labels_parse(struct model_labels *l, const json_t *config, const char *source);

/* Sets the names and "problem_type", where there are names; false if memory runs out. */
bool model_labels_to_json(const struct model_labels *l, json_t *config);

#endif
