/* cuda_choices: takes the fastest of several ways to compute a result, by timing on the device, and keeps the
 * winners in a file (product_cache.h).  For products and for attention. */
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
    /* all that choices depend on besides the shape; keys begin with it */
    char machine[CUDA_CHOICES_MACHINE_BYTES];
    struct CUevent_st *events[CHOICE_TIMING_RUNS + 1]; /* around timed runs */
    struct CUstream_st *stream;                        /* stream of the work being timed */
    struct choice_stream timing;                       /* timing of that stream */
};

/* Opens the choices of a context and reads the user's file; they must be closed even after a failure. */
struct status cuda_choices_open(struct cuda_choices **choices);
void cuda_choices_close(struct cuda_choices *choices);

/* Also keeps choices in the directory of a run, which takes precedence. */
void cuda_choices_keep_in(struct cuda_choices *choices, const char *directory);

/* Reads the choices of a checkpoint, which take precedence over all files.  If it was written with another
 * GPU, driver or library, the log says so. */
void cuda_choices_take(struct cuda_choices *choices, const void *text, size_t n, const char *source);

/* Median microseconds of a run (choice_timing.h); infinite if one is refused.  Waits for the device, so never
 * while a graph is captured. */
double cuda_choices_time(struct cuda_choices *choices, struct CUstream_st *stream, bool (*run)(void *self),
                         void *self);
bool cuda_choices_is_capturing(struct CUstream_st *stream);

/* Describes the choices kept for this GPU, and their file, in `text` [n]: one line for products, then those
 * of attention. */
void cuda_choices_describe(char *text, size_t n);

#endif
