#include "task/gpt/gpt_pretrain.h"

#include "core/buf.h"
#include "core/clock.h"
#include "core/integers.h"
#include "data/text_batch.h"
#include "ngram/kneser_ney.h"

#include <math.h>

enum { N_STRETCHES = 64 };

/* The first token of stretch i of a set. */
static int64_t begin_of(const struct token_windows *set, int64_t i)
{
    int64_t n = set->end - set->first;
    return set->first + n / N_STRETCHES * i + n % N_STRETCHES * i / N_STRETCHES;
}

/* Appends stretches of this part of a set's tokens, NGRAM_BEGIN before each that does not continue the one
 * before. */
static void append_stretches(struct buf *stream, const struct token_windows *set, double part)
{
    static const int32_t begin_mark = NGRAM_BEGIN;
    for (int64_t i = 0; i < N_STRETCHES; i++) {
        int64_t begin = begin_of(set, i), length = begin_of(set, i + 1) - begin;
        int64_t here = part < 1 ? (int64_t)(part * (double)length) : length;
        if (i == 0 || part < 1) {
            buf_append(stream, &begin_mark, sizeof begin_mark);
        }
        int32_t *to = buf_extend(stream, (size_t)here * sizeof *to);
        if (to != NULL) {
            indexed_copy(set->index, to, begin, here);
        }
    }
}

/* Nats of a batch's labels, each predicted from the tokens before it in its sample. */
static double nats_of(const struct kneser_ney *k, const struct batch *b, int64_t *n_labels)
{
    double nats = 0;
    int64_t label = 0;
    for (int64_t s = 0; s < b->n_sequences; s++) {
        int64_t first = b->cu_seqlens[s], n = b->cu_seqlens[s + 1] - first;
        for (int64_t i = 0; i < n; i++) {
            nats -= log(kneser_ney_p(k, b->ids + first, i + 1, b->fields[TEXT_MASKED_LABELS][label++]));
        }
    }
    *n_labels += label;
    return nats;
}

static struct status measure(struct ngram_score *score, const struct kneser_ney *k,
                             const struct batch_source *heldout, int64_t n_samples)
{
    struct batch_step room;
    double nats = 0;
    int64_t n_labels = 0;
    TRY(batch_step_init(&room, 1, heldout->layout, heldout->limits));
    struct status s = status_ok();
    for (int64_t i = 0; i < heldout->heldout_batches(heldout->self, n_samples) && !failed(s); i++) {
        s = heldout->heldout(heldout->self, n_samples, i, room.micro);
        if (!failed(s)) {
            nats += nats_of(k, room.micro, &n_labels);
            score->n_samples += room.micro->n_sequences;
        }
    }
    batch_step_fini(&room);
    score->loss = nats / (double)int_larger(n_labels, 1);
    return s;
}

struct status gpt_counts_measure(struct ngram_score *score, const struct token_windows *sets,
                                 const double *shares, int n_sets, int64_t n_tokens,
                                 const struct batch_source *heldout, int64_t n_samples)
{
    int64_t start = clock_ns();
    struct kneser_ney k = {0};
    struct buf stream = {0};
    int64_t n_marks = 0;
    *score = (struct ngram_score){.order = NGRAM_MOST_ORDER};
    for (int i = 0; i < n_sets; i++) {
        int64_t n = sets[i].end - sets[i].first;
        double part = shares[i] * (double)n_tokens / (double)n;
        append_stretches(&stream, &sets[i], part);
        n_marks += part < 1 ? N_STRETCHES : 1;
        score->n_counted += part < 1 ? (int64_t)(part * (double)n) : n;
    }
    const int32_t *ids = (const int32_t *)(const void *)stream.data;
    int64_t n = (int64_t)(stream.n / sizeof *ids);
    struct status s = buf_status(&stream);
    if (!failed(s) && n_marks == n) { /* the few tokens of a trial run */
        *score = (struct ngram_score){0};
        buf_fini(&stream);
        return s;
    }
    score->most_bytes = stream.n + kneser_ney_most_bytes(n, NGRAM_MOST_ORDER);
    s = failed(s) ? s : kneser_ney_init(&k, ids, n, NGRAM_MOST_ORDER, sets->n_words);
    buf_fini(&stream);
    s = failed(s) ? status_context(s, "%s: counts of n-grams (--ngram_tokens)", sets->path)
                  : measure(score, &k, heldout, n_samples);
    score->seconds = clock_since_s(start);
    kneser_ney_fini(&k);
    return s;
}
