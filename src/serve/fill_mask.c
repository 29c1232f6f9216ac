#define _GNU_SOURCE
#include "serve/fill_mask.h"

#include "data/text_batch.h"
#include "dev/host_view.h"
#include "pass/culprit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char MASK[] = "[MASK]";

static struct status append_id(struct id_list *ids, int32_t id)
{
    return id_list_append(ids, id) ? status_ok()
                                   : status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
}

/* [CLS], the text with the mask token for each "[MASK]", [SEP]. */
static struct status encode(struct session *s, struct id_list *ids, const char *text, size_t n)
{
    const char *end = text + n;
    TRY(tokenizer_require(s->tokenizer, 1U << SPECIAL_MASK, "filling a [MASK]"));
    TRY(append_id(ids, s->tokenizer->special[SPECIAL_BEGIN]));
    for (;;) {
        const char *mask = memmem(text, (size_t)(end - text), MASK, sizeof MASK - 1);
        TRY(tokenizer_encode_ids(&s->scratch, ids, text, (size_t)((mask == NULL ? end : mask) - text)));
        if (mask == NULL) {
            break;
        }
        TRY(append_id(ids, s->tokenizer->special[SPECIAL_MASK]));
        text = mask + sizeof MASK - 1;
    }
    return append_id(ids, s->tokenizer->special[SPECIAL_SEPARATOR]);
}

/* Makes a batch of one sequence; its mask tokens are the positions to predict. */
static struct status make_batch(struct session *s, const struct id_list *ids)
{
    int64_t m = 0;
    if ((int64_t)ids->n > s->max_length) {
        return status_error(STATUS_DATA, "the text has %zu tokens, but the model reads at most %lld", ids->n,
                            (long long)s->max_length);
    }
    batch_clear(&s->batch);
    int32_t *out = text_batch_add(&s->batch, (int64_t)ids->n, (int64_t)ids->n, -1, 0);
    memcpy(out, ids->ids, ids->n * sizeof *out);
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->ids[i] == s->tokenizer->special[SPECIAL_MASK]) {
            text_batch_masked_positions(&s->batch)[m] = (int32_t)i;
            text_batch_masked_labels(&s->batch)[m++] = -1;
        }
    }
    if (m == 0) {
        return status_error(STATUS_DATA, "the text has no [MASK] to fill");
    }
    text_batch_take_masked(&s->batch, m);
    batch_finish(&s->batch, tokenizer_tail_id(s->tokenizer));
    return status_ok();
}

/* The k largest of the logits, as probabilities, by insertion into a sorted list. */
static void take_best(const float *logits, int64_t n_words, struct fill_candidate *best, int64_t k)
{
    double max = -INFINITY, sum = 0;
    int64_t n = 0;
    for (int32_t id = 0; id < n_words; id++) {
        max = fmax(max, logits[id]);
        if (n == k && logits[id] <= logits[best[n - 1].id]) {
            continue;
        }
        n += n < k;
        int64_t place = n - 1;
        for (; place > 0 && logits[best[place - 1].id] < logits[id]; place--) {
            best[place] = best[place - 1];
        }
        best[place].id = id;
    }
    for (int64_t id = 0; id < n_words; id++) {
        sum += exp(logits[id] - max);
    }
    for (int64_t i = 0; i < n; i++) {
        best[i].probability = exp(logits[best[i].id] - max) / sum;
    }
}

static struct status predict(struct session *s, int64_t top_k, struct fill_result *r)
{
    stage_infer(&s->net.stage, &s->batch);
    struct host_view logits;
    TRY(host_view_open(&logits, &s->net.x, stage_head_output(&s->net.stage, MODEL_WORD_LOGITS)));
    *r = (struct fill_result){.n_masks = s->batch.n_real_labels,
                              .top_k = top_k < s->tokenizer->n ? top_k : s->tokenizer->n};
    r->candidates = calloc((size_t)(r->n_masks * r->top_k), sizeof *r->candidates);
    if (r->candidates == NULL) {
        host_view_close(&logits);
        return status_error(STATUS_MEMORY, "out of memory for %lld candidates",
                            (long long)(r->n_masks * r->top_k));
    }
    struct status status =
        culprit_of_result(&s->net, tensor_slice(logits.host, 0, r->n_masks), "the scores of the words");
    for (int64_t m = 0; m < r->n_masks && !failed(status); m++) {
        take_best((const float *)logits.host.data + m * logits.host.strides[0], s->tokenizer->n,
                  r->candidates + m * r->top_k, r->top_k);
    }
    host_view_close(&logits);
    return status;
}

struct status fill_mask(struct session *s, const char *text, size_t n, int64_t top_k,
                        struct fill_result *result)
{
    struct id_list ids = {0};
    *result = (struct fill_result){0};
    struct status status = encode(s, &ids, text, n);
    if (!failed(status)) {
        status = make_batch(s, &ids);
    }
    if (!failed(status)) {
        status = predict(s, top_k, result);
    }
    id_list_fini(&ids);
    if (failed(status)) {
        fill_result_fini(result);
    }
    return status;
}

void fill_result_fini(struct fill_result *r)
{
    free(r->candidates);
    *r = (struct fill_result){0};
}
