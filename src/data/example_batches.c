#include "data/example_batches.h"

#include "core/rng.h"

#include <stdlib.h>

enum { PURPOSE_ORDER = 0x73717561 };

struct status example_batches_init(struct example_batches *b, const struct example_source *source,
                                   int64_t batch_size, int64_t n_micro, uint64_t seed, int32_t pad_id)
{
    *b = (struct example_batches){
        .source = *source, .batch_size = batch_size, .n_micro = n_micro, .seed = seed, .pad_id = pad_id};
    TRY(batch_check_cut(batch_size, n_micro));
    if (source->n == 0) {
        return status_error(STATUS_DATA, "there are no %s to train on", source->name);
    }
    return status_ok();
}

/* An example and its length, for sorting. */
struct sized {
    int64_t length, example;
};

static int longest_first(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    if (x->length != y->length) {
        return x->length > y->length ? -1 : 1;
    }
    return x->example < y->example ? -1 : x->example > y->example;
}

struct status example_batches_init_sorted(struct example_batches *b, const struct example_source *source,
                                          int64_t batch_size, int32_t pad_id)
{
    *b =
        (struct example_batches){.source = *source, .batch_size = batch_size, .n_micro = 1, .pad_id = pad_id};
    struct sized *sorted = malloc(((size_t)source->n + 1) * sizeof *sorted);
    b->order = malloc(((size_t)source->n + 1) * sizeof *b->order);
    if (sorted == NULL || b->order == NULL) {
        free(sorted);
        example_batches_fini(b);
        return status_error(STATUS_MEMORY, "out of memory for the order of %lld %s", (long long)source->n,
                            source->name);
    }
    for (int64_t i = 0; i < source->n; i++) {
        sorted[i] = (struct sized){source->length(source->self, i), i};
    }
    qsort(sorted, (size_t)source->n, sizeof *sorted, longest_first);
    for (int64_t i = 0; i < source->n; i++) {
        b->order[i] = sorted[i].example;
    }
    free(sorted);
    return status_ok();
}

void example_batches_fini(struct example_batches *b)
{
    free(b->order);
    *b = (struct example_batches){0};
}

int64_t example_batches_per_epoch(const struct example_batches *b)
{
    return (b->source.n + b->batch_size - 1) / b->batch_size;
}

struct batch_limits example_batches_limits(const struct example_batches *b)
{
    return bert_batch_limits(b->batch_size / b->n_micro, b->source.max_length, 0);
}

static void add(const struct example_batches *b, int64_t i, int64_t key, struct batch *out)
{
    b->source.add(b->source.self, i, (int32_t)key, out);
}

void example_batches_step(const struct example_batches *b, int64_t step, struct batch_step *out)
{
    int64_t per_epoch = example_batches_per_epoch(b), n = b->source.n, size = b->batch_size / b->n_micro;
    uint64_t key = rng_key(rng_key(b->seed, PURPOSE_ORDER), (uint64_t)((step - 1) / per_epoch));
    int64_t first = (step - 1) % per_epoch * b->batch_size;
    for (int64_t k = 0; k < out->n_micro; k++) {
        int64_t begin = batch_step_number(out, k) * size;
        batch_clear(&out->micro[k]);
        for (int64_t i = begin; i < begin + size && first + i < n; i++) {
            add(b, (int64_t)rng_permute(key, (uint64_t)n, (uint64_t)(first + i)), i, &out->micro[k]);
        }
        batch_finish(&out->micro[k], b->pad_id);
    }
    batch_step_count(out);
}

void example_batches_sorted(const struct example_batches *b, int64_t index, struct batch *out,
                            int64_t *indices)
{
    int64_t first = index * b->batch_size;
    batch_clear(out);
    for (int64_t i = 0; i < b->batch_size && first + i < b->source.n; i++) {
        indices[i] = b->order[first + i];
        add(b, indices[i], i, out);
    }
    batch_finish(out, b->pad_id);
}
