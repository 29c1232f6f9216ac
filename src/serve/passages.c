#include "serve/passages.h"

#include "core/integers.h"
#include "data/encoded_texts.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct passage *passages_get(const struct passages *p, int64_t i)
{
    return (const struct passage *)(const void *)p->list.data + i;
}

void passages_fini(struct passages *p)
{
    buf_fini(&p->list);
    id_list_fini(&p->ids);
    *p = (struct passages){0};
}

/* The place from token i on, by steps of 1 or -1 and fewer than `most`, at which a word begins; i if there is
 * none. */
static int64_t word_at(const struct tokenizer *t, const struct token_list *tokens, int64_t i, int64_t by,
                       int64_t most)
{
    int64_t at = i;
    while (at > 0 && at < (int64_t)tokens->n && at != i + by * most &&
           tokenizer_continues_word(t, tokens->tokens[at].id)) {
        at += by;
    }
    return at == i + by * most ? i : at;
}

static struct status add_windows(struct passages *p, const struct tokenizer *t,
                                 const struct token_list *tokens, struct passage whole, int64_t room,
                                 int64_t step)
{
    size_t at = 0; /* bytes before the passage */
    for (struct token_range w = {0}; encoded_texts_next_window(&w, (int64_t)tokens->n, room, step);) {
        int64_t most = int_larger((room - step) / 2, 1); /* within what two windows have in common */
        int64_t first = word_at(t, tokens, w.first, 1, most),
                end = word_at(t, tokens, w.first + w.n, -1, most);
        size_t begin = tokens->tokens[first].start;
        struct passage one = whole;
        whole.at += utf8_count(whole.text + at, begin - at);
        at = begin;
        one.at = whole.at;
        one.text += begin;
        one.n = tokens->tokens[end - 1].end - begin;
        one.first_id += first;
        one.n_ids = end - first;
        buf_append(&p->list, &one, sizeof one);
        p->n++;
    }
    return buf_status(&p->list);
}

struct status passages_cut(struct passages *p, struct tokenizer_scratch *scratch, const char *file,
                           const char *text, size_t n, int64_t room, int64_t step)
{
    const struct passage whole = {.file = file, .text = text, .first_id = (int64_t)p->ids.n};
    struct token_list tokens = {0};
    struct status s = tokenizer_encode(scratch, &tokens, text, n);
    for (size_t i = 0; i < tokens.n && !failed(s); i++) {
        if (!id_list_append(&p->ids, tokens.tokens[i].id)) {
            s = status_error(STATUS_MEMORY, "out of memory for the tokens of a text");
        }
    }
    if (!failed(s) && tokens.n > 0) {
        s = add_windows(p, scratch->tokenizer, &tokens, whole, room, step);
    }
    token_list_fini(&tokens);
    return s;
}

/* ---- scores ---- */

/* The tokens of a question. */
struct terms {
    int32_t *of; /* [pieces] the number of a token among them, from 1; 0: it is none */
    int64_t n;
    double *weights; /* [n + 1] */
    int64_t *counts; /* [n + 1] in a passage */
};

static void count(const struct terms *q, const struct passages *p, const struct passage *one)
{
    memset(q->counts, 0, (size_t)(q->n + 1) * sizeof *q->counts);
    for (int64_t i = 0; i < one->n_ids; i++) {
        q->counts[q->of[p->ids.ids[one->first_id + i]]]++;
    }
}

static void weigh(const struct terms *q, const struct passages *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        count(q, p, passages_get(p, i));
        for (int64_t k = 1; k <= q->n; k++) {
            q->weights[k] += q->counts[k] > 0;
        }
    }
    for (int64_t k = 1; k <= q->n; k++) {
        q->weights[k] = log(1 + ((double)p->n - q->weights[k] + 0.5) / (q->weights[k] + 0.5));
    }
}

static void score(const struct terms *q, const struct passages *p, double *scores)
{
    const double k1 = 1.2, b = 0.75;
    double mean = 0;
    for (int64_t i = 0; i < p->n; i++) {
        mean += (double)passages_get(p, i)->n_ids / (double)p->n;
    }
    for (int64_t i = 0; i < p->n; i++) {
        const struct passage *one = passages_get(p, i);
        count(q, p, one);
        scores[i] = 0;
        for (int64_t k = 1; k <= q->n; k++) {
            double n = (double)q->counts[k];
            scores[i] += q->weights[k] * n / (n + k1 * (1 - b + b * (double)one->n_ids / mean));
        }
    }
}

struct status passages_score(const struct passages *p, double *scores, struct tokenizer_scratch *scratch,
                             const char *question)
{
    struct id_list ids = {0};
    struct status s = tokenizer_encode_ids(scratch, &ids, question, strlen(question));
    struct terms q = {.of = calloc((size_t)scratch->tokenizer->n + 1, sizeof *q.of),
                      .weights = calloc(ids.n + 1, sizeof *q.weights),
                      .counts = calloc(ids.n + 1, sizeof *q.counts)};
    bool ok = q.of != NULL && q.weights != NULL && q.counts != NULL;
    for (size_t i = 0; i < ids.n && ok; i++) {
        int32_t *number = &q.of[ids.ids[i]];
        *number = *number > 0 ? *number : (int32_t)++q.n;
    }
    if (ok && !failed(s)) {
        weigh(&q, p);
        score(&q, p, scores);
    }
    free(q.of);
    free(q.weights);
    free(q.counts);
    id_list_fini(&ids);
    return ok ? s : status_error(STATUS_MEMORY, "out of memory for the words of a question");
}
