/* precision: the numbers that a run computes in, from its flags and its device. */
#ifndef KILN_TRAIN_PRECISION_H
#define KILN_TRAIN_PRECISION_H

#include "core/dtype.h"
#include "dev/device.h"

/* As the user gave them. */
struct precision_flags {
    bool autocast; /* bf16 */
    bool fp16;     /* goes before autocast */
    bool tf32;     /* of products of fp32 matrices, where the device knows it */
};

struct precision {
    enum dtype dtype; /* trainer_config.dtype */
    bool allow_tf32;  /* trainer_config.allow_tf32 */
};

/* STATUS_USAGE says what to take instead: fp16 is not for the cpu. */
struct status precision_find(struct precision *p, const struct precision_flags *f,
                             const struct device *device);

/* "fp32", "tf32", "bf16" or "fp16". */
const char *precision_name(struct precision p);

#endif
