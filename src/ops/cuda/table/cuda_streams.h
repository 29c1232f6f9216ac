/* cuda_streams: device_streams made of CUDA streams and events. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_STREAMS_H
#define KILN_OPS_CUDA_TABLE_CUDA_STREAMS_H

#include "dev/device.h"

extern const struct device_streams cuda_streams;

#endif
