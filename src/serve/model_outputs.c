#include "serve/model_outputs.h"

#include "data/encoded_texts.h"
#include "data/text_batch.h"
#include "io/safetensors.h"
#include "ops/backend.h"
#include "pass/network_files.h"
#include "serve/packer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *model_outputs_name(const struct model_outputs *o, enum model_output output)
{
    bool is_next = output == MODEL_WORD_LOGITS && o->task == MODEL_TASK_CAUSAL_LM;
    return is_next ? "lm" : model_heads[output].name;
}

static struct status no_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the outputs of a model");
}

/* ---- the batch ---- */

/* One token in seven masked; the multipliers are primes without meaning. */
static int32_t fixed_id(const struct tokenizer *t, int64_t sequence, int64_t place)
{
    int32_t piece = (int32_t)((place * 7919 + sequence * 104729 + 11) % t->n);
    bool masked = place % 7 == 3 && t->special[SPECIAL_MASK] >= 0;
    return masked ? t->special[SPECIAL_MASK] : piece;
}

/* The special tokens around a pair, if the tokenizer has them and they fit the sequence. */
static void put_frame(const struct tokenizer *t, int32_t *ids, int64_t n)
{
    struct input_frame frame;
    if (failed(tokenizer_frame(&frame, t, "a pair of texts"))) {
        return;
    }
    int64_t room = n - input_form_n_special(&frame.pair);
    if (room >= 0) {
        input_form_write(&frame.pair, ids, (room + 1) / 2, room / 2);
    }
}

struct status outputs_input_fixed(struct outputs_input *in, const struct model_dir *m)
{
    enum { SEQUENCES = 3, MOST = 64 };
    int64_t length = m->max_length < MOST ? m->max_length : MOST;
    const int64_t lengths[SEQUENCES] = {length, (length + 1) / 2, length < 5 ? length : 5};
    size_t n = (size_t)(SEQUENCES * length);
    *in = (struct outputs_input){SEQUENCES, length, calloc(n, sizeof *in->ids), calloc(n, sizeof *in->types),
                                 calloc(SEQUENCES, sizeof *in->lengths)};
    if (in->ids == NULL || in->types == NULL || in->lengths == NULL) {
        outputs_input_fini(in);
        return no_memory();
    }
    for (int64_t b = 0; b < SEQUENCES; b++) {
        in->lengths[b] = (int32_t)lengths[b];
        for (int64_t s = 0; s < length; s++) {
            int32_t pad = tokenizer_tail_id(&m->tokenizer);
            bool real = s < lengths[b];
            in->ids[b * length + s] = real ? fixed_id(&m->tokenizer, b, s) : pad;
            in->types[b * length + s] = real && s > lengths[b] / 2 && !m->tokenizer.has_one_segment;
        }
        put_frame(&m->tokenizer, in->ids + b * length, lengths[b]);
    }
    return status_ok();
}

static struct status encode(struct encoded_texts *e, const struct model_dir *m, const char *const *texts,
                            int n)
{
    struct tokenizer_scratch scratch;
    TRY(tokenizer_scratch_init(&scratch, &m->tokenizer));
    struct status s = status_ok();
    for (int i = 0; i < n && !failed(s); i++) {
        s = encoded_texts_add(e, &scratch, (struct text_bytes){texts[i], strlen(texts[i])}, NULL);
    }
    tokenizer_scratch_fini(&scratch);
    return s;
}

static struct status from_encoded(struct outputs_input *in, const struct encoded_texts *e, int32_t pad)
{
    size_t n = (size_t)e->n, n_ids = n * (size_t)e->max_length;
    *in = (struct outputs_input){e->n, e->max_length, malloc(n_ids * sizeof *in->ids),
                                 calloc(n_ids, sizeof *in->types), malloc(n * sizeof *in->lengths)};
    if (in->ids == NULL || in->types == NULL || in->lengths == NULL) {
        outputs_input_fini(in);
        return no_memory();
    }
    for (size_t i = 0; i < n_ids; i++) {
        in->ids[i] = pad;
    }
    for (int64_t i = 0; i < e->n; i++) {
        in->lengths[i] = (int32_t)encoded_texts_length(e, i);
        encoded_texts_write(e, i, in->ids + i * e->max_length);
    }
    return status_ok();
}

