#include "cmd/session_flags.h"

#include <stdio.h>

struct status session_flags_open(struct session *s, const struct session_flags *f, enum bert_task task)
{
    struct session_options o;
    TRY(session_options_find(&o, f->device, f->dtype));
    return session_open(s, f->model, task, &o);
}

struct status session_flags_plan(const struct session_flags *f, enum bert_task task)
{
    struct trainer_plan plan;
    struct session_options o;
    TRY(session_options_find(&o, f->device, f->dtype));
    TRY(session_plan(&plan, f->model, task, &o));
    printf("%s: %.2f M parameters, %.1f MiB, at most %.3g GFLOP a batch\n", f->model,
           (double)plan.n_params / 1e6, (double)plan.total_bytes / 0x1p20, plan.micro_flops / 1e9);
    return status_ok();
}
