#include "nn/bert/bert_model.h"

#include "nn/model_measures.h"

#include <stdlib.h>

static const struct bert_model *bert_of(const struct model *m)
{
    return (const struct bert_model *)m;
}

static const struct bert_kind *kind_of(const struct model *m)
{
    return bert_config_kind(&bert_of(m)->config);
}

static json_t *to_json(const struct model *m)
{
    return bert_config_to_json(&bert_of(m)->config, kind_of(m)->classes[m->task]);
}

/* Whether the pooler's weights are a layer of a classifier of texts. */
static bool has_dense(const struct model *m)
{
    return kind_of(m)->dense != NULL && m->task == MODEL_TASK_SEQUENCE_CLASSIFICATION;
}

/* Whether the task has the pooler, under either name. */
static bool has_pooler(const struct model *m)
{
    return model_task_has(m->task, MODEL_POOLED) && (has_dense(m) || kind_of(m)->pooler != NULL);
}

/* ---- activations ---- */

static void carve_input(const struct block_model *m, void *acts, struct arena *arena,
                        struct layer_memory memory)
{
    struct bert_acts *a = acts;
    bert_embed_carve_acts(&a->embed, arena, &a->stack.form, memory,
                          a->stack.n_slices > 1 || kind_of(&m->model)->has_no_types);
    a->stack.in = a->embed.out;
}

/* Carves the selected rows.  There are none in fp8, whose factors are of complete streams; nor for short
 * streams, where the rounded numbers of rows may add up to more than the tokens. */
static void carve_picks(struct bert_acts *a, struct arena *arena, const struct model *m,
                        struct model_memory memory, const struct batch *sizes)
{
    struct row_picks *p = &a->stack.picks;
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
        row_picks_carve(p, arena, memory.dtype, a->stack.form.hidden, layer_heads_width(&a->stack.form));
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
        bert_heads_carve_mlm(&a->heads, arena, c, memory, sizes->n_labels, a->stack.n_slices);
    }
    if (has_pooler(m)) {
        bert_heads_carve_nsp(&a->heads, arena, c, memory.dtype, sizes->n_sequences);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        answer_head_carve(&a->qa, arena, memory, c->hidden_size, c->answer_dropout > 0, sizes);
    }
    if (model_task_has_labels(task)) {
        label_head_carve(&a->classifier, arena, m, memory.dtype,
                         batch_all_rows(sizes, bert_acts_classified(task)));
    }
    if (vector_head_is_of(m)) {
        vector_head_carve(&a->vectors, arena, m, memory.dtype, sizes->n_tokens);
    }
}

/* ---- passes ---- */

/* The weights of the input, or their gradients, whose table of positions begins with the first token's. */
static struct bert_embed_weights embed_of(const struct model_pass *p, const void *weights)
{
    const struct bert_config *c = &bert_of(p->model)->config;
    struct bert_embed_weights w = ((const struct bert_weights *)weights)->embed;
    w.position = tensor_slice(w.position, c->first_position, bert_config_max_length(c));
    return w;
}

static void input_forward(const struct model_pass *p)
{
    const struct bert_acts *a = p->acts;
    struct bert_embed_weights w = embed_of(p, p->weights);
    struct layer_call call = block_model_call(p, p->model->n_layers - 1);
    bert_embed_forward(p->x, &a->embed, &w, &call, p->model->vocab_size);
}

/* Dropout sites above those of all layers, behind that of the embeddings. */
static const uint32_t SITE_CLASSIFIER = 0xFFFF0001U, SITE_DENSE = 0xFFFF0002U, SITE_ANSWERS = 0xFFFF0003U;

/* The classifier's rows: those of tokens are `h`, the last layer's output. */
static struct head_rows classified(const struct model_pass *p, tensor h)
{
    const struct bert_acts *a = p->acts;
    const struct bert_config *c = &bert_of(p->model)->config;
    bool tokens = p->model->task == MODEL_TASK_TOKEN_CLASSIFICATION;
    double drop =
        tokens && kind_of(p->model)->names_dropouts ? c->hidden_dropout_prob : c->classifier_dropout;
    return (struct head_rows){
        .rows = tokens ? h : a->heads.pooled,
        .keys = tokens ? p->stream->row_keys : p->stream->fields[TEXT_CLS_KEYS],
        .drop = {.p = p->training ? drop : 0, .site = SITE_CLASSIFIER},
    };
}

/* The rows that may be answers, of `h`, the last layer's output. */
static struct head_rows answering(const struct model_pass *p, tensor h)
{
    double drop = bert_of(p->model)->config.answer_dropout;
    return (struct head_rows){h, p->stream->row_keys, {.p = p->training ? drop : 0, .site = SITE_ANSWERS}};
}

