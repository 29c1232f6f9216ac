/* cuda_log: core/log.h for the library, whose lines go to the program's log. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_LOG_H
#define KILN_OPS_CUDA_TABLE_CUDA_LOG_H

#include "core/log.h"

/* Sets where lines go; before the first call they are dropped. */
void cuda_log_to(void (*sink)(enum log_level level, const char *line));

#endif