struct status outputs_input_texts(struct outputs_input *in, const struct model_dir *m,
                                  const char *const *texts, int n, int64_t length)
{
    struct encoded_texts e;
    *in = (struct outputs_input){0};
    TRY(encoded_texts_init(&e, &m->tokenizer, length < m->max_length ? length : m->max_length, "a text"));
    struct status s = encode(&e, m, texts, n);
    s = failed(s) ? s : from_encoded(in, &e, tokenizer_tail_id(&m->tokenizer));
    encoded_texts_fini(&e);
    return s;
}

void outputs_input_fini(struct outputs_input *in)
{
    free(in->ids);
    free(in->types);
    free(in->lengths);
    *in = (struct outputs_input){0};
}

/* The sequences as a source; every token is asked for its word. */
static int64_t length(const void *self, int64_t i)
{
    return ((const struct outputs_input *)self)->lengths[i];
}

static void add(const void *self, int64_t i, int32_t key, struct batch *out)
{
    const struct outputs_input *in = self;
    const int32_t *types = in->types + i * in->length;
    int64_t n = in->lengths[i], n_first = 0;
    while (n_first < n && types[n_first] == 0) {
        n_first++;
    }
    memcpy(text_batch_add(out, n, n_first, -1, key), in->ids + i * in->length, (size_t)n * sizeof *in->ids);
    for (int64_t p = 0; p < n; p++) {
        text_batch_masked_positions(out)[p] = (int32_t)p;
        text_batch_masked_labels(out)[p] = -1;
    }
    text_batch_take_masked(out, n);
}

/* ---- the outputs ---- */

/* Values that are filled row by row. */
struct taking {
    struct model_outputs *values;
    int64_t n_rows[MODEL_N_OUTPUTS]; /* so far */
};

static struct status take(void *self, int64_t sequence, const tensor outputs[MODEL_N_OUTPUTS])
{
    struct taking *t = self;
    (void)sequence;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        tensor from = outputs[k], to = t->values->values[k];
        for (int64_t r = 0; !tensor_is_null(from) && r < from.dims[0]; r++) {
            memcpy((float *)to.data + t->n_rows[k]++ * to.dims[1],
                   (const float *)from.data + r * from.strides[0], (size_t)to.dims[1] * sizeof(float));
        }
    }
    return status_ok();
}

/* The outputs that files have, of those that the network has. */
static unsigned outputs_of(const struct network *net)
{
    return packer_outputs(net) & ~MODEL_HAS(WORD_LOSSES);
}

static struct status allocate(struct model_outputs *o, const struct packer *p, const struct outputs_input *in)
{
    int64_t n_tokens = 0;
    for (int64_t i = 0; i < in->n_sequences; i++) {
        n_tokens += in->lengths[i];
    }
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        tensor largest = p->rows[k];
        if (tensor_is_null(largest)) {
            continue;
        }
        int64_t rows = model_heads[k].rows == BATCH_OF_SEQUENCES ? in->n_sequences : n_tokens,
                cols = k == MODEL_WORD_LOGITS ? p->net->config.model->vocab_size : largest.dims[1];
        float *to = malloc((size_t)(rows * cols + 1) * sizeof *to);
        if (to == NULL) {
            return no_memory();
        }
        o->values[k] = tensor_2d(to, DTYPE_F32, rows, cols);
    }
    return status_ok();
}

static struct status compute(struct model_outputs *o, struct packer *p, const struct outputs_input *in)
{
    struct taking t = {.values = o};
    struct request r = {
        .source = {.name = "sequences", .self = in, .n = in->n_sequences, .length = length, .add = add},
        .n_asked = in->length,
        .outputs = outputs_of(p->net),
        .take = take,
        .self = &t};
    TRY(allocate(o, p, in));
    return packer_answer(p, &r);
}

static struct status run(struct model_outputs *o, struct network *net, const struct model_dir *m,
                         unsigned may_be_new, const struct outputs_input *in)
{
    struct load_report report;
    struct packer p;
    TRY(network_files_load(net, m, net->config.model->task, may_be_new, NULL, &report));
    struct status s =
        packer_init(&p, net, net->config.limits, tokenizer_tail_id(&m->tokenizer), outputs_of(net));
    s = failed(s) ? s : compute(o, &p, in);
    packer_fini(&p);
    return s;
}

