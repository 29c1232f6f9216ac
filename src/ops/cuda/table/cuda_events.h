/* cuda_events: a device_clock made of CUDA events on the stream of a context. */
#ifndef KILN_OPS_CUDA_TABLE_CUDA_EVENTS_H
#define KILN_OPS_CUDA_TABLE_CUDA_EVENTS_H

#include "dev/device.h"

extern const struct device_clock cuda_events;

#endif
