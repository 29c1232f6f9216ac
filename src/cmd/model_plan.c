#include "cmd/model_plan.h"

#include "serve/session.h"

#include <stdio.h>

struct status model_plan_print(const char *model, enum bert_task task)
{
    struct trainer_plan plan;
    TRY(session_plan(&plan, model, task));
    printf("%s: %.2f M parameters, %.1f MiB, at most %.3g GFLOP a batch\n", model,
           (double)plan.n_params / 1e6, (double)plan.total_bytes / 0x1p20, plan.micro_flops / 1e9);
    return status_ok();
}
