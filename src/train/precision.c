#include "train/precision.h"

struct status precision_find(struct precision *p, const struct precision_flags *f,
                             const struct device *device)
{
    *p = (struct precision){
        .dtype = f->fp16       ? DTYPE_F16
                 : f->autocast ? DTYPE_BF16
                               : DTYPE_F32,
        .allow_tf32 = f->tf32 && !device->is_host && !f->fp16 && !f->autocast,
    };
    if (f->fp16 && !device->computes_in_f16) {
        return status_error(STATUS_USAGE,
                            "--fp16: the %s does not compute in fp16; --autocast without it computes in bf16",
                            device->name);
    }
    return status_ok();
}

const char *precision_name(struct precision p)
{
    return p.allow_tf32 ? "tf32" : dtype_name(p.dtype);
}
