/* model_files: the tensors of a model under kiln's names: of a directory, in model.safetensors, in shards that
 * model.safetensors.index.json lists, in slices that several ranks wrote into a checkpoint, or as other programs leave them;
 * or of one file of any format that io/tensor_file opens.
 *
 * The rule: an index and its shards say the same: every tensor that one names is in the other, in the same
 * file, and nowhere else.  Whatever a file claims was checked by its reader in io before anything is read. */
#ifndef KILN_MODEL_MODEL_FILES_H
#define KILN_MODEL_MODEL_FILES_H

#include "io/tensor_file.h"
#include "model/model_place.h"
#include "model/names_hf.h"

struct model_tensor {
    struct names_hf as;          /* what it stands for */
    struct stored_tensor stored; /* what the file has, transposed if need be */
};

struct model_files {
    const struct model_family *family; /* whose names they are */
    struct tensor_file *files;         /* [n_files] */
    int n_files;
    struct stored_tensor
        *joined; /* [n_joined] the tensors of slices, put together; NULL: the files have them whole */
    int n_joined;
    struct model_tensor *tensors; /* [n_tensors], tied ones last, each kind in the order of names */
    int n_tensors;
    int n_beside; /* tensors that scripts saved beside the model's: of an optimizer */
};

/* STATUS_DATA names the file and the tensor that are wrong: missing, damaged, listed elsewhere, or there
 * twice. */
struct status model_files_open(struct model_files *m, const struct model_place *place,
                               const struct model_family *family);

/* Safe on a zeroed struct. */
void model_files_close(struct model_files *m);

/* The tensor of a name, or the tied copy of it; NULL if there is none. */
const struct model_tensor *model_files_find(const struct model_files *m, const char *name, bool tied);

#endif
