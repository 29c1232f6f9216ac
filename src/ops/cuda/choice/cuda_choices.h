/* cuda_choices: where several ways lead to one result, the fastest of them: timing on the device, and the file in
 * which winners are kept (product_cache.h), for products and attention alike. */
#ifndef KILN_OPS_CUDA_CHOICE_CUDA_CHOICES_H
#define KILN_OPS_CUDA_CHOICE_CUDA_CHOICES_H

#include "ops/cuda/choice/choice_timing.h"
#include "ops/cuda/choice/product_cache.h"

#include <stddef.h>

struct CUstream_st;
struct CUevent_st;

enum { CUDA_CHOICES_MACHINE_BYTES = 160 };

struct cuda_choices {
    struct product_cache cache;
    char machine[CUDA_CHOICES_MACHINE_BYTES];          /* what choices depend on beside shapes; begins keys */
    struct CUevent_st *events[CHOICE_TIMING_RUNS + 1]; /* around runs that are timed */
    struct CUstream_st *stream;                        /* of what is timed now */
    struct choice_stream timing;                       /* of that stream */
};

/* Choices of a context with what the user's file knows; after a failure they must still be closed. */
struct status cuda_choices_open(struct cuda_choices **choices);
void cuda_choices_close(struct cuda_choices *choices);

/* Keeps choices in the directory of a run too, and takes them from there first. */
void cuda_choices_keep_in(struct cuda_choices *choices, const char *directory);

/* Takes those of a checkpoint before any; where it was written on another GPU, driver or library, the log says so. */
void cuda_choices_take(struct cuda_choices *choices, const void *text, size_t n, const char *source);

/* Median microseconds of a run (choice_timing.h); infinite if one is refused.  Waits for the device, so never while a
 * graph is captured. */
double cuda_choices_time(struct cuda_choices *choices, struct CUstream_st *stream, bool (*run)(void *self),
                         void *self);
bool cuda_choices_is_capturing(struct CUstream_st *stream);

/* What is kept for this GPU, and where, in `text` [n]: a line of products, and those of attention. */
void cuda_choices_describe(char *text, size_t n);

#endif
