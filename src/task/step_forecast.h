/* step_forecast: the predicted time of a bench's step on a machine that is not here.  Nothing is measured. */
#ifndef KILN_TASK_STEP_FORECAST_H
#define KILN_TASK_STEP_FORECAST_H

#include "ops/machines.h"
#include "ops/roofline.h"
#include "task/step_bench.h"

struct step_forecast {
    struct roofline ops;     /* of a whole step, or of a forward without training, before `reached` */
    double step_s, passes_s; /* of the step, and of forward and backward only, in seconds */
    struct op_ceilings ceilings;
};

/* Predicts a bench that was planned for machine_device, by the machine's rates; f must not move while f->ops
 * is used.  STATUS_USAGE: the rate of products in the bench's precision is not known. */
struct status step_forecast_run(struct step_forecast *f, const struct step_bench *b,
                                const struct machine_rates *rates);

#endif
