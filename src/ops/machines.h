/* machines: devices to plan for, as rows of data: memory, rates, and the links between them, each with its
 * source.
 *
 * A step is predicted by ops/roofline.h, divided by the share of the roofline that a complete step reaches
 * there. */
#ifndef KILN_OPS_MACHINES_H
#define KILN_OPS_MACHINES_H

#include "dev/device.h"
#include "dev/precision.h"

/* Rates of a roofline: FLOP/s of products by dtype, 0 where unknown, and bytes read and written a second. */
struct machine_rates {
    double half, tf32, fp32, fp8; /* half: bf16, and fp16 where the device has it */
    double copy;
    double reached; /* share of the roofline that a complete step reaches */
};

struct machine {
    const char *name, *title;
    struct machine_rates rates;
    double memory_bytes; /* 0: that of the machine here */
    int64_t per_node;    /* devices of a node */
    /* bytes a second, sent and received at once, of a device in a node, and from node to node */
    double within, between;
    double watts; /* most that a device takes, by its datasheet; 0: not known */
    bool computes_in_f16, computes_in_fp8;
    const char *memory_source, *rates_source, *links_source;
};

/* The row of this name; STATUS_USAGE lists all. */
struct status machine_find(const struct machine **machine, const char *name);

/* The share of a link's rate that collectives reach (assumed). */
extern const double MACHINE_LINK_SHARE;

/* FLOP/s of products in this precision; 0: not known. */
double machine_product_rate(const struct machine_rates *rates, struct precision precision);

/* A device to plan memory for: "cpu" is the cpu's, the others are laid out as for CUDA devices. */
struct device machine_device(const struct machine *machine);

#endif
