#include "serve/model_outputs.h"

#include "data/text_batch.h"
#include "dev/host_view.h"
#include "io/safetensors.h"
#include "ops/backend.h"
#include "pass/culprit.h"
#include "pass/network_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const outputs_names[OUTPUTS_N] = {"mlm", "nsp", "qa", "hidden", "pooled", "texts", "words"};

static struct status no_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the outputs of a model");
}

/* ---- the batch ---- */

/* A special token where there is one, else the piece. */
static int32_t special_or(const struct tokenizer *t, enum special_token special, int32_t piece)
{
    return t->special[special] >= 0 ? t->special[special] : piece;
}

/* [CLS] a [SEP] b [SEP], one token in seven masked; the multipliers are primes without meaning. */
static int32_t fixed_id(const struct tokenizer *t, int64_t sequence, int64_t place, int64_t n)
{
    int32_t piece = (int32_t)((place * 7919 + sequence * 104729 + 11) % t->n);
    if (place == 0) {
        return special_or(t, SPECIAL_BEGIN, piece);
    }
    if (place == n - 1 || place == n / 2) {
        return special_or(t, SPECIAL_SEPARATOR, piece);
    }
    return place % 7 == 3 ? special_or(t, SPECIAL_MASK, piece) : piece;
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
            in->ids[b * length + s] = real ? fixed_id(&m->tokenizer, b, s, lengths[b]) : pad;
            in->types[b * length + s] = real && s > lengths[b] / 2;
        }
    }
    return status_ok();
}

void outputs_input_fini(struct outputs_input *in)
{
    free(in->ids);
    free(in->types);
    free(in->lengths);
    *in = (struct outputs_input){0};
}

/* Every token is asked for its word. */
static void fill_batch(struct batch *b, const struct outputs_input *in, int32_t pad)
{
    batch_clear(b);
    for (int64_t i = 0; i < in->n_sequences; i++) {
        const int32_t *types = in->types + i * in->length;
        int64_t n = in->lengths[i], n_first = 0;
        while (n_first < n && types[n_first] == 0) {
            n_first++;
        }
        memcpy(text_batch_add(b, n, n_first, -1, 0), in->ids + i * in->length, (size_t)n * sizeof *in->ids);
        for (int64_t p = 0; p < n; p++) {
            text_batch_masked_positions(b)[p] = (int32_t)p;
            text_batch_masked_labels(b)[p] = -1;
        }
        text_batch_take_masked(b, n);
    }
    batch_finish(b, pad);
}

/* ---- the outputs ---- */

/* An output where the network has it, the rounding of the stream and of the vocabulary included. */
static tensor output_of(const struct network *net, int output)
{
    static const enum model_output heads[] = {
        [OUTPUTS_MLM] = MODEL_WORD_LOGITS,    [OUTPUTS_NSP] = MODEL_PAIR_LOGITS,
        [OUTPUTS_QA] = MODEL_SPAN_LOGITS,     [OUTPUTS_POOLED] = MODEL_POOLED,
        [OUTPUTS_TEXTS] = MODEL_CLASS_LOGITS, [OUTPUTS_WORDS] = MODEL_CLASS_LOGITS};
    bool texts = net->config.model->task == MODEL_TASK_SEQUENCE_CLASSIFICATION;
    if (output == OUTPUTS_HIDDEN) {
        return stage_output(&net->stage);
    }
    if ((output == OUTPUTS_TEXTS && !texts) || (output == OUTPUTS_WORDS && texts)) {
        return NULL_TENSOR;
    }
    return stage_head_output(&net->stage, heads[output]);
}

static struct status copy_output(tensor *out, struct network *net, tensor from, int64_t rows, int64_t cols,
                                 int output)
{
    struct host_view view;
    float *to = malloc((size_t)(rows * cols + 1) * sizeof *to);
    if (to == NULL) {
        return no_memory();
    }
    *out = tensor_2d(to, DTYPE_F32, rows, cols);
    TRY(host_view_open(&view, &net->x, from));
    for (int64_t r = 0; r < rows; r++) {
        memcpy(to + r * cols, (const float *)view.host.data + r * view.host.strides[0],
               (size_t)cols * sizeof *to);
    }
    host_view_close(&view);
    return culprit_of_result(net, *out, outputs_names[output]);
}

