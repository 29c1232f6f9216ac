/* megatron_files: the weights that Megatron-DeepSpeed leaves in a folder, whole, under the names of
 * megatron_names.h: those of its layer files, layer_NN-model_TT-model_states.pt, joined over the ranks of
 * tensor parallelism, or those of a universal checkpoint, zero/NAME/fp32.pt.
 *
 * The rule: every file of every layer and rank is there, and each tensor once.  Tensors that ranks have
 * copies of, which drift apart in training, are averaged, and the largest difference is said. */
#ifndef KILN_MODEL_MEGATRON_FILES_H
#define KILN_MODEL_MEGATRON_FILES_H

#include "io/torch_file.h"

#define MEGATRON_FIRST_FILE "layer_01-model_00-model_states.pt"
#define MEGATRON_UNIVERSAL  "zero" /* the folder of a universal checkpoint */

struct megatron_files {
    struct torch_file *files; /* [n_files] */
    int n_files;
    struct stored_tensor *tensors; /* [n] */
    int n;
    void **joined; /* [n_joined] runs of tensors that ranks share, and values of those that were averaged */
    int n_joined;
    struct bump memory; /* holds the names */
};

/* Opens the layer files of a folder, of a model of n_layers layers, 0: as many as there are.  STATUS_DATA
 * names the file that is missing, or the tensor that a rank lacks or has otherwise than the others. */
struct status megatron_files_open_layers(struct megatron_files *m, const char *directory, int64_t n_layers);

/* Opens a universal checkpoint, DIRECTORY/zero.  Moments beside the weights must have their shape. */
struct status megatron_files_open_universal(struct megatron_files *m, const char *directory,
                                            int64_t n_layers);

/* Safe on a zeroed struct and after a failed open. */
void megatron_files_close(struct megatron_files *m);

/* After reading: file_map_check of all that is mapped. */
struct status megatron_files_check(const struct megatron_files *m, const char *directory);

#endif
