/* zero_folder: what DeepSpeed leaves in a folder where ZeRO 1 or 2 shares the optimizer among ranks (its
 * runtime/zero/stage_1_and_2.py and runtime/bf16_optimizer.py): mp_rank_00_model_states.pt, written by one
 * rank, and [bf16_]zero_pp_rank_R_mp_rank_00_optim_states.pt of each.
 *
 * The parameters of a group lie one after the other in one flat buffer of fp32, in the order of
 * "param_shapes"; it is padded and cut into equal parts, one per rank, and so are the moments.  Here each
 * parameter, and each of its moments, is a stored_tensor over the mapped files, in rectangles where it
 * crosses from one rank's part to the next: nothing is copied.  It knows nothing of models.
 *
 * The rule: the files of all ranks are there, say the same number of ranks and steps, and have space for all
 * parameters. */
#ifndef KILN_IO_ZERO_FOLDER_H
#define KILN_IO_ZERO_FOLDER_H

#include "core/param.h"
#include "io/torch_file.h"
#include "io/torch_optimizer.h"

#define ZERO_FOLDER_STATES "mp_rank_00_model_states.pt"
#define ZERO_FOLDER_VERSION                                                                                  \
    "0.9.4" /* the release as whose files kiln writes: its reader refuses those before 0.3.17 */

enum { ZERO_FOLDER_MOST_RANKS = 4096 };

struct zero_folder {
    char states[40];          /* the name of the file with its "param_shapes" */
    struct torch_file *ranks; /* [n_ranks] */
    int n_ranks;
    struct torch_optimizer *optimizers;          /* [n_ranks] */
    struct stored_tensor *tensors[PARAM_N_KEPT]; /* [n] each, under DeepSpeed's names */
    int n;
    bool has_moments;                      /* false: there is only PARAM_WEIGHT */
    int64_t n_steps;                       /* steps that the optimizers counted; -1: they do not say */
    const struct pickle_node *loss_scaler; /* loss scaler of the first rank; NULL: it has none */
    struct bump memory;
};

/* Whether a folder has the file of any rank. */
bool zero_folder_is_one(const char *directory);

/* `states` is the root of its ZERO_FOLDER_STATES and stays open as long as the folder.  STATUS_DATA names the
 * file that is missing, damaged, or contradicts the others. */
struct status zero_folder_open(struct zero_folder *z, const char *directory,
                               const struct pickle_node *states);

/* Opens the files of rank `rank` of a model that several ranks hold together, by tensor parallelism and the
 * stages of a pipeline: mp_rank_RANK_model_states.pt, of which `states` is the root, and the optimizers'
 * files of that rank. */
struct status zero_folder_open_rank(struct zero_folder *z, const char *directory, int rank,
                                    const struct pickle_node *states);

/* Safe on a zeroed struct and after a failed open. */
void zero_folder_close(struct zero_folder *z);

/* Whether the weights of the ranks, rounded to the type of the model's copies in `states`, are these, bit by
 * bit: a rank's file under another rank's name, or of another step, has the right sizes.  Reads all of them.
 * STATUS_DATA names the rank and the first element that differs; STATUS_MEMORY. */
struct status zero_folder_compare(const struct zero_folder *z, const char *directory,
                                  const struct pickle_node *states);

/* A copy of a weight that the model computes with; NULL: there is none; and the name of the file it is in. */
struct zero_copy {
    const struct stored_tensor *tensor;
    const char *source;
};

/* Compares one tensor of the folder with its copy as zero_folder_compare does; copies of another size are not
 * compared. */
struct status zero_folder_compare_one(const struct zero_folder *z, const char *directory,
                                      const struct stored_tensor *t, const struct zero_copy *of);

/* After reading: file_map_check of all that is mapped. */
struct status zero_folder_check(const struct zero_folder *z, const char *directory);

#endif
