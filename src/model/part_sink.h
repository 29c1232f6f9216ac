/* part_sink: a weight_sink for all parameters of a model, before one for a part of it (core/param.h): what
 * the part has not is not asked for, and of a tensor that it has a slice of, the slice is taken out of the
 * whole.  It keeps memory for one tensor. */
#ifndef KILN_MODEL_PART_SINK_H
#define KILN_MODEL_PART_SINK_H

#include "model/weight_sink.h"

struct part_sink {
    const struct param_table *params;
    const struct weight_sink *to;
    void *memory; /* owned; a whole tensor */
};

/* `params` is the part's table, `to` takes its parameters; both are borrowed. */
struct weight_sink part_sink_open(struct part_sink *s, const struct param_table *params,
                                  const struct weight_sink *to);
void part_sink_close(struct part_sink *s);

#endif
