/* file_tensors: the tensors of a model as the files of a form hold them, made of kiln's parameters: most are
 * a parameter, some its transpose, some three of them (model_family_layout). */
#ifndef KILN_MODEL_FILE_TENSORS_H
#define KILN_MODEL_FILE_TENSORS_H

#include "model/model_family.h"

struct file_tensor {
    char name[PARAM_NAME_BYTES];
    tensor shape;                 /* without memory */
    const struct param *parts[3]; /* the parameter, or those of query, key and value */
    int n_parts;
    bool transposed, by_head;
};

struct file_tensors {
    struct file_tensor *tensors; /* [n], in the order of the parameter table, which must outlive them */
    int n;
    int64_t n_heads;
    size_t most_bytes; /* of a tensor that is no parameter as it stands */
};

/* In Hugging Face's layout. */
struct model_family_layout file_tensors_hugging_face(const struct model_family *family);

/* Of a model of n_heads heads; the layout is read here only.  STATUS_MEMORY. */
struct status file_tensors_init(struct file_tensors *f, struct model_family_layout layout, int64_t n_heads,
                                const struct param_table *params, enum dtype dtype);

/* The number of the tensor of a name; -1: there is none. */
int file_tensors_find(const struct file_tensors *f, const char *name);

/* Safe on a zeroed struct. */
void file_tensors_fini(struct file_tensors *f);

/* The values of tensor i: a view of `flat`, or made in `room`, which has most_bytes. */
tensor file_tensors_values(const struct file_tensors *f, int i, tensor flat, void *room);

#endif
