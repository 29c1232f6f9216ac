/* own_files: which files of --output_dir are a run's own, where runs of several kinds share the directory.
 *
 * The rule: a run saves next to, resumes from and removes only what a run of its kind wrote.  A kind is
 * pre-training, or a command of fine-tuning; a checkpoint says it (run_state's `command`).  The kind that
 * saves first has its checkpoints in the directory itself, each other one in a folder of its own name. */
#ifndef KILN_TASK_OWN_FILES_H
#define KILN_TASK_OWN_FILES_H

#include "model/checkpoint.h"

/* The directory of this kind's checkpoints: OUTPUT_DIR or OUTPUT_DIR/COMMAND; command NULL: pre-training.
 * It may not be there yet. */
struct status own_files_checkpoints(char path[CHECKPOINT_PATH_BYTES], const char *output_dir,
                                    const char *command);

/* STATUS_USAGE if the directory `path` holds a model of another class, "BertForQuestionAnswering", than the
 * one that is to replace it, or anything else; it names the flag of the output. */
struct status own_files_check_model(const char *path, const char *class, const char *flag);

/* Whether the directory `path` is one of the kind's checkpoints in `directory`. */
bool own_files_has_checkpoint(const char *directory, const char *command, const char *path);

/* Removes a file or directory, if it is there, and logs it. */
struct status own_files_remove(const char *path);

/* Removes all checkpoints of the kind in its directory; others stay, with a warning. */
struct status own_files_remove_checkpoints(const char *directory, const char *command);

#endif
