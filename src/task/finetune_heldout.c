#include "task/finetune_heldout.h"

#include <stdlib.h>

struct status finetune_heldout_init(struct finetune_heldout *h, const struct example_source *source,
                                    int64_t batch_size, const struct batch_layout *layout, int32_t pad_id)
{
    *h = (struct finetune_heldout){0};
    TRY(example_batches_init_sorted(&h->batches, source, batch_size, pad_id));
    struct status s = batch_step_init(&h->one, 1, layout, example_batches_limits(&h->batches));
    h->indices = malloc((size_t)batch_size * sizeof *h->indices);
    if (!failed(s) && h->indices == NULL) {
        s = status_error(STATUS_MEMORY, "out of memory for the held-out %s", source->name);
    }
    if (failed(s)) {
        finetune_heldout_fini(h);
    }
    return s;
}

void finetune_heldout_fini(struct finetune_heldout *h)
{
    free(h->indices);
    batch_step_fini(&h->one);
    example_batches_fini(&h->batches);
    *h = (struct finetune_heldout){0};
}

struct status finetune_heldout_run(struct finetune_heldout *h, struct trainer *t,
                                   struct trainer_result *result)
{
    *result = (struct trainer_result){0};
    for (int64_t i = 0; i < example_batches_per_epoch(&h->batches); i++) {
        struct trainer_result r;
        example_batches_sorted(&h->batches, i, &h->one.micro[0], h->indices);
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
