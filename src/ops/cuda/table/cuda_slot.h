/* cuda_slot: what every slot on a CUDA device does: it checks types, takes tensors apart, and finishes. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_SLOT_H
#define KILN_OPS_CUDA_TABLE_CUDA_SLOT_H

#include "dev/exec.h"
#include "ops/cuda/kernels/launch.h"
#include "ops/ops.h"

/* The launch context of this op's kernels, with `scratch` bytes. */
struct launch cuda_slot_launch(struct exec *x, size_t scratch);

/* Checks for errors after an op's launches. */
void cuda_slot_finish(struct exec *x, const char *op);

/* A tensor as kernels take it: rows at a stride. */
struct launch_rows cuda_slot_rows(tensor t);

/* The launch type of a tensor that was accepted. */
enum launch_type cuda_slot_type(tensor t);

/* For ops that take every dtype that kernels support. */
bool cuda_slot_accepts(struct exec *x, const char *op, tensor t);

/* A dropout as kernels take it: threshold, scale, and keys of rows. */
struct launch_dropout cuda_slot_dropout(struct dropout d, tensor row_keys);

#endif
