#include "nn/bert/bert_model.h"

#include "nn/model_measures.h"

#include <stdio.h>
#include <stdlib.h>

static const struct bert_model *bert_of(const struct model *m)
{
    return (const struct bert_model *)m;
}

static tensor histories_of(const struct model_pass *p, int64_t layer)
{
    return tensor_is_null(p->histories)
               ? NULL_TENSOR
               : tensor_slice(p->histories, layer * LAYER_N_FACTORS, LAYER_N_FACTORS);
}

static struct layer_call call_of(const struct model_pass *p, int64_t layer)
{
    const struct bert_acts *a = p->acts;
    return (struct layer_call){.form = &((const struct bert_acts *)p->acts)->form,
                               .stream = p->stream,
                               .picks = bert_acts_picks(p->model, a, layer),
                               .layer = layer,
                               .training = p->training,
                               .histories = histories_of(p, layer),
                               .adds = p->adds};
}

/* The input of a layer: the output of the layer below, or of the input layer. */
static tensor input_of(const struct bert_acts *a, int64_t layer)
{
    return layer == 0 ? a->embed.out : a->layers[layer - 1].out;
}

static json_t *to_json(const struct model *m)
{
    return bert_config_to_json(&bert_of(m)->config, bert_task_class(m->task));
}

/* ---- parameters ---- */

static struct status declare(const struct model *m, struct param_table *table)
{
    return bert_declare(table, &bert_of(m)->config, m->task);
}

/* ---- activations ---- */

static void destroy_acts(void *acts)
{
    struct bert_acts *a = acts;
    if (a != NULL) {
        free(a->layers);
        free(a);
    }
}

static struct status create_acts(const struct model *m, const struct param_part *part, void **acts)
{
    struct bert_acts *a = calloc(1, sizeof *a);
    if (a != NULL) {
        a->form = layer_form_slice(&bert_of(m)->form, part);
        a->n_slices = param_part_slices(part);
        a->layers = calloc((size_t)m->n_layers, sizeof *a->layers);
    }
    *acts = a;
    FAIL_IF(a == NULL || a->layers == NULL, STATUS_MEMORY, "out of memory for the activations of %lld layers",
            (long long)m->n_layers);
    return status_ok();
}

static void carve_weights(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                          enum fp8_factors fp8)
{
    struct bert_acts *a = acts;
    (void)m;
    self_attention_carve_weights(&a->layers[layer].attention, arena, &a->form, fp8);
    feed_forward_carve_weights(&a->layers[layer].ff, arena, &a->form, fp8);
}

static struct layer_memory layer_memory(struct model_memory m, const struct batch *sizes)
{
    return (struct layer_memory){m.dtype, m.dtype, m.fp8, sizes->n_tokens, m.kept, m.n_row_parts};
}

static void carve_layer(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                        struct model_memory memory, const struct batch *sizes)
{
    struct bert_acts *a = acts;
    const struct layer_form *form = &((const struct bert_acts *)acts)->form;
    if (layer == MODEL_INPUT_LAYER) {
        bert_embed_carve_acts(&a->embed, arena, form, layer_memory(memory, sizes), a->n_slices > 1);
        return;
    }
    struct bert_layer_acts *l = &a->layers[layer];
    bert_of(m)->wiring->carve_acts(l, arena, form, layer_memory(memory, sizes));
    if (memory.kept) {
        self_attention_carve_bits(&l->attention, arena, form, memory.device, sizes);
    }
}

static void share_layer(void *acts, int64_t layer, int64_t of)
{
    struct bert_acts *a = acts;
    bert_layer_share_acts(&a->layers[layer], &a->layers[of]);
}

static void carve_output(const struct model *m, void *acts, int64_t layer, struct arena *arena,
                         struct model_memory memory, const struct batch *sizes)
{
    struct bert_acts *a = acts;
    bert_of(m)->wiring->carve_output(&a->layers[layer], arena, &a->form, layer_memory(memory, sizes));
}

/* Carves the selected rows.  There are none in fp8, whose factors are of complete streams; nor for short
 * streams, where the rounded numbers of rows may add up to more than the tokens. */
static void carve_picks(struct bert_acts *a, struct arena *arena, const struct model *m,
                        struct model_memory memory, const struct batch *sizes)
{
    struct row_picks *p = &a->picks;
    *p = (struct row_picks){0};
    if (!memory.kept || memory.fp8 != FP8_NONE) {
        return;
    }
    if (model_task_has(m->task, MODEL_WORD_LOGITS)) {
        row_picks_add(p, TEXT_MASKED_ROWS, sizes->n_labels);
    }
    if (model_task_has(m->task, MODEL_PAIR_LOGITS) || m->task == MODEL_TASK_SEQUENCE_CLASSIFICATION) {
        row_picks_add(p, TEXT_CLS_ROWS, sizes->n_sequences);
    }
    if (p->n_lists > 0) {
        row_picks_carve(p, arena, memory.dtype, a->form.hidden, layer_heads_width(&a->form));
    }
    p->n_lists = p->n_rows <= sizes->n_tokens ? p->n_lists : 0;
}

