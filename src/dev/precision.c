#include "dev/precision.h"

#include "core/log.h"

struct status precision_find(struct precision *p, const struct precision_flags *f,
                             const struct device *device)
{
    *p = (struct precision){
        .dtype = f->fp16                 ? DTYPE_F16
                 : f->autocast || f->fp8 ? DTYPE_BF16
                                         : DTYPE_F32,
        .fp8 = f->fp8,
        .fp32_residual = f->fp32_residual,
    };
    p->allow_tf32 = f->tf32 && !device->is_host && p->dtype == DTYPE_F32;
    FAIL_IF(f->fp8 && f->fp16, STATUS_USAGE,
            "--fp8 cannot be combined with --fp16: it computes all but products in bf16");
    if (f->fp8 && !device->computes_in_fp8) {
        log_warning("--fp8: the %s has no products in fp8, so kiln multiplies the same numbers in bf16, "
                    "which is slower than --autocast alone",
                    device->name);
    }
    FAIL_IF(f->fp16 && !device->computes_in_f16, STATUS_USAGE,
            "--fp16: the %s does not compute in fp16; --autocast without it computes in bf16", device->name);
    FAIL_IF(f->fp32_residual && p->dtype == DTYPE_F32, STATUS_USAGE,
            "a residual stream in fp32 goes with layers in bf16 or fp16, but all is "
            "fp32 already: leave out --fp32-residual-connection, or give --bf16");
    return status_ok();
}

struct status precision_find_prediction(struct precision *p, const struct precision_flags *f,
                                        const struct device *device)
{
    if (!f->fp16 || f->fp8 || device->computes_in_f16 || !device->is_host) {
        return precision_find(p, f, device);
    }
    *p = (struct precision){.dtype = DTYPE_F32, .rounds_to_f16 = true};
    log_info("--fp16: the %s rounds matrices and activations to fp16 and computes with them in fp32",
             device->name);
    return status_ok();
}

enum dtype precision_factor(struct precision p, const struct device *device)
{
    return p.fp8 && device->computes_in_fp8 ? DTYPE_E4M3 : p.dtype;
}

enum dtype precision_stream(struct precision p)
{
    return p.fp32_residual ? dtype_of_vectors(p.dtype) : p.dtype;
}

enum dtype precision_matrix(struct precision p)
{
    return p.int8 ? DTYPE_I8 : p.dtype;
}

const char *precision_name(struct precision p)
{
    return p.int8                  ? "int8"
           : p.fp8                 ? "fp8"
           : p.allow_tf32          ? "tf32"
           : p.rounds_to_f16       ? "fp16"
           : !p.fp32_residual      ? dtype_name(p.dtype)
           : p.dtype == DTYPE_BF16 ? "bf16, fp32 residual"
                                   : "fp16, fp32 residual";
}
