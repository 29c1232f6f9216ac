/* pipeline: the schedule of a pipeline's stages.  1F1B (Narayanan et al. 2019, PipeDream, section 3.3; 2021,
 * arXiv:2104.04473, section 2.2): a stage runs the forward of as many micro-batches as there are stages after
 * it, then one forward and one backward in turn, then the remaining backwards.  So stage s of S holds the
 * activations of at most S - s micro-batches, however many there are.
 *
 * This file computes the schedule; train/pipeline_step.h runs it.  Before a forward a stage receives the
 * output of the previous stage, if there is one, and after it sends its own to the next.  A backward receives
 * from the next stage and sends to the previous one. */
#ifndef KILN_DIST_PIPELINE_H
#define KILN_DIST_PIPELINE_H

#include "core/param.h"

enum pipeline_work { PIPELINE_FORWARD, PIPELINE_BACKWARD };

struct pipeline_action {
    enum pipeline_work work;
    int64_t micro;
};

/* Action i of 2 n_micro, of stage `stage` of n_stages. */
struct pipeline_action pipeline_action(int64_t i, int stage, int n_stages, int64_t n_micro);

/* The most micro-batches between their forward and the end of their backward.  Micro-batch m may use slot m
 * modulo this. */
int64_t pipeline_in_flight(int stage, int n_stages, int64_t n_micro);

/* The first layer of a stage; for stage == n_stages the number of layers.  Stages differ by at most one
 * layer. */
int64_t pipeline_first_layer(int64_t n_layers, int stage, int n_stages);

/* The layers of a stage as struct param numbers them: the input layer with the first, the heads with the
 * last. */
struct param_range pipeline_layers(int64_t n_layers, int stage, int n_stages);

#endif
