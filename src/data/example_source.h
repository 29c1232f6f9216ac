/* example_source: examples that somebody made, for batches of training (data/example_batches) and of
 * prediction (data/sorted_batches). */
#ifndef KILN_DATA_EXAMPLE_SOURCE_H
#define KILN_DATA_EXAMPLE_SOURCE_H

#include "data/text_batch.h"

/* The code that makes the examples fills it in, and it borrows them. */
struct example_source {
    const char *name; /* examples as messages call them: "features" */
    const void *self;
    int64_t n, max_length; /* the number of examples; the length of the longest sequence */
    int64_t n_sequences;   /* sequences of an example; 0: one */
    int64_t (*length)(const void *self, int64_t i);
    /* Appends example i as a sequence, labels included, with the key of its dropout rows. */
    void (*add)(const void *self, int64_t i, int32_t key, struct batch *out);
};

#endif
