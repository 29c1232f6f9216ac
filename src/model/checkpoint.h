/* checkpoint: the state of a training run on disk, one directory ckpt_STEP per saved step.
 *
 * A checkpoint knows no layout: each parameter stands under its Hugging Face name with its full, real shape,
 * whatever slabs, padding or devices it had in memory.  All files but run.json (host, time, command line)
 * depend only on the state, so equal runs write equal bytes.  A directory named ckpt_STEP is complete: it was
 * written under another name, every file and directory fsynced, then renamed.  Whether it is still whole is
 * decided by the checksums in its manifest, never by its name or time.
 *
 * The functions on an output directory need its lock (io/dir_lock.h), which the caller holds. */
#ifndef KILN_MODEL_CHECKPOINT_H
#define KILN_MODEL_CHECKPOINT_H

#include "core/json.h"
#include "core/param.h"
#include "io/safetensors.h"
#include "text/tokenizer.h"
#include "model/checkpoint_manifest.h"

enum { CHECKPOINT_PATH_BYTES = 1024 };

/* The tensor of fp8.safetensors. */
#define CHECKPOINT_HISTORIES "histories"

/* What a save writes; everything is borrowed for the call. */
struct checkpoint_contents {
    const struct param_table *params;
    tensor master, exp_avg, exp_avg_sq;      /* [params->n_elements] each, host, fp32 or fp64 */
    const json_t *config;                    /* for config.json */
    const json_t *tokenizer;                 /* for tokenizer_config.json */
    const json_t *state;                     /* for trainer_state.json */
    const struct tokenizer_file *vocabulary; /* [n_vocabulary] */
    int n_vocabulary;
    uint64_t vocab_hash;
    const char
        *choices; /* [choices_bytes], of the run's device (exec_choices), for cublaslt.cache; NULL: none */
    size_t choices_bytes;
    tensor histories; /* f32 of two columns, host, for fp8.safetensors; null: none */
    int64_t step;
    bool phase_end;
};

/* Writes DIRECTORY/ckpt_STEP, replacing one that exists.  Whatever fails (STATUS_IO: the disk, whose free
 * bytes are checked first), nothing new is left behind, older checkpoints stand as they were, and training
 * can go on. */
struct status checkpoint_save(const char *directory, const struct checkpoint_contents *c);

/* STATUS_USAGE unless checkpoints have a place for the files of the vocabulary; what checkpoint_save wants. */
struct status checkpoint_check_vocabulary(const struct tokenizer_file *files, int n_files);

/* STATUS_IO unless the disk has room for what checkpoint_save would write. */
struct status checkpoint_check_space(const char *directory, const struct checkpoint_contents *c);

/* A checkpoint or a model directory, open for reading. */
struct checkpoint {
    char path[CHECKPOINT_PATH_BYTES];
    bool has_manifest;
    struct checkpoint_manifest manifest;
    struct file_map files[CHECKPOINT_N_FILES];
    struct safetensors model, optimizer, fp8; /* over the files */
    json_t *config;                           /* an object */
    json_t *tokenizer;                        /* an object */
    json_t *state;                            /* an object; NULL in a model */
};

/* Maps and verifies every file.  STATUS_DATA names the first one that is missing or damaged. */
struct status checkpoint_open(struct checkpoint *c, const char *path);

/* Maps config.json, vocab.txt, tokenizer_config.json and model.safetensors of a checkpoint or of any
 * directory that has them, and verifies them where there is a manifest. */
struct status checkpoint_open_model(struct checkpoint *c, const char *path);

/* Safe on a zeroed struct. */
void checkpoint_close(struct checkpoint *c);

/* Fills the parameters' elements of `master`, a flat host buffer of the table's layout, and leaves gaps and
 * padded rows alone.  STATUS_DATA if a tensor is missing or has another shape; tensors that the table lacks
 * are not read. */
struct status checkpoint_read_weights(const struct checkpoint *c, const struct param_table *params,
                                      tensor master);

/* The same for both moments, whose tensors must be the table's exactly. */
struct status checkpoint_read_moments(const struct checkpoint *c, const struct param_table *params,
                                      tensor exp_avg, tensor exp_avg_sq);

/* Fills `histories` (stage.h); with 0 if the checkpoint has none: it is of a run without fp8.  STATUS_DATA if it has others. */
struct status checkpoint_read_histories(const struct checkpoint *c, tensor histories);

/* Opens the checkpoint of the highest step that is whole, with a warning that names each bad one and why.
 * *found is false if the directory has none at all; STATUS_NO_CHECKPOINT if it has some, but none is whole.
 */
struct status checkpoint_dir_open_newest(struct checkpoint *c, const char *directory, bool *found);

/* Removes what saves and prunes of dead runs left half done; for the start of a run. */
struct status checkpoint_dir_clean(const char *directory);

/* Removes checkpoints before `step`, the one just saved, but keeps it and its predecessors, `keep_last` in
 * all, those that end a phase, and those whose manifest is unreadable (with a warning).  keep_last 0 keeps
 * all. */
struct status checkpoint_dir_prune(const char *directory, int64_t step, int64_t keep_last);

/* Formats a path into `out` [CHECKPOINT_PATH_BYTES]; STATUS_USAGE if it is too long. */
struct status checkpoint_path(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
