/* thread_device: a device whose streams are threads over the host's memory: as on a GPU, what is queued runs
 * later, in the order of its stream alone, and what is not waited for is not there yet.  Its fence: the host
 * may not read it; nothing checks that. */
#ifndef KILN_TESTS_THREAD_DEVICE_H
#define KILN_TESTS_THREAD_DEVICE_H

#include "dev/exec.h"

extern const struct device device_threads;

/* An exec of its own context on the chip of that name. */
struct exec thread_device_exec(const char *chip);
void thread_device_close(struct exec *x);

/* Queues work on the exec's stream; `argument` must live until it has run. */
void thread_device_give(struct exec *x, void (*work)(void *argument), void *argument);

#endif
