#include "data/gpt/window_batches.h"

#include "core/integers.h"
#include "data/text_batch.h"

static struct set_blend_sample sample_of(const struct window_batches *w, int64_t g)
{
    return w->blend != NULL ? set_blend_at(w->blend, g) : (struct set_blend_sample){.number = g};
}

/* The samples before step `step`, and its own. */
static struct batch_growth_step sizes_at(const struct window_batches *w, int64_t step)
{
    struct batch_growth fixed = {.batch = w->batch_size};
    return batch_growth_at(w->growth.batch > 0 ? &w->growth : &fixed, step);
}

static struct status add_sample(const struct window_batches *w, int64_t g, struct batch *b)
{
    struct set_blend_sample s = sample_of(w, g);
    return token_windows_add(&w->sets[s.set], s.number, (int32_t)g, b);
}

static struct status fill(const void *self, int64_t step, struct batch_step *out)
{
    const struct window_batches *w = self;
    struct batch_growth_step sizes = sizes_at(w, step);
    out->n_to_fill = sizes.batch / w->micro_size;
    for (int64_t k = 0; k < out->n_micro; k++) {
        int64_t number = batch_step_filled_number(out, k, int_larger(w->n_groups, 1), out->n_to_fill);
        int64_t first = sizes.before + number * w->micro_size;
        batch_clear(&out->micro[k]);
        for (int64_t i = 0; number >= 0 && i < w->micro_size; i++) {
            TRY(add_sample(w, first + i, &out->micro[k]));
        }
        batch_finish(&out->micro[k], 0);
    }
    batch_step_count(out);
    return status_ok();
}

static int64_t heldout_count(const struct window_batches *w)
{
    return w->blend != NULL ? w->blend->n : token_windows_heldout_count(w->sets);
}

static int64_t heldout_batches(const void *self, int64_t n)
{
    const struct window_batches *w = self;
    return (int_smaller(n, heldout_count(w)) + w->micro_size - 1) / w->micro_size;
}

static struct status heldout(const void *self, int64_t n, int64_t index, struct batch *out)
{
    const struct window_batches *w = self;
    int64_t first = index * w->micro_size,
            end = int_smaller(int_smaller(n, heldout_count(w)), first + w->micro_size);
    batch_clear(out);
    for (int64_t i = first; i < end; i++) {
        struct set_blend_sample s = sample_of(w, i);
        TRY(token_windows_add_heldout(&w->sets[s.set], s.number, (int32_t)i, out));
    }
    batch_finish(out, 0);
    return status_ok();
}

/* Counts the first tokens of each set, in proportion to its samples: enough to separate frequent words from
 * rare ones. */
static struct status count_words(const void *self, double *counts, int64_t vocab_size)
{
    enum { MOST = 1 << 24 };
    const struct window_batches *w = self;
    if (w->blend == NULL) {
        return token_windows_count_words(w->sets, MOST, counts, vocab_size);
    }
    for (int d = 0; d < w->blend->n_sets; d++) {
        TRY(token_windows_count_words(&w->sets[d], (int64_t)(w->blend->shares[d] * MOST), counts,
                                      vocab_size));
    }
    return status_ok();
}

struct batch_source window_batches_source(const struct window_batches *w, int64_t n_micro)
{
    int64_t length = w->sets->length;
    return (struct batch_source){.self = w,
                                 .layout = &text_batch_layout,
                                 .limits = text_batch_limits(w->micro_size, length, length),
                                 .n_micro = n_micro,
                                 .fill = fill,
                                 .heldout_batches = heldout_batches,
                                 .heldout = heldout,
                                 .count_words = count_words};
}
