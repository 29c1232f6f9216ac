/* megatron_files: the weights that Megatron-DeepSpeed leaves in a folder, as complete tensors under the names
 * of megatron_names.h: those of its layer files, layer_NN-model_TT-model_states.pt, joined over the ranks of
 * tensor parallelism; those of its optimizer, in fp32 and with their moments, from the
 * bf16_zero_pp_rank_D_mp_rank_KK files of all ranks; or those of a universal checkpoint, zero/NAME/fp32.pt,
 * with moments next to them.
 *
 * The rule: every file of every layer and rank is there, and each tensor once.  Tensors that ranks have
 * copies of, which drift apart in training, are averaged, and the largest difference is said. */
#ifndef KILN_MODEL_MEGATRON_FILES_H
#define KILN_MODEL_MEGATRON_FILES_H

#include "io/torch_file.h"
#include "io/zero_folder.h"

#define MEGATRON_FIRST_FILE "layer_01-model_00-model_states.pt"
#define MEGATRON_UNIVERSAL  "zero" /* the folder of a universal checkpoint */

#define MEGATRON_PADDING "vocab_divisibility_padding_tensor" /* the row that new rows of words repeat */

struct megatron_files {
    char directory[FILE_PATH_BYTES];
    int64_t n_layers;
    struct torch_file *files; /* [n_files] */
    int n_files;
    /* [n] the weights, and the moments of each where files of optimizers have them; NULL: there are none, or
     * they are in files of a universal checkpoint */
    struct stored_tensor *tensors[PARAM_N_KEPT];
    int n;
    /* [n_joined] rectangles of tensors that ranks share, and values of those that were averaged */
    void **joined;
    int n_joined;
    struct bump memory;        /* holds the names */
    struct zero_folder *ranks; /* [n_ranks] files of the optimizer, those of a rank of a stage each */
    int n_ranks;
    bool has_moments, is_universal;
    int64_t n_updates;                /* updates that the optimizer counted; -1: it does not say */
    const struct pickle_node *states; /* content of mp_rank_00_model_states.pt; NULL: there is none */
};

/* A moment of a tensor, or its weight, open. */
struct megatron_moment {
    struct torch_file file;
    struct stored_tensor tensor;
    const struct stored_tensor *padding; /* MEGATRON_PADDING of it; NULL: there is none */
};

/* Opens the layer files of a folder, of a model of n_layers layers, 0: the number that is there.  STATUS_DATA
 * names the file that is missing, or the tensor that a rank lacks or has otherwise than the others. */
struct status megatron_files_open_layers(struct megatron_files *m, const char *directory, int64_t n_layers);

/* Opens the states of the optimizers of all ranks, which keep the weights in fp32; n_layers as above.
 * STATUS_DATA names the file of a rank that is missing, or contradicts the others. */
struct status megatron_files_open_states(struct megatron_files *m, const char *directory, int64_t n_layers);

/* An attribute of the "args" of a run, from its states, which may be NULL; 0: they do not have it. */
int64_t megatron_files_argument(const struct pickle_node *states, const char *name);
double megatron_files_real(const struct pickle_node *states, const char *name);

/* Whether a folder has the states of the optimizers of a pipeline. */
bool megatron_files_has_states(const char *directory);

/* Opens a universal checkpoint, DIRECTORY/zero.  Moments next to the weights must have their shape. */
struct status megatron_files_open_universal(struct megatron_files *m, const char *directory,
                                            int64_t n_layers);

/* The number of the tensor of a name; -1: there is none. */
int megatron_files_find(const struct megatron_files *m, const char *name);

/* Opens a moment of tensor `i`, which has the shape of the tensor, or its weight.  megatron_moment_close is
 * safe on a zeroed one. */
struct status megatron_files_moment(const struct megatron_files *m, int i, enum param_kept kept,
                                    struct megatron_moment *moment);
void megatron_moment_close(struct megatron_moment *moment);

/* Safe on a zeroed struct; after a failed open too it is the caller who closes. */
void megatron_files_close(struct megatron_files *m);

/* After reading: file_map_check of all that is mapped. */
struct status megatron_files_check(const struct megatron_files *m, const char *directory);

#endif
