/* int8_check: how far the outputs of an encoder move when the matrices of its layers, and the rows that meet
 * them, are rounded to int8 (nn/model.h, MODEL_INT8_LAYERS), measured on texts of our own when the model is
 * opened. */
#ifndef KILN_SERVE_INT8_CHECK_H
#define KILN_SERVE_INT8_CHECK_H

#include "model/model_dir.h"

/* Computes these texts in fp32 and in int8, and logs the smallest cosine between an output in both, from 1
 * for the same.  The files of the directory are open.  STATUS_DATA: it is below 0.995, so int8 would answer
 * otherwise. */
struct status int8_check(const struct model_dir *m, enum model_task task);

#endif