static void carve_heads(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes)
{
    struct bert_acts *a = acts;
    const struct bert_config *c = &bert_of(m)->config;
    enum model_task task = m->task;
    carve_picks(a, arena, m, memory, sizes);
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        bert_heads_carve_mlm(&a->heads, arena, c, memory, sizes->n_labels, a->n_slices);
    }
    if (model_task_has(task, MODEL_POOLED)) {
        bert_heads_carve_nsp(&a->heads, arena, c, memory.dtype, sizes->n_sequences);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        bert_qa_carve_acts(&a->qa, arena, memory.dtype, sizes->n_tokens, sizes->n_sequences);
    }
    if (model_task_has_labels(task)) {
        bert_classifier_carve_acts(&a->classifier, arena, c, memory.dtype,
                                   batch_all_rows(sizes, bert_acts_classified(task)));
    }
    if (vector_head_is_of(m)) {
        vector_head_carve(&a->vectors, arena, m, memory.dtype, sizes->n_tokens);
    }
}

static void carve_scratch(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                          const struct batch *sizes)
{
    struct bert_acts *a = acts;
    (void)m;
    layer_scratch_carve(&a->scratch, arena, &a->form, layer_memory(memory, sizes));
}

static tensor output(const void *acts, int64_t layer)
{
    return input_of(acts, layer + 1);
}

/* ---- passes ---- */

static void round_weights(const struct model_pass *p, int64_t layer)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights;
    exec_enter(p->x, "layer", layer);
    self_attention_round_weights(p->x, &a->layers[layer].attention, &w->layers[layer].attention);
    feed_forward_round_weights(p->x, &a->layers[layer].ff, &w->layers[layer].ff);
}

static void input_forward(const struct model_pass *p)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights;
    struct layer_call call = call_of(p, p->model->n_layers - 1);
    bert_embed_forward(p->x, &a->embed, &w->embed, &call, p->model->vocab_size);
}

static void layer_forward(const struct model_pass *p, int64_t layer)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights;
    struct layer_call call = call_of(p, layer);
    struct fp8_factor in_fp8 = self_attention_input(&a->layers[layer].attention, &call), next_fp8;
    struct bert_layer_io io = {input_of(a, layer),
                               layer == 0 ? NULL_TENSOR : a->layers[layer - 1].norm_2.sum};
    if (layer > p->first) {
        io.in = fp8_rounded_by_maker(io.in, &in_fp8);
    }
    if (layer + 1 < p->end) {
        struct layer_call next = call_of(p, layer + 1);
        next_fp8 = self_attention_input(&a->layers[layer + 1].attention, &next);
        call.next = &next_fp8;
    }
    bert_of(p->model)->wiring->forward(p->x, &a->layers[layer], &a->scratch, io, &w->layers[layer], &call);
}

/* The dropout addresses of the classifier's rows. */
static tensor keys_of(const struct model_pass *p)
{
    bool tokens = p->model->task == MODEL_TASK_TOKEN_CLASSIFICATION;
    return tokens ? p->stream->row_keys : p->stream->fields[TEXT_CLS_KEYS];
}

/* Runs the heads up to their logits, without the logits of words. */
static void heads_begin(const struct model_pass *p, const struct layer_call *call)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights;
    enum model_task task = p->model->task;
    tensor h = output(a, p->model->n_layers - 1);
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        bert_heads_transform(p->x, &a->heads, h, &w->heads, call);
    }
    if (model_task_has(task, MODEL_POOLED)) {
        bert_heads_pool(p->x, &a->heads, h, &w->heads, call);
    }
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        bert_heads_nsp_forward(p->x, &a->heads, &w->heads);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        bert_qa_forward(p->x, &a->qa, h, &w->qa);
    }
    if (model_task_has_labels(task)) {
        bool tokens = task == MODEL_TASK_TOKEN_CLASSIFICATION;
        bert_classifier_forward(p->x, &a->classifier, tokens ? h : a->heads.pooled, keys_of(p),
                                &w->classifier, &bert_of(p->model)->config, call);
    }
}

/* MLM logits = z E^T + b_vocab */
static struct word_head word_head_of(const struct model_pass *p)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights;
    exec_enter(p->x, "MLM head", -1);
    return (struct word_head){.rows = a->heads.t_out,
                              .word = w->embed.word,
                              .bias = w->heads.b_vocab,
                              .labels = p->stream->fields[TEXT_MASKED_LABELS],
                              .scale = tensor_slice(p->loss_scales, 0, 1),
                              .n_words = p->model->n_words};
}

