#include "data/squad_batches.h"

#include "core/rng.h"

#include <stdlib.h>

enum { PURPOSE_ORDER = 0x73717561 };

struct status squad_batches_init(struct squad_batches *b, const struct squad_features *f, int64_t batch_size,
                                 int64_t n_micro, uint64_t seed, int32_t pad_id)
{
    *b = (struct squad_batches){
        .features = f, .batch_size = batch_size, .n_micro = n_micro, .seed = seed, .pad_id = pad_id};
    TRY(batch_check_cut(batch_size, n_micro));
    if (f->n == 0) {
        return status_error(STATUS_DATA, "there are no features to train on");
    }
    return status_ok();
}

/* A feature and its length, for sorting. */
struct sized {
    int64_t length, feature;
};

static int longest_first(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->length != y->length) {
        return x->length > y->length ? -1 : 1;
    }
    return x->feature < y->feature ? -1 : x->feature > y->feature;
}

struct status squad_batches_init_sorted(struct squad_batches *b, const struct squad_features *f,
                                        int64_t batch_size, int32_t pad_id)
{
    *b = (struct squad_batches){.features = f, .batch_size = batch_size, .n_micro = 1, .pad_id = pad_id};
    struct sized *sorted = malloc(((size_t)f->n + 1) * sizeof *sorted);
    b->order = malloc(((size_t)f->n + 1) * sizeof *b->order);
    if (sorted == NULL || b->order == NULL) {
        free(sorted);
        squad_batches_fini(b);
        return status_error(STATUS_MEMORY, "out of memory for the order of %lld features", (long long)f->n);
    }
    for (int64_t i = 0; i < f->n; i++) {
        sorted[i] = (struct sized){squad_feature_length(f, i), i};
    }
    qsort(sorted, (size_t)f->n, sizeof *sorted, longest_first);
    for (int64_t i = 0; i < f->n; i++) {
        b->order[i] = sorted[i].feature;
    }
    free(sorted);
    return status_ok();
}

void squad_batches_fini(struct squad_batches *b)
{
    free(b->order);
    *b = (struct squad_batches){0};
}

int64_t squad_batches_per_epoch(const struct squad_batches *b)
{
    return (b->features->n + b->batch_size - 1) / b->batch_size;
}

struct batch_limits squad_batches_limits(const struct squad_batches *b)
{
    return bert_batch_limits(b->batch_size / b->n_micro, b->features->max_length, 0);
}

static void add_feature(const struct squad_features *f, int64_t i, int32_t key, struct batch *out)
{
    int64_t n = squad_feature_length(f, i);
    squad_feature_fill(f, i, bert_batch_add(out, n, squad_feature_first_length(f, i), -1, key));
    bert_batch_set_span(out, f->features[i].start, f->features[i].end);
}

void squad_batches_step(const struct squad_batches *b, int64_t step, struct batch_step *out)
{
    int64_t per_epoch = squad_batches_per_epoch(b), n = b->features->n, size = b->batch_size / b->n_micro;
    uint64_t key = rng_key(rng_key(b->seed, PURPOSE_ORDER), (uint64_t)((step - 1) / per_epoch));
    int64_t first = (step - 1) % per_epoch * b->batch_size;
    for (int64_t k = 0; k < b->n_micro; k++) {
        batch_clear(&out->micro[k]);
        for (int64_t i = k * size; i < (k + 1) * size && first + i < n; i++) {
            int64_t feature = (int64_t)rng_permute(key, (uint64_t)n, (uint64_t)(first + i));
            add_feature(b->features, feature, (int32_t)i, &out->micro[k]);
        }
        batch_finish(&out->micro[k], b->pad_id);
    }
    batch_step_count(out);
}

void squad_batches_sorted(const struct squad_batches *b, int64_t index, struct batch *out, int64_t *indices)
{
    int64_t first = index * b->batch_size;
    batch_clear(out);
    for (int64_t i = 0; i < b->batch_size && first + i < b->features->n; i++) {
        indices[i] = b->order[first + i];
        add_feature(b->features, indices[i], (int32_t)i, out);
    }
    batch_finish(out, b->pad_id);
}
