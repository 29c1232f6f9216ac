/* checkpoint: the state of a training run on disk, one directory ckpt_STEP per saved step.
 *
 * A checkpoint does not depend on the layout in memory: each parameter has its Hugging Face name and its
 * full, real shape, whatever slabs, padding or devices it had in memory.  It is complete in one file, or in
 * slices in the files of several ranks; a reader assembles the slice that it wants from whatever slices were
 * written.  All files but run.json (host, time, command line) depend only on the state, so equal runs write
 * equal bytes.  A directory named ckpt_STEP is complete: it was written under another name, every file and
 * directory fsynced, then renamed.  The checksums in its manifest, never its name or time, show whether it is
 * still intact.
 *
 * The functions on an output directory need its lock (io/dir_lock.h), which the caller holds. */
#ifndef KILN_MODEL_CHECKPOINT_H
#define KILN_MODEL_CHECKPOINT_H

#include "core/json.h"
#include "core/param.h"
#include "io/tensor_set.h"
#include "text/tokenizer.h"
#include "model/checkpoint_manifest.h"

enum { CHECKPOINT_PATH_BYTES = 1024, CHECKPOINT_MOST_EXTRAS = 4 };

/* A file that only some checkpoints have, and that readers may ignore. */
struct checkpoint_extra {
    const char *file; /* file name in the checkpoint */
    /* name of the only tensor of a safetensors file; NULL: the file is the bytes of `data`, u8 */
    const char *tensor;
    tensor data;
};

/* Contents of a save; everything is borrowed for the call.  If several ranks save together, each has its own
 * slices, and only the first needs the fields after them. */
struct checkpoint_contents {
    const struct param_table *params;

    /* Elements [begin, begin + count) of flat buffers of the table's layout, host, fp32 or fp64; null where
     * this rank writes none.  Both moments are the same slice. */
    tensor master, exp_avg, exp_avg_sq;
    int64_t master_begin, moments_begin;
    /* this rank's number among the n_parts that have slices; read if a slice is not the complete model */
    int part, n_parts;

    const json_t *config;                    /* content of config.json */
    const json_t *tokenizer;                 /* content of tokenizer_config.json */
    const json_t *state;                     /* content of trainer_state.json */
    const struct tokenizer_file *vocabulary; /* [n_vocabulary] */
    int n_vocabulary;
    uint64_t vocab_hash;
    struct checkpoint_extra extras[CHECKPOINT_MOST_EXTRAS];
    int n_extras;
    void *owned; /* malloc'ed bytes that an extra views; background_save_begin takes them; NULL: none */
    int64_t step;
    bool phase_end;
    int64_t best_step; /* step of another checkpoint, which pruning keeps; 0: there is none */
};

/* Writes DIRECTORY/ckpt_STEP, replacing one that exists.  Whatever fails (STATUS_IO: the disk, whose free
 * bytes are checked first), nothing new remains, older checkpoints stay as they were, and training can
 * continue. */
struct status checkpoint_save(const char *directory, const struct checkpoint_contents *c);

/* A save in three steps, for several ranks (train/save_ranks.h): one rank begins, which makes a directory
 * under a name that no reader looks for; each writes the files of its slices into it; one rank, given the
 * list of all files, commits. */
struct checkpoint_save {
    char final[CHECKPOINT_PATH_BYTES]; /* final path of the checkpoint */
    struct temporary temporary;        /* the directory being filled */
};

/* The files that a rank has written: one of weights, one of moments, or fewer. */
struct checkpoint_part {
    struct checkpoint_listed files[2];
    int n;
};

/* Makes the directory under a temporary name.  STATUS_IO: no space for it, or it cannot be made. */
struct status checkpoint_save_begin(struct checkpoint_save *s, const char *directory,
                                    const struct checkpoint_contents *c);
struct status checkpoint_save_part(struct checkpoint_part *part, const char *path,
                                   const struct checkpoint_contents *c);
struct status checkpoint_save_commit(struct checkpoint_save *s, const struct checkpoint_contents *c,
                                     const struct checkpoint_part *parts, int n_parts);

/* Removes the files that were written; does nothing after a commit. */
void checkpoint_save_end(struct checkpoint_save *s);

/* STATUS_USAGE unless a checkpoint can hold the files of the vocabulary, as a save needs. */
struct status checkpoint_check_vocabulary(const struct tokenizer_file *files, int n_files);

/* STATUS_IO unless the disk has space for what checkpoint_save would write. */
struct status checkpoint_check_space(const char *directory, const struct checkpoint_contents *c);

