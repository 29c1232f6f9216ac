/* emulated_queue: the slots of ops/cuda/table/cuda_queue.h for the emulated device: copies at once,
 * recordings by the emulator. */
#ifndef KILN_TESTS_EMULATED_QUEUE_H
#define KILN_TESTS_EMULATED_QUEUE_H

#include "ops/cuda/table/cuda_context.h"

void emulated_queue_open(struct cuda_context *c);
void emulated_queue_close(struct cuda_context *c);
struct status emulated_queue_stage(void *context, void **on_host, size_t bytes);
struct status emulated_queue_send(void *context, void *on_device, const void *on_host, size_t bytes);
extern const struct device_graphs emulated_queue_graphs;
extern const struct device_beside emulated_queue_beside;
extern const struct device_streams emulated_queue_streams;

#endif
