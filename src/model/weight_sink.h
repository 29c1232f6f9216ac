/* weight_sink: where weights that are read from files go, a parameter at a time: code that reads a file need
 * not know which copies of a parameter are kept, where, and by which rank, and nobody needs memory for all of
 * them. */
#ifndef KILN_MODEL_WEIGHT_SINK_H
#define KILN_MODEL_WEIGHT_SINK_H

#include "core/param.h"

struct weight_sink {
    void *self;

    /* Host memory, fp32 or fp64, for the values of a parameter, in its real shape.  It may hold anything,
     * and is valid until the next call.  A null tensor: they are not wanted. */
    struct status (*place)(void *self, const struct param *p, tensor *values);

    /* Takes what was written there: all rows, or only the first. */
    struct status (*put)(void *self, const struct param *p, tensor values);

    /* The values of a parameter as they are, in host memory and in any dtype; valid until the next call. */
    struct status (*current)(void *self, const struct param *p, tensor *values);
};

/* A sink into a flat buffer of the table's layout in host memory, which must outlive it. */
struct weight_sink weight_sink_of(tensor *flat);

#endif
