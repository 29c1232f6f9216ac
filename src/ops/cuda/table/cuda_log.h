/* cuda_log: core/log.h for the library: it has no sink of its own, lines go to the program's. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_LOG_H
#define KILN_OPS_CUDA_TABLE_CUDA_LOG_H

#include "core/log.h"

/* Where lines go from now on; nowhere before. */
void cuda_log_to(void (*sink)(enum log_level level, const char *line));

#endif
