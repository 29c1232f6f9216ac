/* label_match: which of a model's labels a label of a file is.
 *
 * The rule: by name.  A model whose labels are LABEL_0, LABEL_1, ..., as `transformers` calls them where
 * nobody named them, takes the label i of a file as LABEL_i. */
#ifndef KILN_DATA_LABEL_MATCH_H
#define KILN_DATA_LABEL_MATCH_H

#include "nn/label_names.h"

struct label_match {
    const struct label_names *model; /* borrowed */
    struct label_names file;         /* sorted; owned */
    bool by_number;
};

/* Takes the sorted names of a file, `file`, which is zeroed, and logs a match by number; `path` names the
 * file there. */
void label_match_init(struct label_match *m, const struct label_names *model, struct label_names *file,
                      const char *path);
void label_match_fini(struct label_match *m);

/* The model's label; -1: it has none of this name. */
int64_t label_match_find(const struct label_match *m, const char *name, size_t n);

/* STATUS_DATA: "PATH line LINE: the model has no label NAME", and both sets. */
struct status label_match_refuse(const struct label_match *m, const char *path, int64_t line,
                                 const char *name);

/* Appends the names, with commas between; of many, the first. */
void label_match_list(struct buf *out, const struct label_names *names);

#endif
