/* model_files: the tensors of a model under kiln's names.  They are in one file of any format that
 * io/tensor_file opens, or in a directory: in model.safetensors, in shards that model.safetensors.index.json
 * lists, in slices that several ranks wrote into a checkpoint, or in the files of other programs.
 *
 * The rule: an index and its shards agree: each tensor is in the one shard that the index names for it.
 * Readers in io check whatever a file claims before anything is read. */
#ifndef KILN_MODEL_MODEL_FILES_H
#define KILN_MODEL_MODEL_FILES_H

#include "io/tensor_file.h"
#include "io/zero_folder.h"
#include "model/megatron_files.h"
#include "model/model_place.h"
#include "model/names_hf.h"

struct model_tensor {
    struct names_hf as;          /* what it stands for */
    struct stored_tensor stored; /* what the file has, transposed if necessary: see model_files_in_one */
    const struct model_family_join *join; /* of which it is one part; NULL: it is the whole tensor */
    int part;
};

/* A tensor in pieces, copied into one. */
struct model_files_copy {
    const struct stored_piece *of;
    unsigned char *values;
};

struct model_files {
    const struct model_family *family; /* whose names they are */
    struct tensor_file *files;         /* [n_files] */
    int n_files;
    /* [n_joined] tensors laid over their slices; NULL: the files have them whole */
    struct stored_tensor *joined;
    int n_joined;
    void **lists; /* [n_lists] of the runs of those tensors */
    int n_lists;
    /* owned; the weights in fp32 of DeepSpeed's ranks, which stand for those of the only file; NULL: there
     * are none */
    struct zero_folder *zero;
    struct megatron_files *megatron; /* owned; those of Megatron-DeepSpeed; NULL: there are none */
    struct model_files_copy *copy;   /* owned; the last that was needed */
    int64_t n_layers;                /* as it was opened with */
    int64_t n_heads;                 /* of attention, where a file says it; 0: none does */
    double norm_eps;                 /* of the layers' norms, likewise */
    struct model_tensor *tensors;    /* [n_tensors] sorted by name, tied copies last */
    int n_tensors;
    int n_zero;   /* of the weights of DeepSpeed's ranks, which come first until the rest is there */
    int n_beside; /* tensors that scripts saved with the model's, such as an optimizer's */
};

/* STATUS_DATA if the directory has in the place of weights what kiln does not read, such as an adapter. */
struct status model_files_name_other(const char *directory);

/* Of a model of n_layers layers; 0: as many as the files have.  STATUS_DATA names the file and the tensor
 * that is missing, damaged, in another shard than listed, or there twice. */
struct status model_files_open(struct model_files *m, const struct model_place *place,
                               const struct model_family *family, int64_t n_layers);

/* Safe on a zeroed struct. */
void model_files_close(struct model_files *m);

/* The part that a tensor of a join stands for, of n_heads heads, as a view; by_head its dims are [N, D] or
 * [N, D, H].  False if the rows do not divide so. */
bool model_tensor_part(struct stored_tensor *part, const struct model_tensor *t, int64_t n_heads);

/* Another tensor of the shape that the files of `t` have, such as its moment, seen as `t` is. */
struct model_tensor model_tensor_like(const struct model_tensor *t, const struct stored_tensor *other);

/* Before a view of a tensor's part, or of its transpose, is read: if the tensor lies in pieces, points the
 * view into a copy of it in one, which is valid until that of another tensor is made.  STATUS_MEMORY. */
struct status model_files_in_one(const struct model_files *m, const struct model_tensor *t,
                                 struct stored_tensor *view);

/* After reading: tensor_file_check of all that is mapped. */
struct status model_files_check(const struct model_files *m, const char *path);

/* Frees that copy. */
void model_files_forget(const struct model_files *m);

/* The tensor of a name, or the tied copy of it; NULL if there is none. */
const struct model_tensor *model_files_find(const struct model_files *m, const char *name, bool tied);

#endif
