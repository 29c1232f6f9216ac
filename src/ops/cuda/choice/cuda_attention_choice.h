/* cuda_attention_choice: the kernel of attention that was fastest on this device when the shape was first
 * met. */
#ifndef KILN_OPS_CUDA_CHOICE_CUDA_ATTENTION_CHOICE_H
#define KILN_OPS_CUDA_CHOICE_CUDA_ATTENTION_CHOICE_H

#include "dev/exec.h"
#include "ops/cuda/choice/attention_choice.h"

/* One of several candidates.  A shape that is met for the first time is timed on the real operands, which are
 * only read or only written: it waits for the device and must not happen while a graph is captured.  False
 * after exec_fail. */
bool cuda_attention_choose(enum launch_attention_kernel *kernel, struct exec *x, const char *op,
                           const struct launch *l, const struct attention_call *call,
                           const struct attention_candidates *candidates);

#endif