/* The dropout in front of the dense layer of a classifier of texts, if it has one of its own. */
static struct dropout dense_dropout(const struct model_pass *p)
{
    bool drops = p->training && has_dense(p->model) && kind_of(p->model)->drops_before_dense;
    return (struct dropout){.p = drops ? bert_of(p->model)->config.classifier_dropout : 0,
                            .site = SITE_DENSE};
}

/* Runs the heads up to their logits, without the logits of words. */
static void heads_begin(const struct model_pass *p, const struct layer_call *call)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *w = p->weights;
    enum model_task task = p->model->task;
    tensor h = block_model_output(a, p->model->n_layers - 1);
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        bert_heads_transform(p->x, &a->heads, h, &w->heads, call);
    }
    if (has_pooler(p->model)) {
        bert_heads_pool(p->x, &a->heads, h, &w->heads, dense_dropout(p), call);
    }
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        bert_heads_nsp_forward(p->x, &a->heads, &w->heads);
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        struct head_rows in = answering(p, h);
        answer_head_forward(p->x, &a->qa, &in, &w->qa);
    }
    if (model_task_has_labels(task)) {
        struct head_rows in = classified(p, h);
        label_head_forward(p->x, &a->classifier, &in, &w->classifier);
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
    struct layer_call call = block_model_call(p, p->model->n_layers - 1);
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
        answer_head_loss(p->x, tensor_slice(sums, 0, 2), &a->qa, first, call);
    }
    if (model_task_has_labels(task)) {
        label_head_loss(p->x, tensor_slice(sums, 0, 2), &a->classifier, p->stream->fields[TEXT_CLASS_LABELS],
                        first, &p->model->labels);
    }
}

static void heads_measure(const struct model_pass *p, tensor sums)
{
    const struct bert_acts *a = p->acts;
    struct layer_call call = block_model_call(p, p->model->n_layers - 1);
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
    enum model_task task = p->model->task;
    tensor h = block_model_output(a, p->model->n_layers - 1);
    struct head_rows answers = answering(p, h), labelled = classified(p, h);
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        answer_head_backward(p->x, dx, &g->qa, &a->qa, &answers, &w->qa, p->adds);
        return;
    }
    if (task == MODEL_TASK_TOKEN_CLASSIFICATION) {
        label_head_backward(p->x, dx, &g->classifier, &a->classifier, &labelled, &w->classifier, call->adds);
        return;
    }
    if (call->picks == NULL) {
        p->x->ops->fill(p->x, dx, 0);
    }
    if (task == MODEL_TASK_SEQUENCE_CLASSIFICATION) {
        label_head_backward(p->x, a->heads.dpooled, &g->classifier, &a->classifier, &labelled, &w->classifier,
                            call->adds);
    }
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        bert_heads_nsp_backward(p->x, &g->heads, &a->heads, &w->heads, call);
    }
    if (has_pooler(p->model)) {
        bert_heads_pool_backward(p->x, dx, &g->heads, &a->heads, h, &w->heads, dense_dropout(p), call);
    }
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        bert_heads_transform_backward(p->x, dx, &g->heads, &a->heads, h, &w->heads, call);
    }
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct bert_acts *a = p->acts;
    const struct bert_weights *g = p->grads;
    struct layer_call call = block_model_call(p, p->model->n_layers - 1);
    if (vector_head_is_of(p->model)) { /* the pooler has no part in it */
        if (has_pooler(p->model)) {
            p->x->ops->fill(p->x, g->heads.w_pool, 0);
            p->x->ops->fill(p->x, g->heads.b_pool, 0);
        }
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

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct bert_acts *a = p->acts;
    struct bert_embed_weights w = embed_of(p, p->weights), g = embed_of(p, p->grads);
    struct layer_call call = block_model_call(p, 0);
    bert_embed_backward(p->x, dx, &g, &a->embed, &w, &call, p->model->vocab_size);
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
    .int8 = MODEL_INT8_LAYERS,
    .config = config,
    .to_json = to_json,
    BLOCK_MODEL_FUNCTIONS,
    .carve_heads = carve_heads,
    .input_forward = input_forward,
    .heads_forward = heads_forward,
    .heads_measure = heads_measure,
    .heads_learn = heads_learn,
    .input_backward = input_backward,
    .visit = bert_visit,
    .visit_gradients = bert_visit_gradients,
    .head_output = head_output,
};

static struct block_part part(const struct weight_row *rows, int n_rows, const char *prefix, int64_t layer,
                              size_t place)
{
    return (struct block_part){
        .rows = rows, .n_rows = n_rows, .prefix = prefix, .layer = layer, .place = place};
}

#define PLACE(field) offsetof(struct bert_weights, field)

