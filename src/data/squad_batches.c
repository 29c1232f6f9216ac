#include "data/squad_batches.h"

static int64_t length(const void *self, int64_t i)
{
    return squad_feature_length(self, i);
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct squad_features *f = self;
    squad_feature_fill(f, i, text_batch_add(out, length(f, i), squad_feature_first_length(f, i), -1, key));
    text_batch_set_span(out, f->features[i].start, f->features[i].end);
}

struct example_source squad_batches_source(const struct squad_features *f)
{
    return (struct example_source){
        .name = "features", .self = f, .n = f->n, .max_length = f->max_length, .length = length, .add = add};
}
