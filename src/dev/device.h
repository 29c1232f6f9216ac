/* device: where memory is.  A table per kind of device; everything above asks the table. */
#ifndef KILN_DEV_DEVICE_H
#define KILN_DEV_DEVICE_H

#include "core/status.h"

#include <stddef.h>

struct device {
    const char *name; /* "cpu" */

    /* `bytes` of zeroed memory, aligned to ARENA_ALIGNMENT and touched, so that a shortage shows now and not
     * in a step. STATUS_MEMORY says what was wanted and what is there. */
    struct status (*allocate)(void **memory, size_t bytes, const char *what);
    void (*release)(void *memory, size_t bytes);

    /* Between host and device memory; done when it returns. */
    void (*copy_in)(void *on_device, const void *on_host, size_t bytes);
    void (*copy_out)(void *on_host, const void *on_device, size_t bytes);

    /* Bytes that can be allocated now. */
    size_t (*free_bytes)(void);
};

extern const struct device device_cpu;

#endif
