/* step_forecast: what a step of a bench would take on a GPU that is not here.  Predicted, not measured. */
#ifndef KILN_TASK_STEP_FORECAST_H
#define KILN_TASK_STEP_FORECAST_H

#include "ops/forecast.h"
#include "task/step_bench.h"

/* Seconds, on a chip that is cool, and on one that has been at work. */
struct step_range {
    double cool, hot;
};

struct step_forecast {
    struct forecast ops;            /* of a whole step, or of a pass without learning */
    struct step_range step, passes; /* of it, and of forward and backward alone; one launch after the other */
    struct step_range step_beside,
        passes_beside;           /* with gradients of weights beside the rest of the backward */
    struct op_ceilings ceilings; /* the best rate of a tabulated product, and of copies */
};

/* Of a bench that was planned for forecast_device(chip); f must not move while f->ops is used. */
struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct gpu_chip *chip);

/* Appends the rows of op_report and, below, a row for each kernel: launches, milliseconds, bytes that it really moves. */
void step_forecast_append(struct buf *text, const struct step_forecast *f);

#endif
