#include "serve/last_words.h"

#include "core/integers.h"
#include "data/text_batch.h"

#include <math.h>
#include <string.h>

static struct last_word *word_of(const struct last_words *l, int64_t i)
{
    return (struct last_word *)(void *)l->words.data + i;
}

/* ---- adding ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The bytes of text[0..n) without its last word, or without the blanks at its end. */
static size_t cut_end(const char *text, size_t n, bool blanks)
{
    while (n > 0 && is_blank(text[n - 1]) == blanks) {
        n--;
    }
    return n;
}

/* Appends the end of a text's ids, whose first `same` are also those of the text without its last word. */
static struct status append(struct last_words *l, const struct id_list *ids, int64_t same)
{
    int64_t n = (int64_t)ids->n, first = int_larger(0, n - 1 - l->session->max_length);
    int64_t most = int_smaller(l->session->packer.limits.n_labels, l->session->max_length);
    struct last_word w = {.first = l->ids.n, .before = same - first, .n = n - same, .guessed = true};
    FAIL_IF(same == 0 || w.n == 0, STATUS_DATA, "the text has no word after another");
    FAIL_IF(w.n > most, STATUS_DATA, "the last word has %lld tokens, more than are asked for (%lld)",
            (long long)w.n, (long long)most);
    for (int64_t i = first; i < n; i++) {
        FAIL_IF(!id_list_append(&l->ids, ids->ids[i]), STATUS_MEMORY,
                "out of memory for the tokens of texts");
    }
    buf_append(&l->words, &w, sizeof w);
    l->longest = int_larger(l->longest, w.n);
    l->n++;
    return buf_status(&l->words);
}

struct status last_words_add(struct last_words *l, struct tokenizer_scratch *scratch, const char *text,
                             size_t n)
{
    struct id_list ids = {0}, before = {0};
    n = cut_end(text, n, true);
    size_t n_before = cut_end(text, n, false), same = 0;
    struct status status = tokenizer_encode_document(scratch, &ids, text, n);
    if (!failed(status)) {
        status = tokenizer_encode_document(scratch, &before, text, n_before > 0 ? n_before - 1 : 0);
    }
    while (same < ids.n && same < before.n && ids.ids[same] == before.ids[same]) {
        same++;
    }
    status = failed(status) ? status : append(l, &ids, (int64_t)same);
    id_list_fini(&ids);
    id_list_fini(&before);
    return status;
}

/* ---- computing ---- */

static int64_t length(const void *self, int64_t i)
{
    const struct last_word *w = word_of(self, i);
    return w->before + w->n - 1;
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct last_words *l = self;
    const struct last_word *w = word_of(l, i);
    const int32_t *ids = l->ids.ids + w->first;
    int64_t n = length(l, i);
    memcpy(text_batch_add(out, n, n, -1, key), ids, (size_t)n * sizeof *ids);
    for (int64_t k = 0; k < w->n; k++) {
        text_batch_masked_positions(out)[k] = (int32_t)(w->before - 1 + k);
        text_batch_masked_labels(out)[k] = ids[w->before + k];
    }
    text_batch_take_masked(out, w->n);
}

/* Adds -log p of a token by the logits[n] of all; a tie is no guess. */
static void add_token(struct last_word *w, const float *logits, int64_t n, int32_t id)
{
    double largest = logits[0], sum = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, logits[i]);
        w->guessed &= i == id || logits[i] < logits[id];
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp(logits[i] - largest);
    }
    w->nats += log(sum) + largest - logits[id];
}

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct last_words *l = self;
    struct last_word *w = word_of(l, i);
    tensor logits = outputs[MODEL_WORD_LOGITS];
    for (int64_t k = 0; k < w->n; k++) {
        add_token(w, (const float *)logits.data + k * tensor_cols(logits), l->session->tokenizer->n,
                  l->ids.ids[w->first + (size_t)(w->before + k)]);
    }
    return status_ok();
}

struct status last_words_make(struct last_words *l)
{
    l->request =
        (struct request){.source = {.name = "texts", .self = l, .n = l->n, .length = length, .add = add},
                         .n_asked = l->longest,
                         .outputs = 1U << MODEL_WORD_LOGITS,
                         .take = take,
                         .self = l};
    return l->n > 0 ? status_ok() : status_error(STATUS_DATA, "there is no text");
}

void last_words_fini(struct last_words *l)
{
    id_list_fini(&l->ids);
    buf_fini(&l->words);
}

double last_words_accuracy(const struct last_words *l)
{
    int64_t n = 0;
    for (int64_t i = 0; i < l->n; i++) {
        n += word_of(l, i)->guessed;
    }
    return (double)n / (double)l->n;
}

double last_words_nats(const struct last_words *l)
{
    double nats = 0;
    for (int64_t i = 0; i < l->n; i++) {
        nats += word_of(l, i)->nats;
    }
    return nats / (double)l->n;
}
