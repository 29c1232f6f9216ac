#include "serve/embed.h"

#include "data/text_batch.h"
#include "dev/host_view.h"
#include "text/letter_case.h"
#include "text/utf8.h"
#include "pass/culprit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text's tokens in the list of all tokens. */
struct piece {
    size_t text;  /* number of the text */
    size_t start; /* in the ids */
    size_t n;
};

struct job {
    struct session *s;
    const struct embed_plan *plan;
    float *vectors;
    struct id_list ids;
    struct piece *pieces; /* [n_texts], later by length */
    int64_t n_skipped;    /* tokens at the beginning of a text that are not pooled */
    struct buf bytes;     /* of a text after its prompt */
    double *v, *next;     /* [max_width] */
    float *row;           /* [H] */
};

static struct status append_id(struct id_list *ids, int32_t id)
{
    return id_list_append(ids, id) ? status_ok()
                                   : status_error(STATUS_MEMORY, "out of memory for the tokens of texts");
}

/* Lower-cases each code point by itself, as Rust's str does except for a final sigma; one code point becomes
 * two. */
static void append_lower(struct buf *out, const char *text, size_t n)
{
    enum { I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };
    char bytes[UTF8_MAX_BYTES];
    uint32_t c;
    for (size_t i = 0; i < n;) {
        i += (size_t)utf8_decode(&c, text + i, n - i);
        buf_append(out, bytes, (size_t)utf8_write(bytes, c == I_WITH_DOT ? 'i' : letter_case_lower(c)));
        if (c == I_WITH_DOT) {
            buf_append(out, bytes, (size_t)utf8_write(bytes, DOT_ABOVE));
        }
    }
}

static void append_bytes(struct buf *out, const char *text, size_t n)
{
    buf_append(out, text, n);
}

/* The ids of the text after a prompt. */
static struct status encode_text(struct job *j, const char *prompt, const char *text, size_t n)
{
    if (prompt[0] != '\0' || j->plan->lower_case) {
        void (*append)(struct buf *, const char *, size_t) =
            j->plan->lower_case ? append_lower : append_bytes;
        buf_clear(&j->bytes);
        append(&j->bytes, prompt, strlen(prompt));
        append(&j->bytes, text, n);
        TRY(buf_status(&j->bytes));
        text = buf_text(&j->bytes);
        n = j->bytes.n;
    }
    return tokenizer_encode_ids(&j->s->scratch, &j->ids, text, n);
}

/* [CLS], the prompt and as much of the text as fits, [SEP]. */
static struct status encode(struct job *j, struct piece *p, const struct text_bytes *text, int64_t *n_cut)
{
    size_t limit = (size_t)j->plan->max_length;
    p->start = j->ids.n;
    TRY(append_id(&j->ids, j->s->tokenizer->special[SPECIAL_BEGIN]));
    TRY(encode_text(j, j->plan->prompt, text->bytes, text->n));
    if (j->ids.n - p->start > limit - 1) {
        j->ids.n = p->start + limit - 1;
        ++*n_cut;
    }
    TRY(append_id(&j->ids, j->s->tokenizer->special[SPECIAL_SEPARATOR]));
    p->n = j->ids.n - p->start;
    return status_ok();
}

/* [CLS] and the tokens that the prompt has alone. */
static struct status count_skipped(struct job *j)
{
    if (!j->plan->skips_prompt || j->plan->prompt[0] == '\0') {
        return status_ok();
    }
    TRY(encode_text(j, j->plan->prompt, "", 0));
    int64_t n = (int64_t)j->ids.n + 1, most = j->plan->max_length - 1;
    j->n_skipped = n < most ? n : most;
    j->ids.n = 0;
    return status_ok();
}

static int by_length(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->text > y->text) - (x->text < y->text);
}

/* The number of next texts that fit a batch: at least one. */
static size_t fill_batch(struct job *j, const struct piece *next, const struct piece *end)
{
    struct batch *b = &j->s->batch;
    size_t n = 0, n_tokens = 0;
    batch_clear(b);
    while (next + n < end && n_tokens + next[n].n <= (size_t)b->limits.n_tokens &&
           (int64_t)n + 1 < b->limits.n_sequences) {
        int32_t *ids = text_batch_add(b, (int64_t)next[n].n, (int64_t)next[n].n, -1, 0);
        memcpy(ids, j->ids.ids + next[n].start, next[n].n * sizeof *ids);
        n_tokens += next[n++].n;
    }
    batch_finish(b, tokenizer_tail_id(j->s->tokenizer));
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

/* v [H] = one pooling of the n rows of h from `first` on, except skipped ones; if all are skipped, CLS takes
 * the first, and other poolings give 0, as in sentence-transformers.  Summed in double. */
static void pool(const struct job *j, double *v, enum sentence_pooling pooling, tensor h, int64_t first,
                 int64_t n)
{
    int64_t width = h.dims[1], from = j->n_skipped < n ? j->n_skipped : n, end = n;
    double total = 0;
    if (pooling == SENTENCE_CLS) {
        from = from < n ? from : 0;
        end = from + 1;
    } else if (pooling == SENTENCE_LAST_TOKEN) {
        from = from < n ? n - 1 : n;
    }
    memset(v, 0, (size_t)width * sizeof *v);
    for (int64_t r = from; r < end; r++) {
        const float *row = row_of(j, h, first + r);
        double weight = pooling == SENTENCE_WEIGHTED_MEAN ? (double)(r + 1) : 1;
        total += weight;
        for (int64_t c = 0; c < width; c++) {
            v[c] = pooling != SENTENCE_MAX ? v[c] + weight * row[c] : r == from ? row[c] : fmax(v[c], row[c]);
        }
    }
    total = pooling == SENTENCE_MEAN_SQRT_LEN ? sqrt(total) : pooling == SENTENCE_MAX ? 1 : total;
    for (int64_t c = 0; c < width && total > 0; c++) {
        v[c] /= total;
    }
}

static double activate(enum sentence_activation f, double x)
{
    switch (f) {
    case SENTENCE_TANH: return tanh(x);
    case SENTENCE_RELU: return x > 0 ? x : 0;
    case SENTENCE_GELU: return x * 0.5 * erfc(-x / sqrt(2));
    case SENTENCE_SIGMOID: return 1 / (1 + exp(-x));
    case SENTENCE_IDENTITY: break;
    }
    return x;
}

static double dot(const float *w, const double *v, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += w[i] * v[i];
    }
    return sum;
}

