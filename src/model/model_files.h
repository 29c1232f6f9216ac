/* model_files: the tensors of a model directory, in model.safetensors, in shards that
 * model.safetensors.index.json lists, or in slices that several ranks wrote into a checkpoint, under kiln's names.
 *
 * The rule: an index and its shards say the same: every tensor that one names is in the other, in the same
 * file, and nowhere else.  Whatever a file claims was checked by io/safetensors.h before anything is read. */
#ifndef KILN_MODEL_MODEL_FILES_H
#define KILN_MODEL_MODEL_FILES_H

#include "io/safetensors.h"
#include "model/names_hf.h"

struct model_tensor {
    struct names_hf as;                    /* what it stands for */
    const struct safetensors_entry *entry; /* what the file has */
};

struct model_files {
    const struct model_family *family; /* whose names they are */
    struct safetensors *files;         /* [n_files] */
    int n_files;
    struct safetensors_entry
        *joined; /* [n_joined] the tensors of slices, put together; NULL: the files have them whole */
    int n_joined;
    struct model_tensor *tensors; /* [n_tensors], tied ones last, each kind in the order of names */
    int n_tensors;
};

/* STATUS_DATA names the file and the tensor that are wrong: missing, damaged, listed elsewhere, or there
 * twice. */
struct status model_files_open(struct model_files *m, const char *directory,
                               const struct model_family *family);

/* Safe on a zeroed struct. */
void model_files_close(struct model_files *m);

/* The tensor of a name, or the tied copy of it; NULL if there is none. */
const struct model_tensor *model_files_find(const struct model_files *m, const char *name, bool tied);

#endif
