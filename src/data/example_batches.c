#include "data/example_batches.h"

#include "core/rng.h"

enum { PURPOSE_ORDER = 0x73717561 };

struct status example_batches_init(struct example_batches *b, const struct example_source *source,
                                   int64_t batch_size, int64_t n_micro, uint64_t seed, int32_t pad_id)
{
    *b = (struct example_batches){
        .source = *source, .batch_size = batch_size, .n_micro = n_micro, .seed = seed, .pad_id = pad_id};
    TRY(batch_check_cut(batch_size, n_micro));
    FAIL_IF(source->n == 0, STATUS_DATA, "there are no %s to train on", source->name);
    return status_ok();
}

int64_t example_batches_per_epoch(const struct example_batches *b)
{
    return (b->source.n + b->batch_size - 1) / b->batch_size;
}

struct batch_limits example_batches_limits(const struct example_batches *b)
{
    int64_t each = b->source.n_sequences > 0 ? b->source.n_sequences : 1;
    return text_batch_limits(b->batch_size / b->n_micro * each, b->source.max_length, 0);
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
            int64_t example = (int64_t)rng_permute(key, (uint64_t)n, (uint64_t)(first + i));
            b->source.add(b->source.self, example, (int32_t)i, &out->micro[k]);
        }
        batch_finish(&out->micro[k], b->pad_id);
    }
    batch_step_count(out);
}
