#include "serve/embed.h"

#include "dev/host_view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text's tokens in the list of all. */
struct piece {
    size_t text;  /* number of the text */
    size_t start; /* in the ids */
    size_t n;
};

struct job {
    struct session *s;
    struct embed_options options;
    float *vectors;
    struct id_list ids;
    struct piece *pieces; /* [n_texts], later by length */
    double *sum;          /* [H] */
    float *row;           /* [H] */
};

static struct status append_id(struct id_list *ids, int32_t id)
{
    return id_list_append(ids, id) ? status_ok()
                                   : status_error(STATUS_MEMORY, "out of memory for the tokens of texts");
}

/* [CLS], as much of the text as fits, [SEP]. */
static struct status encode(struct job *j, struct piece *p, const struct embed_text *text, int64_t *n_cut)
{
    size_t limit = (size_t)j->s->max_length;
    p->start = j->ids.n;
    TRY(append_id(&j->ids, j->s->vocab.cls));
    TRY(wordpiece_encode_ids(&j->s->tokenizer, &j->ids, text->bytes, text->n));
    if (j->ids.n - p->start > limit - 1) {
        j->ids.n = p->start + limit - 1;
        ++*n_cut;
    }
    TRY(append_id(&j->ids, j->s->vocab.sep));
    p->n = j->ids.n - p->start;
    return status_ok();
}

static int by_length(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->text > y->text) - (x->text < y->text);
}

/* How many of the next texts fit a batch: at least one. */
static size_t fill_batch(struct job *j, const struct piece *next, const struct piece *end)
{
    struct bert_batch *b = &j->s->batch;
    size_t n = 0, n_tokens = 0;
    bert_batch_clear(b);
    while (next + n < end && n_tokens + next[n].n <= (size_t)b->limits.n_tokens &&
           (int64_t)n + 1 < b->limits.n_sequences) {
        int32_t *ids = bert_batch_add(b, (int64_t)next[n].n, (int64_t)next[n].n, -1, 0);
        memcpy(ids, j->ids.ids + next[n].start, next[n].n * sizeof *ids);
        n_tokens += next[n++].n;
    }
    bert_batch_finish(b, j->s->vocab.pad);
    return n;
}

/* Row `i` of h in fp32. */
static const float *row_of(const struct job *j, tensor h, int64_t i)
{
    int64_t first = i * h.strides[0];
    if (h.dtype == DTYPE_F32) {
        return (const float *)h.data + first;
    }
    for (int64_t c = 0; c < h.dims[1]; c++) {
        j->row[c] = (float)tensor_load(h, first + c);
    }
    return j->row;
}

/* The vector of rows [first, first + n) of h, summed in double. */
static void pool(const struct job *j, float *vector, tensor h, int64_t first, int64_t n)
{
    int64_t width = h.dims[1];
    double squares = 0;
    n = j->options.pooling == EMBED_CLS ? 1 : n;
    memset(j->sum, 0, (size_t)width * sizeof *j->sum);
    for (int64_t r = 0; r < n; r++) {
        const float *row = row_of(j, h, first + r);
        for (int64_t c = 0; c < width; c++) {
            j->sum[c] += row[c];
        }
    }
    for (int64_t c = 0; c < width; c++) {
        j->sum[c] /= (double)n;
        squares += j->sum[c] * j->sum[c];
    }
    double scale = j->options.normalize && squares > 0 ? 1 / sqrt(squares) : 1;
    for (int64_t c = 0; c < width; c++) {
        vector[c] = (float)(j->sum[c] * scale);
    }
}

static struct status run(struct job *j, size_t n_texts)
{
    struct stage *stage = &j->s->model.stage;
    int64_t width = j->s->model.config.model.hidden_size;
    int64_t last = j->s->model.config.model.num_hidden_layers - 1;
    struct host_view rows;
    for (size_t i = 0; i < n_texts;) {
        size_t n = fill_batch(j, j->pieces + i, j->pieces + n_texts);
        stage_infer(stage, &j->s->batch);
        TRY(host_view_open(&rows, &j->s->model.x, stage->slot.layers[last].out));
        for (size_t k = 0; k < n; k++) {
            const struct piece *p = &j->pieces[i + k];
            pool(j, j->vectors + (int64_t)p->text * width, rows.host, j->s->batch.cu_seqlens[k],
                 (int64_t)p->n);
        }
        host_view_close(&rows);
        i += n;
    }
    return status_ok();
}

static struct status encode_and_run(struct job *j, int64_t *n_cut, const struct embed_text *texts,
                                    size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++) {
        j->pieces[i].text = i;
        TRY(encode(j, &j->pieces[i], &texts[i], n_cut));
    }
    qsort(j->pieces, n_texts, sizeof *j->pieces, by_length);
    return run(j, n_texts);
}

struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct embed_text *texts,
                          size_t n_texts, struct embed_options options)
{
    size_t width = (size_t)s->model.config.model.hidden_size;
    struct job j = {
        .s = s,
        .options = options,
        .pieces = calloc(n_texts + 1, sizeof *j.pieces),
        .sum = calloc(width, sizeof *j.sum),
        .row = calloc(width, sizeof *j.row),
    };
    j.vectors = vectors;
    *n_cut = 0;
    struct status status = j.pieces == NULL || j.sum == NULL || j.row == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for %zu texts", n_texts)
                               : encode_and_run(&j, n_cut, texts, n_texts);
    free(j.pieces);
    free(j.sum);
    free(j.row);
    id_list_fini(&j.ids);
    return status;
}
