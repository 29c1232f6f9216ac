#include "serve/embed.h"

#include "data/text_batch.h"
#include "text/letter_case.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text's tokens in the list of all tokens. */
struct embed_piece {
    size_t text;  /* number of the text */
    size_t start; /* in the ids */
    size_t n;
};

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
static struct status encode_text(struct embed_job *j, struct tokenizer_scratch *scratch, const char *text,
                                 size_t n)
{
    const char *prompt = j->plan->prompt;
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
    return tokenizer_encode_ids(scratch, &j->ids, text, n);
}

/* The prompt and as much of the text as fits, between the special tokens. */
static struct status encode(struct embed_job *j, struct embed_piece *p, struct tokenizer_scratch *scratch,
                            const struct text_bytes *text)
{
    size_t most = (size_t)(j->plan->max_length - j->form->after.n);
    p->start = j->ids.n;
    TRY(input_specials_append(&j->ids, &j->form->before));
    TRY(encode_text(j, scratch, text->bytes, text->n));
    if (j->ids.n - p->start > most) {
        j->ids.n = p->start + most;
        j->n_cut++;
    }
    TRY(input_specials_append(&j->ids, &j->form->after));
    p->n = j->ids.n - p->start;
    return p->n > 0 ? status_ok()
                    : status_error(STATUS_DATA, "a text has no tokens, and the tokenizer adds none");
}

/* The special tokens before a text, and the tokens that the prompt has alone. */
static struct status count_skipped(struct embed_job *j, struct tokenizer_scratch *scratch)
{
    if (!j->plan->skips_prompt || j->plan->prompt[0] == '\0') {
        return status_ok();
    }
    TRY(encode_text(j, scratch, "", 0));
    int64_t n = (int64_t)j->ids.n + j->form->before.n, most = j->plan->max_length - j->form->after.n;
    j->n_skipped = n < most ? n : most;
    j->ids.n = 0;
    return status_ok();
}

static int by_length(const void *a, const void *b)
{
    const struct embed_piece *x = a;
    const struct embed_piece *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->text > y->text) - (x->text < y->text);
}

/* The pieces as a source of sequences. */
static int64_t length(const void *self, int64_t i)
{
    return (int64_t)((const struct embed_job *)self)->pieces[i].n;
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct embed_job *j = self;
    const struct embed_piece *p = &j->pieces[i];
    int64_t n = (int64_t)p->n, n_text = n - input_form_n_special(j->form);
    int32_t *ids = text_batch_add(out, n, input_form_n_first(j->form, n_text, 0), -1, key);
    memcpy(ids, j->ids.ids + p->start, p->n * sizeof *ids);
}

/* Row `i` of h in fp32. */
static const float *row_of(const struct embed_job *j, tensor h, int64_t i)
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

/* v [H] = one pooling of the rows of h, except skipped ones; if all are skipped, CLS takes the first, and
 * other poolings give 0, as in sentence-transformers.  Summed in double. */
static void pool(const struct embed_job *j, double *v, enum sentence_pooling pooling, tensor h)
{
    int64_t n = h.dims[0], width = h.dims[1], from = j->n_skipped < n ? j->n_skipped : n, end = n;
    double total = 0;
    if (pooling == SENTENCE_CLS) {
        from = from < n ? from : 0;
        end = from + 1;
    } else if (pooling == SENTENCE_LAST_TOKEN) {
        from = from < n ? n - 1 : n;
    }
    memset(v, 0, (size_t)width * sizeof *v);
    for (int64_t r = from; r < end; r++) {
        const float *row = row_of(j, h, r);
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

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct embed_job *j = self;
    const struct embed_plan *plan = j->plan;
    tensor h = outputs[MODEL_HIDDEN];
    float *vector = j->vectors + (int64_t)j->pieces[i].text * plan->width;
    int64_t width = plan->n_poolings * h.dims[1];
    for (int k = 0; k < plan->n_poolings; k++) {
        pool(j, j->v + k * h.dims[1], plan->poolings[k], h);
    }
    for (int k = 0; k < plan->n_layers; k++) {
        width = apply(plan->layers[k], j->v, j->next, width);
    }
    for (int64_t c = 0; c < width; c++) {
        vector[c] = (float)j->v[c];
    }
    return tensor_find_nonfinite(tensor_1d(vector, DTYPE_F32, width)) < 0
               ? status_ok()
               : status_error(STATUS_NUMERIC, "the vectors are not finite, but the transformer's output is: "
                                              "the modules after it are damaged");
}

static struct status encode_all(struct embed_job *j, struct tokenizer_scratch *scratch,
                                const struct text_bytes *texts, size_t n_texts)
{
    TRY(count_skipped(j, scratch));
    for (size_t i = 0; i < n_texts; i++) {
        j->pieces[i].text = i;
        TRY(encode(j, &j->pieces[i], scratch, &texts[i]));
    }
    qsort(j->pieces, n_texts, sizeof *j->pieces, by_length);
    return status_ok();
}

struct status embed_job_make(struct embed_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                             float *vectors, const struct text_bytes *texts, size_t n_texts,
                             const struct embed_plan *plan)
{
    *j = (struct embed_job){
        .plan = plan,
        .form = &s->frame.one,
        .pieces = calloc(n_texts + 1, sizeof *j->pieces),
        .v = calloc((size_t)plan->max_width, sizeof *j->v),
        .next = calloc((size_t)plan->max_width, sizeof *j->next),
        .row = calloc((size_t)s->model->hidden_size, sizeof *j->row),
        .request = {
            .source = {.name = "texts", .self = j, .n = (int64_t)n_texts, .length = length, .add = add},
            .outputs = 1U << MODEL_HIDDEN,
            .take = take,
            .self = j}};
    j->vectors = vectors;
    return j->pieces == NULL || j->v == NULL || j->next == NULL || j->row == NULL
               ? status_error(STATUS_MEMORY, "out of memory for %zu texts", n_texts)
               : encode_all(j, scratch, texts, n_texts);
}

void embed_job_fini(struct embed_job *j)
{
    free(j->pieces);
    free(j->v);
    free(j->next);
    free(j->row);
    buf_fini(&j->bytes);
    id_list_fini(&j->ids);
}

struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan)
{
    struct embed_job j;
    struct status status = embed_job_make(&j, s, &s->scratch, vectors, texts, n_texts, plan);
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    *n_cut = j.n_cut;
    embed_job_fini(&j);
    return status;
}
