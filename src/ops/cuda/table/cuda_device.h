/* cuda_device: one NVIDIA GPU as a device. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_DEVICE_H
#define KILN_OPS_CUDA_TABLE_CUDA_DEVICE_H

#include "dev/device.h"

/* The GPU, described in `text` [n]; STATUS_USAGE says why there is none that this build can use. */
struct status cuda_device_probe(const struct device **device, char *text, size_t n);

#endif
