#include "data/bert/bert_form.h"

#include "core/integers.h"
#include "data/bert/masking.h"

#include <math.h>

enum { MIN_SEQ_LENGTH = 5 }; /* one token in each segment of [CLS] A [SEP] B [SEP] */

static int64_t micro_size(const struct bert_loader_config *c)
{
    return c->train_batch_size / c->gradient_accumulation_steps;
}

static struct status check_sizes(const struct bert_loader_config *c)
{
    if (c->max_seq_length < MIN_SEQ_LENGTH) {
        return status_error(STATUS_USAGE, "max_seq_length %lld is below %d: [CLS] A [SEP] B [SEP]",
                            (long long)c->max_seq_length, MIN_SEQ_LENGTH);
    }
    if (c->max_predictions_per_seq < 1 || c->max_predictions_per_seq > c->max_seq_length) {
        return status_error(STATUS_USAGE, "max_predictions_per_seq %lld is outside 1..%lld (max_seq_length)",
                            (long long)c->max_predictions_per_seq, (long long)c->max_seq_length);
    }
    TRY(batch_check_cut(c->train_batch_size, c->gradient_accumulation_steps));
    int64_t n = c->train_batch_size / c->gradient_accumulation_steps;
    int64_t most = (INT32_MAX - BATCH_TOKEN_BUCKET) / c->max_seq_length;
    if (n > most || c->train_batch_size > INT32_MAX) {
        return status_error(STATUS_USAGE,
                            "a micro-batch of %lld sequences of %lld tokens is too large (at most %lld); "
                            "raise gradient_accumulation_steps",
                            (long long)n, (long long)c->max_seq_length, (long long)most);
    }
    return status_ok();
}

struct status bert_form_check(const struct bert_loader_config *c)
{
    TRY(check_sizes(c));
    if (!(c->masked_lm_prob > 0 && c->masked_lm_prob <= 1)) {
        return status_error(STATUS_USAGE, "masked_lm_prob %g is outside (0, 1]", c->masked_lm_prob);
    }
    for (int i = 0; i < c->n_shorter; i++) {
        int64_t n = c->shorter[i].max_seq_length;
        CHECK(n >= MIN_SEQ_LENGTH && n < c->max_seq_length && micro_size(c) * c->max_seq_length % n == 0,
              "micro-batches of sequences of %lld tokens", (long long)n);
    }
    CHECK(!ramp_is_given(&c->n_micro) ||
              (c->n_micro.from >= 1 && c->n_micro.to <= (double)c->gradient_accumulation_steps),
          "a ramp from %g to %g micro-batches", c->n_micro.from, c->n_micro.to);
    CHECK(c->n_groups <= 1 || (c->gradient_accumulation_steps % c->n_groups == 0 &&
                               fmod(c->n_micro.from, (double)c->n_groups) == 0),
          "%lld groups of %lld micro-batches, at first of %g", (long long)c->n_groups,
          (long long)c->gradient_accumulation_steps, c->n_micro.from);
    if (c->even_masks && c->max_seq_length > MASKING_MOST_TURNS) {
        return status_error(STATUS_USAGE,
                            "even_masks needs sequences of at most %d tokens, but they may have %lld",
                            MASKING_MOST_TURNS, (long long)c->max_seq_length);
    }
    if (!(c->short_seq_prob >= 0 && c->short_seq_prob <= 1)) {
        return status_error(STATUS_USAGE, "short_seq_prob %g is outside [0, 1]", c->short_seq_prob);
    }
    const int32_t special[] = {c->pad_id, c->cls_id, c->sep_id, c->mask_id};
    for (int i = 0; i < 4; i++) {
        CHECK(special[i] >= 0 && special[i] < c->vocab_size, "special token %d of %d", (int)special[i],
              (int)c->vocab_size);
    }
    return status_ok();
}

struct input_form bert_form_frame(const struct bert_loader_config *c)
{
    struct input_frame frame = input_frame_bert(c->cls_id, c->sep_id);
    return c->no_nsp ? frame.one : frame.pair;
}

int64_t bert_form_most_tokens(const struct bert_loader_config *c, int64_t max_seq_length)
{
    struct input_form frame = bert_form_frame(c);
    return max_seq_length - input_form_n_special(&frame);
}

/* As many tokens a micro-batch, whatever the length. */
static int64_t micro_size_at(const struct bert_loader_config *c, int64_t max_seq_length)
{
    return micro_size(c) * c->max_seq_length / max_seq_length;
}

int64_t bert_form_most_sequences(const struct bert_loader_config *c)
{
    int64_t n = micro_size(c);
    for (int i = 0; i < c->n_shorter; i++) {
        int64_t at = micro_size_at(c, c->shorter[i].max_seq_length);
        n = at > n ? at : n;
    }
    return n * c->gradient_accumulation_steps;
}

int64_t bert_form_groups(const struct bert_loader_config *c)
{
    return c->n_groups > 1 ? c->n_groups : 1;
}

/* As many predictions a micro-batch, but for rounding up, whatever the length. */
static int64_t predictions_at(const struct bert_loader_config *c, int64_t max_seq_length)
{
    return (c->max_predictions_per_seq * max_seq_length + c->max_seq_length - 1) / c->max_seq_length;
}

struct batch_limits bert_form_limits(const struct bert_loader_config *c)
{
    struct batch_limits most =
        text_batch_limits(micro_size(c), c->max_seq_length, c->max_predictions_per_seq);
    for (int i = 0; i < c->n_shorter; i++) {
        int64_t n = c->shorter[i].max_seq_length;
        struct batch_limits at = text_batch_limits(micro_size_at(c, n), n, predictions_at(c, n));
        most.n_sequences = int_larger(most.n_sequences, at.n_sequences);
        most.n_labels = int_larger(most.n_labels, at.n_labels);
    }
    return most;
}

struct bert_form bert_form_last(const struct bert_loader *l)
{
    const struct bert_loader_config *c = &l->config;
    return (struct bert_form){.map = &l->map,
                              .max_seq_length = c->max_seq_length,
                              .max_predictions = c->max_predictions_per_seq,
                              .n_micro = c->gradient_accumulation_steps,
                              .micro_size = micro_size(c),
                              .mask_rate = c->masked_lm_prob};
}

struct bert_form bert_form_of(const struct bert_loader *l, int64_t step)
{
    const struct bert_loader_config *c = &l->config;
    struct bert_form f = bert_form_last(l);
    double part = c->part.before != NULL ? c->part.before(c->part.context, step) : 1;
    int i = 0;
    while (i < c->n_shorter && part >= c->shorter[i].until) {
        i++;
    }
    if (i < c->n_shorter) {
        f.map = &l->shorter[i];
        f.max_seq_length = c->shorter[i].max_seq_length;
        f.max_predictions = predictions_at(c, f.max_seq_length);
        f.micro_size = micro_size_at(c, f.max_seq_length);
    }
    if (ramp_is_given(&c->n_micro)) {
        int64_t n = (int64_t)ramp_at(&c->n_micro, part);
        f.n_micro = n - n % bert_form_groups(c);
    }
    if (ramp_is_given(&c->mask_rate)) {
        f.mask_rate = ramp_at(&c->mask_rate, part);
    }
    return f;
}