static struct status compute_in(struct model_outputs *o, const struct model_dir *m, enum model_task task,
                                unsigned may_be_new, const struct outputs_input *in,
                                struct precision precision)
{
    struct model *model;
    struct network net;
    *o = (struct model_outputs){.task = task};
    TRY(m->family->create(&model, m->config, task));
    struct network_config config = {
        .model = model,
        .device = &device_cpu,
        .ops = ops_cpu(),
        .precision = precision,
        .limits = text_batch_limits(in->n_sequences, in->length, in->length),
        .whole_logits = true,
    };
    struct status s = network_init(&net, &config);
    if (!failed(s)) {
        s = run(o, &net, m, may_be_new, in);
        network_fini(&net);
    }
    free(model);
    if (failed(s)) {
        model_outputs_fini(o);
    }
    return s;
}

struct status model_outputs_compute(struct model_outputs *o, const struct model_dir *m, enum model_task task,
                                    const struct outputs_input *in)
{
    return compute_in(o, m, task, 0, in, (struct precision){.dtype = DTYPE_F32});
}

struct status model_outputs_compute_in(struct model_outputs *o, const struct model_dir *m,
                                       enum model_task task, const struct outputs_input *in,
                                       struct precision precision)
{
    return compute_in(o, m, task, 1U << NAMES_POOLER, in, precision);
}

double model_outputs_cosine(const struct model_outputs *a, const struct model_outputs *b,
                            enum model_output output)
{
    tensor x = a->values[output], y = b->values[output];
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; !tensor_is_null(x) && !tensor_is_null(y) && i < tensor_count(x); i++) {
        double p = ((const float *)x.data)[i], q = ((const float *)y.data)[i];
        xx += p * p;
        yy += q * q;
        xy += p * q;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : xx > 0 || yy > 0 ? 0 : 1;
}

void model_outputs_fini(struct model_outputs *o)
{
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        free(o->values[k].data);
    }
    *o = (struct model_outputs){0};
}

bool model_outputs_compare(double *difference, double *largest, const struct model_outputs *a,
                           const struct model_outputs *b, enum model_output output)
{
    tensor x = a->values[output], y = b->values[output];
    *difference = *largest = 0;
    bool fit = !tensor_is_null(x) && !tensor_is_null(y) && x.dims[0] == y.dims[0] &&
               (output == MODEL_WORD_LOGITS || x.dims[1] == y.dims[1]);
    int64_t cols = !fit ? 0 : x.dims[1] < y.dims[1] ? x.dims[1] : y.dims[1];
    for (int64_t i = 0; fit && i < x.dims[0] * cols; i++) {
        double p = ((const float *)x.data)[i / cols * x.dims[1] + i % cols];
        double q = ((const float *)y.data)[i / cols * y.dims[1] + i % cols];
        *difference = fmax(*difference, fabs(p - q));
        *largest = fmax(*largest, fabs(p));
    }
    return fit;
}

struct status model_outputs_save(const char *path, const struct outputs_input *in,
                                 const struct model_outputs *o)
{
    struct safetensors_item items[3 + MODEL_N_OUTPUTS] = {
        {"ids", tensor_2d(in->ids, DTYPE_I32, in->n_sequences, in->length), NULL, false, 0},
        {"types", tensor_2d(in->types, DTYPE_I32, in->n_sequences, in->length), NULL, false, 0},
        {"lengths", tensor_1d(in->lengths, DTYPE_I32, in->n_sequences), NULL, false, 0},
    };
    int n = 3;
    struct safetensors_writer w;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        if (!tensor_is_null(o->values[k])) {
            items[n++] = (struct safetensors_item){model_outputs_name(o, k), o->values[k], NULL, false, 0};
        }
    }
    TRY(safetensors_writer_open(&w, path, items, n));
    for (int i = 0; i < n; i++) {
        safetensors_writer_put(&w, items[i].shape);
    }
    return safetensors_writer_commit(&w);
}
