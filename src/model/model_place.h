/* model_place: from the path that a user names a model by to the directory of its configuration and
 * vocabulary, and to the files of its tensors.  The one place that knows what may be named:
 *
 *   a model directory, or a checkpoint of kiln   its own files
 *   an output directory with checkpoints         the newest intact one
 *   a directory of DeepSpeed's folders           the one that its file "latest" names
 *   a file of tensors                            the files next to it
 *   a GGUF file with keys of its architecture    itself, which has all
 *   ckpt_N.pt where kiln's run has ckpt_N        that: the replaced scripts' name of it
 *   the prefix of a TensorFlow checkpoint        the same */
#ifndef KILN_MODEL_MODEL_PLACE_H
#define KILN_MODEL_MODEL_PLACE_H

#include "model/checkpoint.h"

struct model_place {
    /* of configuration and tokenizer, or the GGUF file that has both */
    char directory[CHECKPOINT_PATH_BYTES];
    char tensors[CHECKPOINT_PATH_BYTES]; /* a file or a prefix; empty: those of the directory */
};

/* STATUS_DATA if there is no such thing, STATUS_NO_CHECKPOINT if a directory has checkpoints, but none is
 * intact. */
struct status model_place_find(struct model_place *p, const char *path);

/* Whether a GGUF file has the configuration. */
bool model_place_is_gguf(const struct model_place *p);

/* The directory PATH of a path PATH.pt that is not there. */
bool model_place_of_script(char directory[CHECKPOINT_PATH_BYTES], const char *path);

/* config.json of a directory, or the name that another release of a family has for it. */
bool model_place_find_config(char path[CHECKPOINT_PATH_BYTES], const char *directory);

/* Whether a directory has a file; its path. */
bool model_place_has(char path[CHECKPOINT_PATH_BYTES], const char *directory, const char *name);

/* The folder that the file "latest" of DeepSpeed, or another file, names; empty: there is no such file.
 * STATUS_DATA if it names none. */
struct status model_place_named(char folder[CHECKPOINT_PATH_BYTES], const char *directory, const char *file);
struct status model_place_latest(char folder[CHECKPOINT_PATH_BYTES], const char *directory);

#endif