static void heads_forward(const struct model_pass *p)
{
    const struct bert_acts *a = p->acts;
    struct layer_call call = call_of(p, p->model->n_layers - 1);
    heads_begin(p, &call);
    if (model_task_has(p->model->task, MODEL_WORD_LOGITS)) {
        struct word_head words = word_head_of(p);
        word_head_forward(p->x, &a->heads.words, &words);
    }
}

/* Computes the losses of all heads but that of words, and the gradients of their logits. */
static void losses(const struct model_pass *p, tensor sums, const struct layer_call *call)
{
    const struct bert_acts *a = p->acts;
    enum model_task task = p->model->task;
    tensor first = tensor_slice(p->loss_scales, 0, 1);
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        bert_heads_nsp_loss(p->x, tensor_slice(sums, BERT_NSP_LOSS, 2), &a->heads,
                            tensor_slice(p->loss_scales, 1, 1), call);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        bert_qa_loss(p->x, tensor_slice(sums, 0, 2), &a->qa, first, call);
    }
    if (model_task_has_labels(task)) {
        bert_classifier_loss(p->x, tensor_slice(sums, 0, 2), &a->classifier,
                             p->stream->fields[TEXT_CLASS_LABELS], first, &bert_of(p->model)->config);
    }
}

static void heads_measure(const struct model_pass *p, tensor sums)
{
    const struct bert_acts *a = p->acts;
    struct layer_call call = call_of(p, p->model->n_layers - 1);
    heads_begin(p, &call);
    if (model_task_has(p->model->task, MODEL_WORD_LOGITS)) {
        struct word_head words = word_head_of(p);
        word_head_measure(p->x, tensor_slice(sums, BERT_MLM_LOSS, 2), &a->heads.words, &words);
    }
    losses(p, sums, &call);
}

/* Computes the gradient of the last layer's output from the gradients of the logits, and of z. */
static void heads_backward(const struct model_pass *p, tensor dx, const struct layer_call *call)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights, *g = p->grads;
    const struct bert_config *c = &bert_of(p->model)->config;
    enum model_task task = p->model->task;
    tensor h = output(a, p->model->n_layers - 1);
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        bert_qa_backward(p->x, dx, &g->qa, &a->qa, h, &w->qa, p->adds);
        return;
    }
    if (task == MODEL_TASK_TOKEN_CLASSIFICATION) {
        bert_classifier_backward(p->x, dx, &g->classifier, &a->classifier, keys_of(p), &w->classifier, c,
                                 call);
        return;
    }
    if (call->picks == NULL) {
        p->x->ops->fill(p->x, dx, 0);
    }
    if (task == MODEL_TASK_SEQUENCE_CLASSIFICATION) {
        bert_classifier_backward(p->x, a->heads.dpooled, &g->classifier, &a->classifier, keys_of(p),
                                 &w->classifier, c, call);
    }
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        bert_heads_nsp_backward(p->x, &g->heads, &a->heads, &w->heads, call);
    }
    if (model_task_has(task, MODEL_POOLED)) {
        bert_heads_pool_backward(p->x, dx, &g->heads, &a->heads, h, &w->heads, call);
    }
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        bert_heads_transform_backward(p->x, dx, &g->heads, &a->heads, h, &w->heads, call);
    }
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *g = p->grads;
    struct layer_call call = call_of(p, p->model->n_layers - 1);
    if (vector_head_is_of(p->model)) { /* the pooler has no part in it */
        p->x->ops->fill(p->x, g->heads.w_pool, 0);
        p->x->ops->fill(p->x, g->heads.b_pool, 0);
        vector_head_learn(p, dx, &a->vectors);
        return;
    }
    heads_begin(p, &call);
    if (model_task_has(p->model->task, MODEL_WORD_LOGITS)) {
        struct word_head words = word_head_of(p);
        struct word_head_gradients gradients = {a->heads.dtransform, g->embed.word, g->heads.b_vocab};
        word_head_learn(p->x, tensor_slice(sums, BERT_MLM_LOSS, 2), &gradients, &a->heads.words, &words);
    }
    losses(p, sums, &call);
    heads_backward(p, dx, &call);
}

static void layer_backward(const struct model_pass *p, int64_t layer, tensor dx)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights, *g = p->grads;
    struct layer_call call = call_of(p, layer);
    bert_of(p->model)->wiring->backward(p->x, dx, &g->layers[layer], &a->scratch, &a->layers[layer],
                                        input_of(a, layer), &w->layers[layer], &call);
}

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights, *g = p->grads;
    struct layer_call call = call_of(p, 0);
    bert_embed_backward(p->x, dx, &g->embed, &a->embed, &w->embed, &call, p->model->vocab_size);
}

