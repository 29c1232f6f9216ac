/* script_optimizer: what the replaced scripts keep of a run besides its model, in their own files: the rest
 * of ckpt_N.pt, and DeepSpeed's folder of ZeRO 1.  model/foreign_moments.h reads both. */
#ifndef KILN_MODEL_SCRIPT_OPTIMIZER_H
#define KILN_MODEL_SCRIPT_OPTIMIZER_H

#include "io/torch_writer.h"
#include "model/script_params.h"

/* Puts the keys "optimizer", "master params", "files", "epoch" and "data_loader" into an open dict. */
void script_optimizer_put(struct torch_writer *w, const struct script_params *params);

/* Writes DIRECTORY/latest and DIRECTORY/STEP/ with the states of the model and those of each rank. */
struct status script_optimizer_write_folder(const char *directory, const struct script_params *params);

/* Puts the state dict of the model, copies too. */
struct status script_optimizer_put_model(struct torch_writer *w, const struct script_params *params);

#endif
