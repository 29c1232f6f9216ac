/* pipeline: the schedule of a pipeline's stages.  1F1B (Narayanan et al. 2019, PipeDream, section 3.3; 2021,
 * arXiv:2104.04473, section 2.2): a stage first runs one forward for each stage after it, then one forward
 * and one backward alternately, then the remaining backwards.  So stage s of S holds the activations of at
 * most S - s micro-batches, however many there are.
 *
 * Interleaved (2021, section 2.3): each stage has several chunks of layers; part c * S + s of the model is
 * chunk c of stage s.  Micro-batches go S at a time: these S through the first chunk, then the same S through
 * the second, and so on; backwards from the last chunk to the first.  With n chunks the bubble is n times
 * smaller, and a stage sends n times more.
 *
 * This file computes the schedule; train/pipeline_step.h runs it.  Before a forward a stage receives the
 * output of the part before, if there is one, and after it sends its own to the next.  A backward receives
 * from the next part and sends to the one before. */
#ifndef KILN_DIST_PIPELINE_H
#define KILN_DIST_PIPELINE_H

#include "core/param.h"
#include "core/status.h"

#include <stdio.h>

enum pipeline_work { PIPELINE_FORWARD, PIPELINE_BACKWARD };

struct pipeline_shape {
    int n_stages, n_chunks; /* chunks of each stage; 1 chunk: plain 1F1B */
    int64_t n_micro;
};

struct pipeline_action {
    enum pipeline_work work;
    int chunk;
    int64_t micro;
};

/* STATUS_USAGE: several chunks need a multiple of n_stages micro-batches. */
struct status pipeline_check(const struct pipeline_shape *p);

/* The number of actions of each stage, and the i-th action of one. */
int64_t pipeline_n_actions(const struct pipeline_shape *p);
struct pipeline_action pipeline_action(const struct pipeline_shape *p, int stage, int64_t i);

/* The most micro-batches of a chunk between their forward and the end of their backward.  Micro-batch m may
 * use slot m modulo this. */
int64_t pipeline_in_flight(const struct pipeline_shape *p, int stage, int chunk);

/* The part of the model that a stage's chunk is, of n_stages * n_chunks. */
int pipeline_part(const struct pipeline_shape *p, int stage, int chunk);

/* The division of layers into parts, whose sizes differ by at most one: sizes count the layers alone, or
 * input layer and heads as a layer each too, so that the first and the last part have fewer. */
enum pipeline_partition { PIPELINE_BY_LAYERS, PIPELINE_BY_LAYERS_AND_EMBEDDINGS };

/* The layers of a part as struct param numbers them: the input layer with the first, the heads with the
 * last. */
struct param_range pipeline_layers(int64_t n_layers, int part, int n_parts, enum pipeline_partition by);

/* Simulates the schedule of all stages, where the forward of a complete stage takes `forward`, its backward
 * `backward`, and messages no time.  *bubble: how much longer a step takes than one stage works, as a
 * fraction of its work: (n_stages - 1) / n_micro / n_chunks where all goes well.  STATUS_MEMORY;
 * STATUS_INTERNAL if the stages wait for each other for ever. */
struct status pipeline_bubble(const struct pipeline_shape *p, double forward, double backward,
                              double *bubble);

/* Seconds of a stage's work on one micro-batch, all its chunks together: [n_stages] each, above 0; and of a
 * message from a stage to the next, or from the next to it, of the last stage's to the first. */
struct pipeline_times {
    const double *forward, *backward, *message;
};

/* Simulates the schedule with the times of each stage: *seconds from the first forward to the last backward.
 * A message is under way while both stages work on.  Errors are those of pipeline_bubble. */
struct status pipeline_seconds(const struct pipeline_shape *p, const struct pipeline_times *times,
                               double *seconds);

/* Writes a line for each stage: "stage 1: F0 F1 B0 ...", forward and backward of each micro-batch; with
 * several chunks "F0.1", of chunk 1. */
void pipeline_print(FILE *f, const struct pipeline_shape *p);

#endif
