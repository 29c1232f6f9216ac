#include "serve/embed.h"

#include "core/integers.h"
#include "text/letter_case.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan ---- */

static const struct sentence_layer normalize_layer = {.normalize = true};

static struct status plan_length(struct embed_plan *p, const struct session *s, int64_t wanted)
{
    int64_t positions = s->net.config.model->max_length, least = input_form_n_special(&s->frame.one);
    p->max_length = wanted == 0 ? s->text_length : wanted;
    return p->max_length >= least && p->max_length <= positions
               ? status_ok()
               : status_error(STATUS_USAGE, "max_seq_length is %lld; this model reads %lld to %lld tokens",
                              (long long)p->max_length, (long long)least, (long long)positions);
}

/* The place of the last layer but for a truncation, which comes after all modules; -1: there is none. */
static int last_module(const struct embed_plan *p)
{
    int last = p->n_layers - 1;
    return last >= 0 && p->layers[last]->truncates ? last - 1 : last;
}

static void plan_layers(struct embed_plan *p, const struct sentence_model *m, const struct embed_options *o)
{
    for (int i = 0; i < m->n_layers; i++) {
        p->layers[p->n_layers++] = &m->layers[i];
    }
    if (o->truncate_dim > 0) {
        p->truncation = (struct sentence_layer){.truncates = true, .n_out = o->truncate_dim};
        p->n_layers = last_module(p) + 1;
        p->layers[p->n_layers++] = &p->truncation;
    }
    int last = last_module(p);
    bool does = last >= 0 && p->layers[last]->normalize, truncates = last < p->n_layers - 1;
    if (o->normalize == EMBED_YES && (!does || truncates)) {
        p->layers[p->n_layers++] = &normalize_layer;
    } else if (o->normalize == EMBED_NO && does) {
        p->layers[last] = p->layers[p->n_layers - 1];
        p->n_layers--;
    }
}

static struct status plan_widths(struct embed_plan *p, int64_t hidden_size)
{
    p->width = p->max_width = p->n_poolings * hidden_size;
    for (int i = 0; i < p->n_layers; i++) {
        const struct sentence_layer *l = p->layers[i];
        FAIL_IF(!l->normalize && !l->truncates && l->n_in != p->width, STATUS_USAGE,
                "the model's Dense module takes vectors of %lld numbers, but %d poolings of %lld make %lld",
                (long long)l->n_in, p->n_poolings, (long long)hidden_size, (long long)p->width);
        p->width = sentence_layer_width(l, p->width);
        p->max_width = p->width > p->max_width ? p->width : p->max_width;
    }
    return status_ok();
}

struct status embed_plan_make(struct embed_plan *p, const struct session *s, const struct embed_options *o)
{
    const struct sentence_model *m = s->sentence;
    *p = (struct embed_plan){.n_poolings = m->n_poolings,
                             .skips_prompt = m->skips_prompt,
                             .lower_case = m->lower_case && !s->tokenizer->lower_case,
                             .prompt = o->prompt,
                             .cut = o->cut};
    for (int i = 0; i < m->n_poolings; i++) {
        p->poolings[i] = m->poolings[i];
    }
    if (o->has_pooling == EMBED_YES) {
        p->poolings[0] = o->pooling;
        p->n_poolings = 1;
    }
    if (o->prompt == NULL) {
        TRY(sentence_model_prompt(m, o->prompt_name, &p->prompt));
    }
    plan_layers(p, m, o);
    TRY(plan_length(p, s, o->max_length));
    return plan_widths(p, s->net.config.model->hidden_size);
}

void embed_plan_describe(struct buf *out, const struct embed_plan *p)
{
    for (int i = 0; i < p->n_poolings; i++) {
        buf_printf(out, "%s%s", i == 0 ? "pooling " : " + ", sentence_pooling_name(p->poolings[i]));
    }
    for (int i = 0; i < p->n_layers; i++) {
        if (p->layers[i]->normalize) {
            buf_puts(out, ", normalised");
        } else if (p->layers[i]->truncates) {
            buf_printf(out, ", the first %lld numbers", (long long)p->layers[i]->n_out);
        } else {
            buf_printf(out, ", dense to %lld", (long long)p->layers[i]->n_out);
        }
    }
    buf_printf(out, ", at most %lld tokens", (long long)p->max_length);
    if (p->prompt[0] != '\0') {
        buf_printf(out, ", prompt \"%.100s\"%s", p->prompt, p->skips_prompt ? ", which is not pooled" : "");
    }
    buf_puts(out, p->lower_case ? ", lower case" : "");
}

/* ---- the tokens ---- */

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
static struct status encode_text(struct embed_input *in, struct tokenizer_scratch *scratch, const char *text,
                                 size_t n)
{
    const char *prompt = in->plan->prompt;
    if (prompt[0] != '\0' || in->plan->lower_case) {
        void (*append)(struct buf *, const char *, size_t) =
            in->plan->lower_case ? append_lower : append_bytes;
        buf_clear(&in->bytes);
        append(&in->bytes, prompt, strlen(prompt));
        append(&in->bytes, text, n);
        TRY(buf_status(&in->bytes));
        text = buf_text(&in->bytes);
        n = in->bytes.n;
    }
    return tokenizer_encode_ids(scratch, &in->texts.ids, text, n);
}

/* The special tokens before a text, and the tokens that the prompt has alone. */
static struct status count_skipped(struct embed_input *in, struct tokenizer_scratch *scratch)
{
    const struct input_form *form = &in->texts.frame.one;
    if (!in->plan->skips_prompt || in->plan->prompt[0] == '\0') {
        return status_ok();
    }
    TRY(encode_text(in, scratch, "", 0));
    in->n_skipped_whole =
        int_smaller((int64_t)in->texts.ids.n + form->before.n, in->plan->max_length - form->after.n);
    in->texts.ids.n = 0;
    return status_ok();
}

