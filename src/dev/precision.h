/* precision: the numbers that a run computes in, from its flags and its device. */
#ifndef KILN_DEV_PRECISION_H
#define KILN_DEV_PRECISION_H

#include "core/dtype.h"
#include "dev/device.h"

/* As the user gave them. */
struct precision_flags {
    bool autocast; /* bf16 */
    bool fp16;     /* goes before autocast */
    bool tf32;     /* of products of fp32 matrices, where the device knows it */
    bool fp8;      /* of products of layers, all else in bf16 */
};

struct precision {
    enum dtype dtype; /* of activations and of the matrices that products read */
    bool allow_tf32;  /* exec.allow_tf32 */
    bool fp8;         /* products of layers are in fp8, all else in bf16 (nn/linear.h) */
};

/* STATUS_USAGE says what to take instead: fp16 is not for the cpu, and not together with fp8. */
struct status precision_find(struct precision *p, const struct precision_flags *f,
                             const struct device *device);

/* What the factors of a layer's products are in forward: fp8 is kept in bf16 where the device has no products in it. */
enum dtype precision_factor(struct precision p, const struct device *device);

/* "fp32", "tf32", "bf16", "fp16" or "fp8". */
const char *precision_name(struct precision p);

#endif
