/* vector_places: the places of the vectors that passes read in fp32, in a network without a complete fp32
 * master: one after the other in a buffer of their own, in the order of the flat buffers
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
    int64_t n_layers;   /* matrices outside of these layers are in the buffer too; 0: no matrix is */
};

/* Finds the places of the vectors of `params` on a device.  `n_layers` is 0 unless matrices of that many
 * layers alone are rounded (MODEL_INT8_LAYERS).  STATUS_MEMORY. */
struct status vector_places_init(struct vector_places *v, const struct param_table *params,
                                 const struct device *device, int64_t n_layers);
void vector_places_fini(struct vector_places *v);

/* Whether the parameter is in the buffer. */
bool vector_places_has(const struct vector_places *v, const struct param *p);

/* The number of elements of vectors before this element of a flat buffer of `params`: there a shard's vectors
 * begin in their buffer. */
int64_t vector_places_before(const struct vector_places *v, const struct param_table *params,
                             int64_t element);

/* Finds the next run of vectors in a flat buffer's elements [shard->begin, shard->end): *n elements from
 * element *from on, which begin at *at in their own buffer.  Moves shard->begin to the end of the run; false:
 * there are no more. */
bool vector_places_next(const struct vector_places *v, const struct param_table *params,
                        struct param_shard *shard, int64_t *from, int64_t *at, int64_t *n);

#endif