struct status embed_input_init(struct embed_input *in, const struct session *s,
                               struct tokenizer_scratch *scratch, const struct embed_plan *plan,
                               size_t n_texts)
{
    *in = (struct embed_input){
        .plan = plan,
        .tokenizer = s->tokenizer,
        .texts = {.frame = s->frame, .limit = plan->max_length, .cut = plan->cut}, /* without labels */
        .n_skipped = calloc(n_texts + 1, sizeof *in->n_skipped),
        .order = calloc(n_texts + 1, sizeof *in->order),
        .capacity = (int64_t)n_texts};
    return in->n_skipped == NULL || in->order == NULL
               ? status_error(STATUS_MEMORY, "out of memory for %zu texts", n_texts)
               : count_skipped(in, scratch);
}

void embed_input_fini(struct embed_input *in)
{
    free(in->n_skipped);
    free(in->order);
    buf_fini(&in->bytes);
    encoded_texts_fini(&in->texts);
    *in = (struct embed_input){0};
}

/* Makes a text of the tokens from `first` on. */
static struct status end(struct embed_input *in, int64_t first)
{
    struct encoded_texts *t = &in->texts;
    CHECK(t->n < in->capacity, "%lld texts", (long long)t->n);
    TRY(encoded_texts_fit(t, (struct token_range){first, (int64_t)t->ids.n - first}, NULL));
    int64_t n_lost = encoded_texts_get(t, t->n - 1)->a.first - first;
    in->n_skipped[t->n - 1] = int_larger(in->n_skipped_whole - n_lost, 0);
    return status_ok();
}

struct status embed_input_add(struct embed_input *in, struct tokenizer_scratch *scratch,
                              const struct text_bytes *text)
{
    int64_t first = (int64_t)in->texts.ids.n;
    TRY(encode_text(in, scratch, text->bytes, text->n));
    return end(in, first);
}

/* Whether ids [n] are those of one place of a form. */
static bool are(const int32_t *ids, const struct input_specials *s)
{
    return memcmp(ids, s->ids, (size_t)s->n * sizeof *ids) == 0;
}

static bool has_frame(const struct input_form *f, const int32_t *ids, size_t n)
{
    return n >= (size_t)input_form_n_special(f) && are(ids, &f->before) &&
           are(ids + n - f->after.n, &f->after);
}

static struct status check_ids(const struct embed_input *in, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(ids[i] < 0 || ids[i] >= in->tokenizer->n, STATUS_DATA,
                "id %d of text %lld is none of the model's, which are 0 to %d: send ids of its own "
                "tokenizer, or texts (with langchain-openai: check_embedding_ctx_length=False)",
                ids[i], (long long)in->texts.n, in->tokenizer->n - 1);
    }
    return status_ok();
}

struct status embed_input_add_ids(struct embed_input *in, struct tokenizer_scratch *scratch,
                                  const int32_t *ids, size_t n)
{
    const struct input_form *form = &in->texts.frame.one;
    int64_t first = (int64_t)in->texts.ids.n;
    TRY(check_ids(in, ids, n));
    if (has_frame(form, ids, n)) {
        ids += form->before.n;
        n -= (size_t)input_form_n_special(form);
    }
    TRY(encode_text(in, scratch, "", 0)); /* the prompt */
    for (size_t i = 0; i < n; i++) {
        FAIL_IF(!id_list_append(&in->texts.ids, ids[i]), STATUS_MEMORY,
                "out of memory for the tokens of a text");
    }
    return end(in, first);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A request for the last layer's output of all texts, which have been added; take gets the number of a text.
 * The input is borrowed and must not move. */
static struct request
request_of(struct embed_input *in,
           struct status (*take)(void *self, int64_t text, const tensor outputs[MODEL_N_OUTPUTS]), void *self)
{
    size_t n = (size_t)in->texts.n;
    for (size_t i = 0; i < n; i++) { /* sorted by length, then by number */
        in->order[i] = (int64_t)((uint64_t)encoded_texts_length(&in->texts, (int64_t)i) << 32 | i);
    }
    qsort(in->order, n, sizeof *in->order, by_value);
    for (size_t i = 0; i < n; i++) {
        in->order[i] &= UINT32_MAX;
    }
    return (struct request){.source = encoded_texts_source(&in->texts, "texts"),
                            .order = in->order,
                            .outputs = 1U << MODEL_HIDDEN,
                            .take = take,
                            .self = self};
}

/* ---- vectors of texts ---- */

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

static struct status take_tokens(void *self, int64_t text, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct embed_job *j = self;
    tensor h = outputs[MODEL_HIDDEN];
    float *row = j->vectors + encoded_texts_get(&j->input.texts, text)->row * h.dims[1];
    for (int64_t i = 0; i < h.dims[0]; i++) {
        for (int64_t c = 0; c < h.dims[1]; c++) {
            *row++ = (float)tensor_load(h, i * h.strides[0] + c);
        }
    }
    return status_ok();
}

struct status embed_job_make_of(struct embed_job *j, const struct session *s, float *vectors,
                                struct embed_input *input, bool of_tokens)
{
    const struct embed_plan *plan = input->plan;
    *j = (struct embed_job){.input = *input,
                            .v = calloc((size_t)plan->max_width, sizeof *j->v),
                            .next = calloc((size_t)plan->max_width, sizeof *j->next),
                            .row = calloc((size_t)s->model->hidden_size, sizeof *j->row)};
    j->vectors = vectors;
    *input = (struct embed_input){0};
    j->request = request_of(&j->input, of_tokens ? take_tokens : take, j);
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
    return embed_job_make_of(j, s, vectors, &input, false);
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
