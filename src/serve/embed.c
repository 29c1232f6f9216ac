#include "serve/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static void pool(const struct embed_job *j, double *v, enum sentence_pooling pooling, tensor h,
                 int64_t n_skipped)
{
    int64_t n = h.dims[0], width = h.dims[1], from = n_skipped < n ? n_skipped : n, end = n;
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
        next[o] = sentence_activation_of(l->activation, sum) + (l->adds_input ? v[o] : 0) +
                  (l->residual == NULL ? 0 : dot(l->residual + o * n, v, n));
    }
    memcpy(v, next, (size_t)l->n_out * sizeof *v);
    return l->n_out;
}

static struct status take(void *self, int64_t i, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct embed_job *j = self;
    const struct embed_plan *plan = j->input.plan;
    tensor h = outputs[MODEL_HIDDEN];
    float *vector = j->vectors + i * plan->width;
    int64_t width = plan->n_poolings * h.dims[1];
    for (int k = 0; k < plan->n_poolings; k++) {
        pool(j, j->v + k * h.dims[1], plan->poolings[k], h, j->input.n_skipped[i]);
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

struct status embed_job_make_of(struct embed_job *j, const struct session *s, float *vectors,
                                struct embed_input *input)
{
    const struct embed_plan *plan = input->plan;
    *j = (struct embed_job){.input = *input,
                            .v = calloc((size_t)plan->max_width, sizeof *j->v),
                            .next = calloc((size_t)plan->max_width, sizeof *j->next),
                            .row = calloc((size_t)s->model->hidden_size, sizeof *j->row)};
    j->vectors = vectors;
    *input = (struct embed_input){0};
    j->request = embed_input_request(&j->input, 1U << MODEL_HIDDEN, take, j);
    return j->v == NULL || j->next == NULL || j->row == NULL
               ? status_error(STATUS_MEMORY, "out of memory for vectors of %lld numbers",
                              (long long)plan->max_width)
               : status_ok();
}

struct status embed_job_make(struct embed_job *j, const struct session *s, struct tokenizer_scratch *scratch,
                             float *vectors, const struct text_bytes *texts, size_t n_texts,
                             const struct embed_plan *plan)
{
    struct embed_input input;
    struct status status = embed_input_init(&input, s, scratch, plan, n_texts);
    for (size_t i = 0; i < n_texts && !failed(status); i++) {
        status = embed_input_add(&input, scratch, &texts[i]);
    }
    if (failed(status)) {
        *j = (struct embed_job){0};
        embed_input_fini(&input);
        return status;
    }
    return embed_job_make_of(j, s, vectors, &input);
}

void embed_job_fini(struct embed_job *j)
{
    embed_input_fini(&j->input);
    free(j->v);
    free(j->next);
    free(j->row);
}

struct status embed_texts(struct session *s, float *vectors, int64_t *n_cut, const struct text_bytes *texts,
                          size_t n_texts, const struct embed_plan *plan)
{
    struct embed_job j;
    struct status status = embed_job_make(&j, s, &s->scratch, vectors, texts, n_texts, plan);
    status = failed(status) ? status : packer_answer(&s->packer, &j.request);
    *n_cut = j.input.texts.n_cut;
    embed_job_fini(&j);
    return status;
}

/* ---- tokens ---- */

static struct status take_tokens(void *self, int64_t text, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct embed_tokens_job *j = self;
    tensor h = outputs[MODEL_HIDDEN];
    float *row = j->rows + encoded_texts_get(&j->input.texts, text)->row * j->width;
    for (int64_t i = 0; i < h.dims[0]; i++) {
        for (int64_t c = 0; c < j->width; c++) {
            *row++ = (float)tensor_load(h, i * h.strides[0] + c);
        }
    }
    return status_ok();
}

struct status embed_tokens_job_make(struct embed_tokens_job *j, const struct session *s,
                                    struct embed_input *input)
{
    size_t n = (size_t)input->texts.n_rows;
    *j = (struct embed_tokens_job){.input = *input,
                                   .width = s->model->hidden_size,
                                   .rows = calloc(n + 1, (size_t)s->model->hidden_size * sizeof *j->rows)};
    *input = (struct embed_input){0};
    j->request = embed_input_request(&j->input, 1U << MODEL_HIDDEN, take_tokens, j);
    return j->rows != NULL ? status_ok()
                           : status_error(STATUS_MEMORY, "out of memory for the vectors of %zu tokens", n);
}

void embed_tokens_job_fini(struct embed_tokens_job *j)
{
    embed_input_fini(&j->input);
    free(j->rows);
    *j = (struct embed_tokens_job){0};
}
