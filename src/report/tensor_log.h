/* tensor_log: writes the tensors of training passes to files: `--log_model_inputs`, `--log_fwd_activations`
 * and `--log_bwd_grads`, for TensorLogger of the replaced script (docs/decisions/0047_tensor_log.md).
 *
 * Each micro-batch has a safetensors file, DIRECTORY/tensor_logger_rank_R_step_S_micro_M.safetensors, whose
 * tensors are in the order in which they were computed; docs/formats.md lists their names.  A tensor is
 * copied when it is there, so the log needs host memory for one tensor.
 *
 * The rule: it changes no bit of a run, and costs a run without it nothing but a comparison with NULL.  If a
 * file cannot be written, a warning says so and training continues without the log. */
#ifndef KILN_REPORT_TENSOR_LOG_H
#define KILN_REPORT_TENSOR_LOG_H

#include "io/safetensors.h"
#include "train/trainer.h"

/* The flags of a command. */
struct tensor_log_options {
    bool inputs, activations, gradients;
    int64_t max_iterations; /* micro-batches; 0: none */
    int64_t start_step;     /* the first optimizer step whose micro-batches are logged */
    const char *path;       /* NULL: OUTPUT_DIR/tensor_logger */
    int rank;               /* rank of the passes, in the names of files */
};

/* Whether the options ask for a log of anything. */
bool tensor_log_wants(const struct tensor_log_options *o);

enum { TENSOR_LOG_NAME_BYTES = MODEL_MODULE_BYTES + 32 };

struct tensor_log {
    struct stage_tap tap; /* first */
    struct pass_hook hook;
    struct tensor_log_options options;
    char directory[FILE_PATH_BYTES];
    struct trainer *trainer; /* NULL: nothing is logged */
    int64_t micro;
    int64_t n_files;
    struct trainer_pass pass;
    bool backward;  /* the pass has begun its backward */
    bool declaring; /* tensors are announced, not written */
    bool writing;   /* a file is open */
    struct safetensors_writer writer;
    struct safetensors_item *items; /* [n] tensors of the file */
    char (*names)[TENSOR_LOG_NAME_BYTES];
    int n, capacity;
    uint64_t bytes; /* bytes of the items */
    void *copy;     /* [copy_bytes] copy of one tensor */
    size_t copy_bytes;
    struct status status; /* the first failure: nothing is logged after it */
};

/* Logs the passes of the trainer from here on, as its pass_hook; off if the options ask for nothing.  Carves
 * the slot of its stage for the largest batch, to learn sizes.  STATUS_USAGE or STATUS_IO if the directory
 * cannot be written or its disk lacks space for all files; STATUS_USAGE if the device does not store what is
 * asked for, or gradients are, and ranks share them. */
struct status tensor_log_open(struct tensor_log *l, const struct tensor_log_options *o,
                              const char *output_dir, struct trainer *trainer);

/* Says what was written, leaves the trainer, and frees everything; safe on a zeroed struct. */
void tensor_log_close(struct tensor_log *l);

#endif
