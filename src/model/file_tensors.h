/* file_tensors: the tensors of a model as the files of a form hold them, made of kiln's parameters: most are
 * a parameter, some its transpose, some several of them (model_family_layout). */
#ifndef KILN_MODEL_FILE_TENSORS_H
#define KILN_MODEL_FILE_TENSORS_H

#include "model/model_family.h"
#include "model/weight_source.h"

struct file_tensor {
    char name[PARAM_NAME_BYTES];
    tensor shape;                                     /* without memory */
    const struct param *parts[MODEL_JOIN_MOST_PARTS]; /* the parameter, or those of a join */
    int n_parts;
    bool transposed, by_head, pairs_halves;
};

struct file_tensors {
    struct file_tensor *tensors; /* [n], in the order of the parameter table, which must outlive them */
    int n;
    struct model_heads heads;
    void *room; /* owned; the last tensor that was made of parameters */
};

/* Hugging Face's layout of a family. */
struct model_family_layout file_tensors_hugging_face(const struct model_family *family);

/* Lists the tensors of a model with these heads; the layout is read here only.  STATUS_MEMORY. */
struct status file_tensors_init(struct file_tensors *f, struct model_family_layout layout,
                                struct model_heads heads, const struct param_table *params, enum dtype dtype);

/* Safe on a zeroed struct. */
void file_tensors_fini(struct file_tensors *f);

/* The values of tensor i, valid until the next call: those of a parameter, or made of them, so that no more
 * than that tensor and one parameter of the source are in memory. */
struct status file_tensors_read(struct file_tensors *f, int i, const struct weight_source *from,
                                tensor *values);

#endif
