/* memory_use: the memory that a run has taken, of the host and of its device, for its logs:
 * `--log_memory_usage`. */
#ifndef KILN_REPORT_MEMORY_USE_H
#define KILN_REPORT_MEMORY_USE_H

#include "core/json.h"
#include "dev/device.h"

/* Bytes; the limit is what could be taken in all, when it was asked last. */
struct memory_amount {
    size_t used, peak, limit;
};

struct memory_use {
    const struct device *device; /* NULL: off */
    size_t free_before;          /* free memory of the device, before the run took any */
    struct memory_amount host;   /* memory of the process, without mapped files */
    struct memory_amount of_device;
};

/* Asks now.  The device's peak is the most that was seen so far; its memory is in one block, so that hardly
 * changes. */
void memory_use_ask(struct memory_use *m);

/* Adds the numbers of the last question to an event: memory_bytes, memory_peak_bytes, memory_limit_bytes, and
 * the same with device_ in front for a device with memory of its own. */
void memory_use_put(json_t *fields, const struct memory_use *m);

/* "0.521 GiB, at most 0.613 GiB (2.6 % of 23.4 GiB)"; of a device with its own memory, followed by the
 * host's. */
enum { MEMORY_USE_TEXT = 200 };
void memory_use_text(char text[MEMORY_USE_TEXT], const struct memory_use *m);

#endif