static struct status copy_outputs(struct model_outputs *o, struct network *net,
                                  const struct outputs_input *in)
{
    int64_t n_tokens = 0;
    for (int64_t i = 0; i < in->n_sequences; i++) {
        n_tokens += in->lengths[i];
    }
    for (int k = 0; k < OUTPUTS_N; k++) {
        tensor from = output_of(net, k);
        bool of_sequences = k == OUTPUTS_NSP || k == OUTPUTS_POOLED || k == OUTPUTS_TEXTS;
        int64_t cols = k == OUTPUTS_MLM       ? net->config.model->vocab_size
                       : tensor_is_null(from) ? 0
                                              : from.dims[1];
        if (!tensor_is_null(from)) {
            TRY(copy_output(&o->values[k], net, from, of_sequences ? in->n_sequences : n_tokens, cols, k));
        }
    }
    return status_ok();
}

static struct status run(struct model_outputs *o, struct network *net, const struct model_dir *m,
                         const struct outputs_input *in)
{
    const struct model *model = net->config.model;
    struct load_report report;
    struct batch b = {0};
    TRY(network_files_load(net, m, model->task, 0, &report));
    struct status s = batch_init(&b, &model->layout, net->config.limits);
    if (!failed(s)) {
        fill_batch(&b, in, tokenizer_tail_id(&m->tokenizer));
        stage_infer(&net->stage, &b);
        s = net->x.status;
    }
    batch_fini(&b);
    return failed(s) ? s : copy_outputs(o, net, in);
}

struct status model_outputs_compute(struct model_outputs *o, const struct model_dir *m, enum model_task task,
                                    const struct outputs_input *in)
{
    struct model *model;
    struct network net;
    *o = (struct model_outputs){0};
    TRY(m->family->create(&model, m->config, task));
    struct network_config config = {
        .model = model,
        .device = &device_cpu,
        .ops = ops_cpu(),
        .precision = {.dtype = DTYPE_F32},
        .limits = text_batch_limits(in->n_sequences, in->length, in->length),
    };
    struct status s = network_init(&net, &config);
    if (!failed(s)) {
        s = run(o, &net, m, in);
        network_fini(&net);
    }
    model->type->destroy(model);
    if (failed(s)) {
        model_outputs_fini(o);
    }
    return s;
}

void model_outputs_fini(struct model_outputs *o)
{
    for (int k = 0; k < OUTPUTS_N; k++) {
        free(o->values[k].data);
    }
    *o = (struct model_outputs){0};
}

bool model_outputs_compare(double *difference, double *largest, const struct model_outputs *a,
                           const struct model_outputs *b, int output)
{
    tensor x = a->values[output], y = b->values[output];
    *difference = *largest = 0;
    if (tensor_is_null(x) || tensor_is_null(y) || !tensor_same_shape(x, y)) {
        return false;
    }
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double p = ((const float *)x.data)[i], q = ((const float *)y.data)[i];
        *difference = fmax(*difference, fabs(p - q));
        *largest = fmax(*largest, fabs(p));
    }
    return true;
}

struct status model_outputs_save(const char *path, const struct outputs_input *in,
                                 const struct model_outputs *o)
{
    struct safetensors_item items[3 + OUTPUTS_N] = {
        {"ids", tensor_2d(in->ids, DTYPE_I32, in->n_sequences, in->length), NULL, false},
        {"types", tensor_2d(in->types, DTYPE_I32, in->n_sequences, in->length), NULL, false},
        {"lengths", tensor_1d(in->lengths, DTYPE_I32, in->n_sequences), NULL, false},
    };
    int n = 3;
    struct safetensors_writer w;
    for (int k = 0; k < OUTPUTS_N; k++) {
        if (!tensor_is_null(o->values[k])) {
            items[n++] = (struct safetensors_item){outputs_names[k], o->values[k], NULL, false};
        }
    }
    TRY(safetensors_writer_open(&w, path, items, n));
    for (int i = 0; i < n; i++) {
        safetensors_writer_put(&w, items[i].shape);
    }
    return safetensors_writer_commit(&w);
}