static tensor head_output(const void *acts, enum model_output output)
{
    const struct bert_acts *a = acts;
    switch (output) {
    case MODEL_WORD_LOGITS: return a->heads.words.all_logits;
    case MODEL_WORD_LOSSES: return a->heads.words.loss;
    case MODEL_WORD_CORRECT: return a->heads.words.correct;
    case MODEL_PAIR_LOGITS: return a->heads.nsp_logits;
    case MODEL_SPAN_LOGITS: return a->qa.logits;
    case MODEL_POOLED: return a->heads.pooled;
    case MODEL_TEXT_LOGITS:
    case MODEL_TOKEN_LOGITS: return a->classifier.logits;
    case MODEL_HIDDEN: /* stage_head_output has it */
    case MODEL_CHOICES:
    case MODEL_CHOICE_LOG_PS: /* the network has them */
    case MODEL_N_OUTPUTS: break;
    }
    return NULL_TENSOR;
}

static const void *config(const struct model *m)
{
    return &bert_of(m)->config;
}

static const struct model_type bert_type = {
    .name = "bert",
    .in_slices = true,
    .learns_vectors = true,
    .config = config,
    .to_json = to_json,
    .declare = declare,
    .create_weights = bert_create_weights,
    .destroy_weights = bert_destroy_weights,
    .create_acts = create_acts,
    .destroy_acts = destroy_acts,
    .carve_weights = carve_weights,
    .round_weights = round_weights,
    .carve_layer = carve_layer,
    .share_layer = share_layer,
    .carve_output = carve_output,
    .carve_heads = carve_heads,
    .carve_scratch = carve_scratch,
    .output = output,
    .input_forward = input_forward,
    .layer_forward = layer_forward,
    .heads_forward = heads_forward,
    .heads_measure = heads_measure,
    .heads_learn = heads_learn,
    .layer_backward = layer_backward,
    .input_backward = input_backward,
    .visit = bert_visit,
    .visit_gradients = bert_visit_gradients,
    .head_output = head_output,
};

static struct batch_field label_field(const struct bert_config *c, enum model_task task)
{
    struct batch_field f = text_batch_layout.fields[TEXT_CLASS_LABELS];
    bool single = c->labels.problem == PROBLEM_SINGLE_LABEL;
    f.rows = bert_acts_classified(task);
    f.width = single ? 1 : (int)c->labels.n;
    f.dtype = single ? DTYPE_I32 : DTYPE_F32;
    f.nothing = single ? -1 : BATCH_NO_NUMBER;
    return f;
}

struct bert_model bert_model(const struct bert_config *config, enum model_task task)
{
    struct bert_model b = {
        .model = {.type = &bert_type,
                  .n_layers = config->num_hidden_layers,
                  .hidden_size = config->hidden_size,
                  .n_heads = config->num_attention_heads,
                  .max_length = config->max_position_embeddings,
                  .feed_forward_size = config->intermediate_size,
                  .n_factors = LAYER_N_FACTORS,
                  .form = config->layer_norm_large_model ? "pre-LN" : NULL,
                  .hands_on_more = config->layer_norm_large_model,
                  .task = task,
                  .labels = config->labels,
                  .vocab_size = config->vocab_size,
                  .n_words = bert_config_n_words(config),
                  .layout = text_batch_layout},
        .config = *config,
        .form = {.n_layers = config->num_hidden_layers,
                 .hidden = config->hidden_size,
                 .head_size = config->hidden_size / config->num_attention_heads,
                 .n_heads = config->num_attention_heads,
                 .feed_forward = config->intermediate_size,
                 .dropout = config->hidden_dropout_prob,
                 .attention_dropout = config->attention_probs_dropout_prob,
                 .norm_eps = config->layer_norm_eps},
        .wiring = config->layer_norm_large_model ? &bert_layer_pre : &bert_layer_post,
    };
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        b.model.tied = "bert.embeddings.word_embeddings.weight";
        model_add_measure(&b.model, MEASURE_MASKED_WORDS, TEXT_MASKED_LABELS);
    }
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        model_add_measure(&b.model, MEASURE_NEXT_SENTENCE, TEXT_PAIR_LABELS);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        model_add_measure(&b.model, MEASURE_ANSWER, TEXT_SPAN_LABELS);
    }
    if (model_task_has_labels(task)) {
        b.model.layout.fields[TEXT_CLASS_LABELS] = label_field(config, task);
        model_add_measure(&b.model, MEASURE_LABEL, TEXT_CLASS_LABELS);
    }
    return b;
}

struct status bert_model_create(struct model **model, const void *config, enum model_task task)
{
    struct bert_model *b = malloc(sizeof *b);
    FAIL_IF(b == NULL, STATUS_MEMORY, "out of memory for a model");
    *b = bert_model(config, task);
    *model = &b->model;
    return status_ok();
}