/* Passes v [n] through a layer, using `next`; returns its new length. */
static int64_t apply(const struct sentence_layer *l, double *v, double *next, int64_t n)
{
    const double least = 1e-12; /* torch.nn.functional.normalize */
    double squares = 0;
    for (int64_t c = 0; l->normalize && c < n; c++) {
        squares += v[c] * v[c];
    }
    for (int64_t c = 0; l->normalize && c < n; c++) {
        v[c] /= fmax(sqrt(squares), least);
    }
    if (l->normalize || l->truncates) {
        return sentence_layer_width(l, n);
    }
    for (int64_t o = 0; o < l->n_out; o++) {
        double sum = dot(l->weight + o * n, v, n) + (l->bias == NULL ? 0 : l->bias[o]);
        next[o] = activate(l->activation, sum) + (l->adds_input ? v[o] : 0) +
                  (l->residual == NULL ? 0 : dot(l->residual + o * n, v, n));
    }
    memcpy(v, next, (size_t)l->n_out * sizeof *v);
    return l->n_out;
}

static struct status take_vector(struct job *j, float *vector, tensor h, int64_t first, int64_t n)
{
    const struct embed_plan *plan = j->plan;
    int64_t width = plan->n_poolings * h.dims[1];
    for (int i = 0; i < plan->n_poolings; i++) {
        pool(j, j->v + i * h.dims[1], plan->poolings[i], h, first, n);
    }
    for (int i = 0; i < plan->n_layers; i++) {
        width = apply(plan->layers[i], j->v, j->next, width);
    }
    for (int64_t c = 0; c < width; c++) {
        vector[c] = (float)j->v[c];
    }
    return culprit_of_result(&j->s->net, tensor_1d(vector, DTYPE_F32, width), "the vectors");
}

static struct status run(struct job *j, size_t n_texts)
{
    struct stage *stage = &j->s->net.stage;
    struct host_view rows;
    struct status status = status_ok();
    for (size_t i = 0; i < n_texts && !failed(status);) {
        size_t n = fill_batch(j, j->pieces + i, j->pieces + n_texts);
        stage_infer(stage, &j->s->batch);
        TRY(host_view_open(&rows, &j->s->net.x, stage_output(stage)));
        for (size_t k = 0; k < n && !failed(status); k++) {
            const struct piece *p = &j->pieces[i + k];
            status = take_vector(j, j->vectors + (int64_t)p->text * j->plan->width, rows.host,
                                 j->s->batch.cu_seqlens[k], (int64_t)p->n);
        }
        host_view_close(&rows);
        i += n;
    }
    return status;
}

static struct status encode_and_run(struct job *j, int64_t *n_cut, const struct text_bytes *texts,
                                    size_t n_texts)
{
    TRY(count_skipped(j));
    for (size_t i = 0; i < n_texts; i++) {
        j->pieces[i].text = i;
        TRY(encode(j, &j->pieces[i], &texts[i], n_cut));
    }
    qsort(j->pieces, n_texts, sizeof *j->pieces, by_length);
    return run(j, n_texts);
}

struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan)
{
    struct job j = {
        .s = s,
        .plan = plan,
        .pieces = calloc(n_texts + 1, sizeof *j.pieces),
        .v = calloc((size_t)plan->max_width, sizeof *j.v),
        .next = calloc((size_t)plan->max_width, sizeof *j.next),
        .row = calloc((size_t)s->net.config.model->hidden_size, sizeof *j.row),
    };
    j.vectors = vectors;
    *n_cut = 0;
    struct status status = j.pieces == NULL || j.v == NULL || j.next == NULL || j.row == NULL
                               ? status_error(STATUS_MEMORY, "out of memory for %zu texts", n_texts)
                               : encode_and_run(&j, n_cut, texts, n_texts);
    free(j.pieces);
    free(j.v);
    free(j.next);
    free(j.row);
    buf_fini(&j.bytes);
    id_list_fini(&j.ids);
    return status;
}
