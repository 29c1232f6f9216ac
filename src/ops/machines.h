/* machines: devices to plan for, as rows of data: memory, rates, and the links between them, each with its source.
 *
 * A step on a device whose kernels are known is predicted by ops/forecast.h.  On the others it is predicted by
 * ops/roofline.h, divided by the share of that which a whole step was seen to reach there. */
#ifndef KILN_OPS_MACHINES_H
#define KILN_OPS_MACHINES_H

#include "dev/device.h"
#include "ops/cuda/forecast/gpu_chips.h"

/* Rates of a roofline: FLOP/s of products by dtype, 0 where unknown, and bytes read and written a second. */
struct machine_rates {
    double half, tf32, fp32; /* half: bf16, and fp16 where the device has it */
    double copy;
    double reached; /* share of the roofline that a whole step reaches */
};

struct machine {
    const char *name, *title;
    const char *chip; /* of gpu_chips.h: its kernels are known; NULL: by rates */
    struct machine_rates rates;
    double memory_bytes; /* 0: that of the machine here */
    int64_t per_node;    /* devices of a node */
    double within,
        between; /* bytes a second, sent and received at once, of a device in a node, and from node to node */
    bool computes_in_f16, computes_in_fp8;
    const char *memory_source, *rates_source, *links_source;
};

/* The row of this name; STATUS_USAGE lists all. */
struct status machine_find(const struct machine **machine, const char *name);

/* The share of a link's rate that collectives reach (assumed). */
extern const double MACHINE_LINK_SHARE;

/* A device to plan memory for: "cpu" is the cpu's, the others are laid out as for CUDA devices. */
struct device machine_device(const struct machine *machine);

#endif
