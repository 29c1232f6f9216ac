/* weight_source: where weights come from that are written to files, a parameter at a time: code that writes a
 * file need not know whether they lie in memory or in other files, and nobody needs memory for all of
 * them. */
#ifndef KILN_MODEL_WEIGHT_SOURCE_H
#define KILN_MODEL_WEIGHT_SOURCE_H

#include "core/param.h"

struct weight_source {
    void *self;

    /* The values of a parameter in its real shape, dense in host memory; valid until the next call. */
    struct status (*read)(void *self, const struct param *p, tensor *values);
};

/* A source from a flat buffer of the table's layout in host memory, which must outlive it. */
struct weight_source weight_source_of(const tensor *flat);

/* `other`, or where it is NULL the flat buffer. */
struct weight_source weight_source_either(const struct weight_source *other, const tensor *flat);

/* A place for weights that are read from files, a parameter at a time: code that reads a file need not know
 * which copies of a parameter are kept, where, and by which rank. */
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