/* A file of an open checkpoint. */
struct checkpoint_file {
    char name[CHECKPOINT_NAME_BYTES];
    char path[CHECKPOINT_PATH_BYTES];
    struct file_map map;
    struct safetensors tensors; /* tensors of the map, if it is a .safetensors file */
};

/* A checkpoint or a model directory, open for reading. */
struct checkpoint {
    char path[CHECKPOINT_PATH_BYTES];
    bool has_manifest;
    struct checkpoint_manifest manifest;
    struct checkpoint_file *files; /* [n_files] the opened files */
    int n_files;
    struct tensor_set model, optimizer; /* tensors of the files */
    json_t *config;                     /* an object */
    json_t *tokenizer;                  /* an object */
    json_t *state;                      /* an object; NULL in a model */
};

/* Maps and verifies every file.  STATUS_DATA names the first file that is missing, damaged or lacks a part of
 * a tensor. */
struct status checkpoint_open(struct checkpoint *c, const char *path);

/* Maps config.json, the vocabulary, tokenizer_config.json and the weights of a checkpoint or of any
 * directory that has them, and verifies them where there is a manifest. */
struct status checkpoint_open_model(struct checkpoint *c, const char *path);

/* Safe on a zeroed struct. */
void checkpoint_close(struct checkpoint *c);

/* An open file; NULL if the checkpoint has none of this name. */
const struct checkpoint_file *checkpoint_find(const struct checkpoint *c, const char *name);

/* Fills `values` with elements of the local part of a parameter, or of a moment of it, from `from` on.
 * STATUS_DATA if its tensor is missing or has another shape. */
struct status checkpoint_read(const struct checkpoint *c, enum param_kept kept, const struct param *p,
                              int64_t from, tensor values);

/* STATUS_DATA unless the tensors of moments are exactly those of the table, if that is of a complete
 * model. */
struct status checkpoint_check_moments(const struct checkpoint *c, const struct param_table *params);

/* After reading: STATUS_DATA if a file has become shorter since it was opened. */
struct status checkpoint_check_files(const struct checkpoint *c);

/* Fills `out` with the only tensor of an optional file, or with 0 if this checkpoint does not have the file.
 * STATUS_DATA if it is another tensor. */
struct status checkpoint_read_extra(const struct checkpoint *c, const char *file, const char *name,
                                    tensor out);

/* The elements [*from, *to) of a parameter that are among the `n` of a flat buffer from `begin` on. */
void checkpoint_overlap(const struct param *p, int64_t begin, int64_t n, int64_t *from, int64_t *to);

/* The elements [from, to) of the local part of a parameter, as a slice of the complete tensor. */
struct tensor_slice checkpoint_slice(const struct param *p, int64_t from, int64_t to);

/* Opens the intact checkpoint of the highest step, with a warning that names each bad one and why. *found is
 * false if the directory has none at all; STATUS_NO_CHECKPOINT if it has some, but none is intact. */
struct status checkpoint_dir_open_newest(struct checkpoint *c, const char *directory, bool *found);

/* The steps of the directories PREFIX + STEP, highest first; free(list->steps), also after a failure. */
struct checkpoint_steps {
    int64_t *steps; /* [n] */
    int n;
};

/* Steps of the checkpoints in a directory, the newest first.  STATUS_IO. */
struct status checkpoint_dir_list(struct checkpoint_steps *list, const char *directory, const char *prefix);

/* The highest step of the checkpoints ckpt_STEP.pt of the replaced scripts; -1 if there is none. */
struct status checkpoint_dir_newest_file(int64_t *step, const char *directory);

/* Bytes of all files in a directory, without those of directories in it. */
struct status checkpoint_dir_bytes(uint64_t *bytes, const char *path);

/* Removes what interrupted saves and prunes of earlier runs left; called at the start of a run. */
struct status checkpoint_dir_clean(const char *directory);

/* Removes the checkpoints of the steps above `after` up to `last`, from which a run has gone back. */
struct status checkpoint_dir_remove_between(const char *directory, int64_t after, int64_t last);

/* Opens DIRECTORY/ckpt_STEP. */
struct status checkpoint_dir_open_step(struct checkpoint *c, const char *directory, int64_t step);

/* Removes checkpoints before `step`, the one just saved, but keeps it and its predecessors, `keep_last` in
 * all, that of best_step (0: none), those that end a phase, and those whose manifest is unreadable (with a
 * warning).  keep_last 0 keeps all. */
struct status checkpoint_dir_prune(const char *directory, int64_t step, int64_t keep_last, int64_t best_step);

/* Formats a path into `out` [CHECKPOINT_PATH_BYTES]; STATUS_USAGE if it is too long. */
struct status checkpoint_path(char *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
