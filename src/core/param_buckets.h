/* param_buckets: groups of adjacent layers, from the heads down.  Ranks sum the gradients of a bucket by one
 * collective, while the backward computes those of the next.  A bucket consists of complete layers, so it is
 * a run of a flat buffer that is complete when the backward of its lowest layer has ended. */
#ifndef KILN_CORE_PARAM_BUCKETS_H
#define KILN_CORE_PARAM_BUCKETS_H

#include "core/param.h"

/* The default size is that of PyTorch's DDP, 25 MiB of fp32 (Li et al. 2020, arXiv:2006.15704).  Buckets by
 * size are fewer than buckets by layer may be: 65 layers of BERT-5B. */
enum { PARAM_MOST_BUCKETS = 96, PARAM_MOST_SIZED = 32, PARAM_BUCKET_ELEMENTS = 25 * 1024 * 1024 / 4 };

struct param_buckets {
    int64_t bounds[PARAM_MOST_BUCKETS + 1]; /* bucket i has the layers [bounds[i + 1], bounds[i]) */
    int n;
};

/* Buckets of the layers [first, end).  A bucket ends with the layer that brings it to `elements` elements; 0:
 * PARAM_BUCKET_ELEMENTS.  They are larger where there would be more than PARAM_MOST_SIZED. */
struct param_buckets param_buckets_of(const struct param_table *t, int64_t first, int64_t end,
                                      int64_t elements);

/* A bucket for each layer of [first, end), so that none is larger than it must be; of some layers each where
 * there would be more than PARAM_MOST_BUCKETS. */
struct param_buckets param_buckets_of_layers(int64_t first, int64_t end);

/* The bucket whose lowest layer this is; -1: none. */
int param_buckets_find(const struct param_buckets *b, int64_t layer);

/* Bucket i has elements [*from, *to) of a flat buffer; and these. */
void param_buckets_range(const struct param_buckets *b, int i, const struct param_table *t, int64_t *from,
                         int64_t *to);
tensor param_buckets_view(const struct param_buckets *b, int i, const struct param_table *t, tensor flat);

#endif
