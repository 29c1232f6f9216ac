#include "data/bert/bert_form.h"

#include "data/bert/masking.h"

enum { MIN_SEQ_LENGTH = 5 }; /* one token in each segment of [CLS] A [SEP] B [SEP] */

static struct status check_sizes(const struct bert_loader_config *c)
{
    FAIL_IF(c->max_seq_length < MIN_SEQ_LENGTH, STATUS_USAGE,
            "max_seq_length %lld is below %d: [CLS] A [SEP] B [SEP]", (long long)c->max_seq_length,
            MIN_SEQ_LENGTH);
    FAIL_IF(c->max_predictions_per_seq < 1 || c->max_predictions_per_seq > c->max_seq_length, STATUS_USAGE,
            "max_predictions_per_seq %lld is outside 1..%lld (max_seq_length)",
            (long long)c->max_predictions_per_seq, (long long)c->max_seq_length);
    TRY(batch_check_cut(c->train_batch_size, c->gradient_accumulation_steps));
    int64_t n = c->train_batch_size / c->gradient_accumulation_steps;
    int64_t most = (INT32_MAX - BATCH_TOKEN_BUCKET) / c->max_seq_length;
    FAIL_IF(n > most || c->train_batch_size > INT32_MAX, STATUS_USAGE,
            "a micro-batch of %lld sequences of %lld tokens is too large (at most %lld); "
            "raise gradient_accumulation_steps",
            (long long)n, (long long)c->max_seq_length, (long long)most);
    return status_ok();
}

struct status bert_form_check(const struct bert_loader_config *c)
{
    TRY(check_sizes(c));
    FAIL_IF(!(c->masked_lm_prob > 0 && c->masked_lm_prob <= 1), STATUS_USAGE,
            "masked_lm_prob %g is outside (0, 1]", c->masked_lm_prob);
    CHECK(c->n_groups <= 1 || c->gradient_accumulation_steps % c->n_groups == 0,
          "%lld groups of %lld micro-batches", (long long)c->n_groups,
          (long long)c->gradient_accumulation_steps);
    FAIL_IF(c->even_masks && c->max_seq_length > MASKING_MOST_TURNS, STATUS_USAGE,
            "even_masks needs sequences of at most %d tokens, but they may have %lld", MASKING_MOST_TURNS,
            (long long)c->max_seq_length);
    FAIL_IF(!(c->short_seq_prob >= 0 && c->short_seq_prob <= 1), STATUS_USAGE,
            "short_seq_prob %g is outside [0, 1]", c->short_seq_prob);
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

int64_t bert_form_most_tokens(const struct bert_loader_config *c)
{
    struct input_form frame = bert_form_frame(c);
    return c->max_seq_length - input_form_n_special(&frame);
}

int64_t bert_form_micro_size(const struct bert_loader_config *c)
{
    return c->train_batch_size / c->gradient_accumulation_steps;
}

struct batch_limits bert_form_limits(const struct bert_loader_config *c)
{
    return text_batch_limits(bert_form_micro_size(c), c->max_seq_length, c->max_predictions_per_seq);
}
