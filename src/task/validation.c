#include "task/validation.h"

#include "task/together.h"

struct status validation_init(struct validation *v, const struct batch_source *source)
{
    *v = (struct validation){.source = source};
    return batch_step_init(&v->room, 1, source->layout, source->limits);
}

void validation_fini(struct validation *v)
{
    batch_step_fini(&v->room);
}

/* This rank's micro-batches, every size-th; counts[] gets their labels.  Behind the last they begin again. */
static struct status add_batches(struct validation *v, struct trainer *t, const struct comm *data,
                                 int64_t first, int64_t end, struct batch_step *counts)
{
    int64_t n = v->source->heldout_batches(v->source->self, INT64_MAX);
    for (int64_t i = first + data->rank; i < end; i += data->size) {
        TRY(v->source->heldout(v->source->self, INT64_MAX, i % n, v->room.micro));
        batch_step_count(&v->room);
        trainer_evaluate_batch(t, v->room.micro);
        exec_synchronize(&t->net.x); /* before the room is filled again */
        for (int k = 0; k < BATCH_MOST_FIELDS; k++) {
            counts->n_labels[k] += v->room.n_labels[k];
        }
    }
    return status_ok();
}

/* The sums of all ranks; those with parts of one model have the same. */
static struct status sum_results(const struct comm *data, struct status so_far, struct trainer_result *r)
{
    double numbers[2 * MODEL_MOST_SUMS] = {0};
    for (int i = 0; i < r->n_sums; i++) {
        numbers[2 * i] = r->sums[i].sum;
        numbers[2 * i + 1] = (double)r->sums[i].count;
    }
    TRY(together_sum(data, so_far, numbers, 2 * MODEL_MOST_SUMS));
    for (int i = 0; i < r->n_sums; i++) {
        r->sums[i].sum = numbers[2 * i];
        r->sums[i].count = (int64_t)numbers[2 * i + 1];
    }
    return status_ok();
}

struct status validation_run(struct validation *v, struct trainer *t, const struct comm *data, int64_t first,
                             int64_t n, int64_t micro, struct trainer_result *result)
{
    struct batch_step counts = {0};
    *result = (struct trainer_result){0};
    trainer_evaluate_begin(t);
    struct status s = add_batches(v, t, data, first / micro, (first + n) / micro, &counts);
    struct status read = trainer_evaluate_end(t, &counts, result);
    return sum_results(data, failed(s) ? s : read, result);
}
