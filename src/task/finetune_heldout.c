#include "task/finetune_heldout.h"

struct status finetune_heldout_init(struct finetune_heldout *h, const struct example_source *source,
                                    int64_t batch_size, const struct batch_layout *layout, int32_t pad_id)
{
    struct batch_limits limits = text_batch_limits(batch_size, source->max_length, 0);
    *h = (struct finetune_heldout){0};
    TRY(sorted_batches_init(&h->batches, source, limits, pad_id));
    struct status s = batch_step_init(&h->one, 1, layout, limits);
    if (failed(s)) {
        finetune_heldout_fini(h);
    }
    return s;
}

void finetune_heldout_fini(struct finetune_heldout *h)
{
    batch_step_fini(&h->one);
    sorted_batches_fini(&h->batches);
    *h = (struct finetune_heldout){0};
}

struct status finetune_heldout_run(struct finetune_heldout *h, struct trainer *t,
                                   struct trainer_result *result)
{
    *result = (struct trainer_result){0};
    for (int64_t i = 0; i < h->batches.n; i++) {
        struct trainer_result r;
        sorted_batches_fill(&h->batches, i, &h->one.micro[0]);
        batch_step_count(&h->one);
        TRY(trainer_evaluate(t, &h->one, &r));
        result->n_sums = r.n_sums;
        for (int k = 0; k < r.n_sums; k++) {
            result->sums[k].of = r.sums[k].of;
            result->sums[k].sum += r.sums[k].sum;
            result->sums[k].count += r.sums[k].count;
        }
    }
    return status_ok();
}