/* The heads of words and of labels, whose names are the kind's. */
static void add_named_heads(struct block_model *b)
{
    enum model_task task = b->model.task;
    int64_t heads = b->model.n_layers;
    const struct bert_kind *kind = kind_of(&b->model);
    if (has_pooler(&b->model)) {
        block_model_add(b,
                        has_dense(&b->model)
                            ? part(bert_dense_rows, BERT_POOLER_N_ROWS, kind->dense, heads, PLACE(heads))
                            : part(bert_pooler_rows, BERT_POOLER_N_ROWS, kind->pooler, heads, PLACE(heads)));
    }
    if (model_task_has(task, MODEL_WORD_LOGITS)) {
        block_model_add(b, part(kind->mlm_rows, BERT_MLM_N_ROWS, kind->mlm, heads, PLACE(heads)));
    }
    if (model_task_has_labels(task)) {
        block_model_add(b,
                        part(label_head_rows, LABEL_HEAD_N_ROWS,
                             has_dense(&b->model) ? kind->scores : "classifier.", heads, PLACE(classifier)));
    }
}

static void add_heads(struct block_model *b)
{
    enum model_task task = b->model.task;
    int64_t heads = b->model.n_layers;
    add_named_heads(b);
    if (model_task_has(task, MODEL_PAIR_LOGITS)) {
        block_model_add(b,
                        part(bert_nsp_rows, BERT_NSP_N_ROWS, "cls.seq_relationship.", heads, PLACE(heads)));
    }
    if (model_task_has(task, MODEL_SPAN_LOGITS)) {
        block_model_add(b, part(answer_head_rows, ANSWER_HEAD_N_ROWS, "qa_outputs.", heads, PLACE(qa)));
    }
}

static void add_measures(struct model *m)
{
    if (model_task_has(m->task, MODEL_WORD_LOGITS)) {
        m->tied = kind_of(m)->word;
        model_add_measure(m, MEASURE_MASKED_WORDS, TEXT_MASKED_LABELS);
    }
    if (model_task_has(m->task, MODEL_PAIR_LOGITS)) {
        model_add_measure(m, MEASURE_NEXT_SENTENCE, TEXT_PAIR_LABELS);
    }
    if (model_task_has(m->task, MODEL_SPAN_LOGITS)) {
        model_add_measure(m, MEASURE_ANSWER, TEXT_SPAN_LABELS);
    }
    if (model_task_has_labels(m->task)) {
        m->layout.fields[TEXT_CLASS_LABELS] = label_head_field(&m->labels, bert_acts_classified(m->task));
        model_add_measure(m, MEASURE_LABEL, TEXT_CLASS_LABELS);
    }
}

static int64_t layer_number(const struct block_model *m, int64_t layer)
{
    return bert_config_layer_number(&bert_of(&m->model)->config, layer);
}

struct bert_model bert_model(const struct bert_config *config, enum model_task task)
{
    const struct block_wiring *wiring = config->layer_norm_large_model ? &block_post_sums : &block_post;
    const struct bert_kind *kind = bert_config_kind(config);
    struct bert_model b = {
        .blocks = {.model = {.type = &bert_type,
                             .n_layers = config->num_hidden_layers,
                             .hidden_size = config->hidden_size,
                             .n_heads = config->num_attention_heads,
                             .max_length = bert_config_max_length(config),
                             .feed_forward_size = config->intermediate_size,
                             .n_factors = LAYER_N_FACTORS,
                             .task = task,
                             .labels = config->labels,
                             .vocab_size = config->vocab_size,
                             .n_words = bert_config_n_words(config),
                             .layout = text_batch_layout},
                   .form = {.dropout = config->hidden_dropout_prob,
                            .attention_dropout = config->attention_probs_dropout_prob,
                            .norm_eps = config->layer_norm_eps},
                   .wiring = wiring,
                   .sizes = {.real = {[DIM_POSITIONS] = config->max_position_embeddings,
                                      [DIM_TYPES] = config->type_vocab_size},
                             .initializer_range = config->initializer_range,
                             .sinusoidal_positions = config->sinusoidal_positions},
                   .weight_bytes = sizeof(struct bert_weights),
                   .act_bytes = sizeof(struct bert_acts),
                   .layer_number = layer_number,
                   .carve_input = carve_input},
        .config = *config,
    };
    block_model_size(&b.blocks, bert_config_padded_vocab(config));
    block_model_add(&b.blocks, part(kind->embed_rows, kind->n_embed_rows, kind->embeddings, MODEL_INPUT_LAYER,
                                    PLACE(embed)));
    block_model_add(&b.blocks, part(kind->layer_rows, BLOCK_N_ROWS, kind->layers, BLOCK_EVERY_LAYER, 0));
    add_heads(&b.blocks);
    add_measures(&b.blocks.model);
    return b;
}

struct status bert_model_create(struct model **model, const void *config, enum model_task task)
{
    struct bert_model *b = malloc(sizeof *b);
    FAIL_IF(b == NULL, STATUS_MEMORY, "out of memory for a model");
    *b = bert_model(config, task);
    *model = &b->blocks.model;
    return status_ok();
}
