/* model_files: the tensors of a model under kiln's names.  They are in one file of any format that
 * io/tensor_file opens, or in a directory: in model.safetensors, in shards that model.safetensors.index.json
 * lists, in slices that several ranks wrote into a checkpoint, or in the files of other programs.
 *
 * The rule: an index and its shards agree: each tensor is in the one shard that the index names for it.
 * Readers in io check whatever a file claims before anything is read. */
#ifndef KILN_MODEL_MODEL_FILES_H
#define KILN_MODEL_MODEL_FILES_H

#include "io/tensor_file.h"
#include "io/tensor_set.h"
#include "io/zero_folder.h"
#include "model/megatron_files.h"
#include "model/model_place.h"
#include "model/names_hf.h"

struct model_tensor {
    struct names_hf as;                   /* parameter that it stands for */
    struct stored_tensor stored;          /* tensor of the file, transposed if necessary */
    const struct model_family_join *join; /* join of which it is one part; NULL: it is the complete tensor */
    int part;
    /* tensor whose last row is repeated in rows after those of `stored`; NULL: no such rows are there */
    const struct stored_tensor *fill;
};

struct model_files {
    const struct model_family *family; /* family whose names they are */
    struct tensor_file *files;         /* [n_files] */
    int n_files;
    /* tensors laid over their slices; empty: the files have complete tensors */
    struct tensor_set joined;
    struct checkpoint_manifest manifest; /* list of those files */
    /* owned; the weights in fp32 of DeepSpeed's ranks, which stand for those of the only file; NULL: there
     * are none */
    struct zero_folder *zero;
    struct megatron_files *megatron; /* owned; those of Megatron-DeepSpeed; NULL: there are none */
    int64_t n_layers;                /* number with which it was opened */
    int64_t n_heads;                 /* heads of attention, where a file says it; 0: none does */
    double norm_eps;                 /* epsilon of the layers' norms, likewise */
    struct model_tensor *tensors;    /* [n_tensors] sorted by name, tied copies last */
    int n_tensors;
    /* weights of DeepSpeed's ranks, which come first until the other tensors are listed */
    int n_zero;
    int n_beside; /* tensors that scripts saved with the model's, such as an optimizer's */
};

/* STATUS_DATA if the directory has, instead of weights, files that kiln does not read, such as an adapter. */
struct status model_files_name_other(const char *directory);

/* Opens the files of a model of n_layers layers; 0: the number that the files have.  STATUS_DATA names the
 * file and the tensor that is missing, damaged, in another shard than listed, or there twice. */
struct status model_files_open(struct model_files *m, const struct model_place *place,
                               const struct model_family *family, int64_t n_layers);

/* Safe on a zeroed struct. */
void model_files_close(struct model_files *m);

/* The values of the parameter that `t` stands for, of a model with these heads: the tensor, or its rows of a
 * part of a join. `list` is the caller's to free after the view.  STATUS_DATA: the rows do not divide so, and
 * the view is the complete tensor; STATUS_MEMORY. */
struct status model_tensor_view(struct stored_tensor *view, void **list, const struct model_tensor *t,
                                struct model_heads heads);

/* Another tensor of the shape that the files of `t` have, such as its moment, seen as `t` is. */
struct model_tensor model_tensor_like(const struct model_tensor *t, const struct stored_tensor *other);

/* After reading: tensor_file_check of all that is mapped. */
struct status model_files_check(const struct model_files *m, const char *path);

/* The tensor of a name, or the tied copy of it; NULL if there is none. */
const struct model_tensor *model_files_find(const struct model_files *m, const char *name, bool tied);

#endif
