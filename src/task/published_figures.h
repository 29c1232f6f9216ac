/* published_figures: what others have published of training a model, to stand beside a plan.  Each figure
 * names its source. */
#ifndef KILN_TASK_PUBLISHED_FIGURES_H
#define KILN_TASK_PUBLISHED_FIGURES_H

#include "nn/model.h"

struct published_figure {
    const char *model;                     /* model_type.name */
    const char *device;                    /* of ops/machines.h */
    int64_t layers, hidden, length, world; /* world 0: of any number of devices */
    const char *figure, *source;
};

/* The figure number i, from 0, for this model in 16-bit precision, or NULL after the last.  world 0: those
 * that are for no number of devices, or for all. */
const struct published_figure *published_figure_at(int i, const struct model *model, const char *device,
                                                   int64_t length, int64_t world);

#endif
