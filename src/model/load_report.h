/* load_report: counts which tensors of a model's files were read, and which parameters of the model they
 * filled, and lists the parameters that are new. */
#ifndef KILN_MODEL_LOAD_REPORT_H
#define KILN_MODEL_LOAD_REPORT_H

#include "model/names_hf.h"

enum load_outcome {
    LOAD_LOADED,  /* parameters that got their values from the files */
    LOAD_NEW,     /* parameters that the files lack: they keep their initial values */
    LOAD_IGNORED, /* tensors that the model has no place for */
    LOAD_N_OUTCOMES,
};

enum { LOAD_MOST_LISTED = 16 }; /* more than the tensors of all heads of a model */

/* A parameter that the files lack, and what it holds instead. */
struct load_new {
    struct param param;
    bool is_drawn; /* values are the initial ones; else zeros, since nobody reads it */
};

struct load_report {
    const struct model_family *family;
    enum model_task task;
    int n[LOAD_N_OUTCOMES][NAMES_N_PARTS];   /* tensors */
    struct load_new added[LOAD_MOST_LISTED]; /* the first new parameters */
    int n_added;
    int64_t n_rows, n_words;      /* rows of the word embeddings, and pieces of the vocabulary */
    int n_tied;                   /* tensors that equal another one, as they must */
    char other[PARAM_NAME_BYTES]; /* the first ignored tensor of NAMES_OTHER */
};

/* Adds a parameter that the files lack; `values` are those that it keeps. */
void load_report_add_new(struct load_report *r, const struct param *p, tensor values);

/* Whether nothing is new and nothing unusual was ignored: then no table is printed unless asked for. */
bool load_report_is_plain(const struct load_report *r);

/* One table with a line for each part and outcome, and the reason; `path` names the files.  Each parameter
 * that is new has a line with its shape and its values. */
void load_report_print(const struct load_report *r, const char *path);

#endif
