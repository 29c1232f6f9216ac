/* precision: the number format that a run computes in, from its flags and its device. */
#ifndef KILN_DEV_PRECISION_H
#define KILN_DEV_PRECISION_H

#include "core/dtype.h"
#include "dev/device.h"

/* Flags that the user gave. */
struct precision_flags {
    bool autocast;      /* bf16 */
    bool fp16;          /* takes precedence over autocast */
    bool tf32;          /* products of fp32 matrices in tf32, if the device has it */
    bool fp8;           /* products of layers in fp8, all else in bf16 */
    bool fp32_residual; /* decoders' residual streams in fp32; else as all activations */
};

struct precision {
    enum dtype dtype;   /* dtype of activations and of the matrices that products read */
    bool allow_tf32;    /* exec.allow_tf32 */
    bool rounds_to_f16; /* dtype is fp32, and matrices and activations are rounded to fp16 (ops/half_ops.h) */
    bool fp8;           /* products of layers are in fp8, all else in bf16 (nn/linear.h) */
    bool int8;          /* matrices are kept in int8, all else is dtype: inference only */
    bool fp32_residual; /* the residual stream is fp32, all else is dtype (ops.h, R) */
};

/* Finds the precision of a run.  STATUS_USAGE says what to use instead: the cpu has no fp16, fp16 excludes
 * fp8, and a residual stream in fp32 needs layers in bf16 or fp16. */
struct status precision_find(struct precision *p, const struct precision_flags *f,
                             const struct device *device);

/* Finds the precision of a run that only predicts: then the cpu takes fp16 too, by rounding to it, and logs
 * that.  Errors are those of precision_find. */
struct status precision_find_prediction(struct precision *p, const struct precision_flags *f,
                                        const struct device *device);

/* The dtype of a layer's factors in the forward: fp8 values are kept in bf16 if the device has no fp8
 * products. */
enum dtype precision_factor(struct precision p, const struct device *device);

/* The dtype of a residual stream and its gradient. */
enum dtype precision_stream(struct precision p);

/* The dtype of the matrices that products read. */
enum dtype precision_matrix(struct precision p);

/* "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "bf16, fp32 residual" or "fp16, fp32 residual". */
const char *precision_name(struct precision p);

#endif
