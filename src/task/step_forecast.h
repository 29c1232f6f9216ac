/* step_forecast: the predicted time of a bench's step on a GPU that is not here.  Nothing is measured. */
#ifndef KILN_TASK_STEP_FORECAST_H
#define KILN_TASK_STEP_FORECAST_H

#include "ops/forecast.h"
#include "task/step_bench.h"

/* Seconds, on a cool chip, and on one that is warm from work. */
struct step_range {
    double cool, hot;
};

struct step_forecast {
    struct forecast ops;            /* of a whole step, or of a forward without training */
    struct step_range step, passes; /* of the step, and of forward and backward only; launches run one after
                                     * the other */
    struct step_range step_beside, passes_beside; /* with weight gradients beside the rest of the backward */
    struct op_ceilings ceilings; /* the best rate of any product in the table, and of copies */
};

/* Predicts a bench that was planned for forecast_device(chip); f must not move while f->ops is used. */
struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct gpu_chip *chip);

/* Appends the rows of op_report and, below, a row for each kernel: launches, milliseconds, bytes that it really moves. */
void step_forecast_append(struct buf *text, const struct step_forecast *f);

#endif
