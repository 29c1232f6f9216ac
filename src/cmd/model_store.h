/* model_store: models by name.  `--model NAME` of any command, where there is no such path, is the model of
 * that name in the directory of models: KILN_MODELS, or kiln/models in the user's cache (XDG base directory
 * specification 0.8).  `kiln fetch --hub NAME` puts one there. */
#ifndef KILN_CMD_MODEL_STORE_H
#define KILN_CMD_MODEL_STORE_H

#include "core/option.h"
#include "core/words.h"
#include "io/file.h"

/* The directory of models.  STATUS_USAGE: neither KILN_MODELS nor HOME names one. */
struct status model_store_directory(char path[FILE_PATH_BYTES]);

/* Replaces names of models in the arguments of a command by paths, which `paths` then owns. */
struct status model_store_find(const struct command *c, void *args, struct words *paths);

#endif
