/* vector_places: where the vectors are that passes read in fp32, in a network without a whole fp32 master:
 * side by side in a buffer of their own, in the order of the flat buffers
 * (docs/decisions/0005_two_copies_of_weights.md).
 *
 * As in train/gradient_rooms.h, a parameter's place is its offset in a second table, so models need not
 * know. */
#ifndef KILN_PASS_VECTOR_PLACES_H
#define KILN_PASS_VECTOR_PLACES_H

#include "core/param_shard.h"
#include "dev/device.h"

struct vector_places {
    /* the parameters: offsets of vectors in their buffer, all others as they were */
    struct param_table table;
    int64_t n;          /* elements of that buffer */
    bool rounds_biases; /* biases of products are read with the matrices */
};

/* STATUS_MEMORY. */
struct status vector_places_init(struct vector_places *v, const struct param_table *params,
                                 const struct device *device);
void vector_places_fini(struct vector_places *v);

/* Whether the parameter is one of them. */
bool vector_places_has(const struct vector_places *v, const struct param *p);

/* Elements of vectors before this element of a flat buffer of `params`: where a shard's vectors begin. */
int64_t vector_places_before(const struct vector_places *v, const struct param_table *params,
                             int64_t element);

/* The next run of vectors in a flat buffer's elements [shard->begin, shard->end): *n of them from element
 * *from, which are *at in their buffer.  It moves shard->begin behind them; false: there are none. */
bool vector_places_next(const struct vector_places *v, const struct param_table *params,
                        struct param_shard *shard, int64_t *from, int64_t *at, int64_t *n);

#endif
