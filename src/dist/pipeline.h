/* pipeline: which stage of a pipeline does what when.  1F1B (Narayanan et al. 2019, PipeDream, section 3.3; 2021,
 * arXiv:2104.04473, section 2.2): a stage runs forward for as many micro-batches as there are stages behind it, then one
 * forward and one backward in turn, then the backwards that are left.  So stage s of S holds the activations of at most S - s
 * micro-batches, whatever their number.
 *
 * The rule: plain numbers; train/pipeline_step.h carries them out.  Before a forward a stage receives the output of the
 * stage before it, if there is one, and behind it it sends its own on; a backward receives from the stage behind and sends
 * to the one before. */
#ifndef KILN_DIST_PIPELINE_H
#define KILN_DIST_PIPELINE_H

#include <stdint.h>

enum pipeline_work { PIPELINE_FORWARD, PIPELINE_BACKWARD };

struct pipeline_action {
    enum pipeline_work work;
    int64_t micro;
};

/* Action i of 2 n_micro, of stage `stage` of n_stages. */
struct pipeline_action pipeline_action(int64_t i, int stage, int n_stages, int64_t n_micro);

/* The most micro-batches between their forward and the end of their backward.  Micro-batch m may use slot m modulo this. */
int64_t pipeline_in_flight(int stage, int n_stages, int64_t n_micro);

/* The first layer of a stage, and with n_stages in its place the number of layers: numbers of layers differ by one at
 * most. */
int64_t pipeline_first_layer(int64_t n_layers, int stage, int n_stages);

#endif
