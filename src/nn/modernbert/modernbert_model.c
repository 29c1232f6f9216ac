#include "nn/modernbert/modernbert_model.h"

#include "core/integers.h"
#include "nn/answer_head.h"
#include "nn/block_model.h"
#include "nn/label_head.h"
#include "nn/model_measures.h"
#include "nn/sequence_means.h"
#include "nn/text_batch_layout.h"
#include "nn/vector_head.h"
#include "nn/word_head.h"
#include "nn/word_table.h"

#include <stdlib.h>

struct modernbert {
    struct block_model blocks; /* first */
    struct modernbert_config config;
};

static const struct modernbert *modernbert_of(const struct model *m)
{
    return (const struct modernbert *)m;
}

/* ---- weights ---- */

struct modernbert_weights {
    struct block_weight_table table; /* first */
    tensor word, gamma_in;           /* [V, H], [H] */
    tensor w, gamma;                 /* [H, H], [H] of r */
    tensor b_vocab;                  /* [V] */
    struct label_head_weights labels;
    struct answer_head_weights answers;
};

#define WEIGHTS struct modernbert_weights

static const struct weight_row input_rows[] = {
    WEIGHT_MATRIX(word, VOCAB, HIDDEN, NORMAL, BY_WORD, "tok_embeddings.weight"),
    WEIGHT_VECTOR(gamma_in, HIDDEN, ONE, WHOLE, "norm.weight"),
};

static const struct weight_row output_rows[] = {
    WEIGHT_VECTOR(table.norm_out.gamma, HIDDEN, ONE, WHOLE, "final_norm.weight"),
};

static const struct weight_row head_rows[] = {
    WEIGHT_MATRIX(w, HIDDEN, HIDDEN, RESIDUAL, WHOLE, "dense.weight"),
    WEIGHT_VECTOR(gamma, HIDDEN, ONE, WHOLE, "norm.weight"),
};

static const struct weight_row word_rows[] = {
    WEIGHT_VECTOR(b_vocab, VOCAB, ZERO, BY_WORD, "bias"),
};

#undef WEIGHTS
#define WEIGHTS struct block_weights

/* Query, key and value are one tensor in files, and so are both halves of the gate
 * (model/modernbert/modernbert_family.c).  The first row is no row of layer 0. */
static const struct weight_row layer_rows[] = {
    WEIGHT_VECTOR(norm_1.gamma, HIDDEN, ONE, WHOLE, "attn_norm.weight"),
    WEIGHT_QKV(attention.w_qkv, "attn.query.weight", "attn.key.weight", "attn.value.weight"),
    WEIGHT_MATRIX(attention.w_o, HIDDEN, HEADS, RESIDUAL, BY_COL, "attn.Wo.weight"),
    WEIGHT_VECTOR(norm_2.gamma, HIDDEN, ONE, WHOLE, "mlp_norm.weight"),
    WEIGHT_MATRIX(ff.w_1, FEED_FORWARD, HIDDEN, NORMAL, BY_ROW, "mlp.input.weight", "mlp.gate.weight"),
    WEIGHT_MATRIX(ff.w_2, HIDDEN, FEED_FORWARD, RESIDUAL, BY_COL, "mlp.Wo.weight"),
};

/* ---- activations ---- */

/* M rows that the heads read. */
struct modernbert_acts {
    struct block_stack stack; /* first */
    tensor embedded;          /* [T, H] E[id] */
    struct norm_acts norm_in;
    struct sequence_means means; /* means of texts, where labels are of these */
    tensor rows;                 /* [M, H] h_i, where they are copied; later its gradient */
    tensor pre, act, r, dr;      /* [M, H]; dr: the gradient of r, then of act and pre */
    tensor no_bias;              /* [H] where the sum goes that would be the gradient of a bias of r */
    struct norm_acts norm;
    struct word_head_acts words;
    struct label_head_acts labels;
    struct answer_head_acts answers;
    struct vector_head_acts vectors;
};

static bool has_words(const struct model *m)
{
    return model_task_has(m->task, MODEL_WORD_LOGITS);
}

static bool has_answers(const struct model *m)
{
    return model_task_has(m->task, MODEL_SPAN_LOGITS);
}

static bool has_texts(const struct model *m)
{
    return m->task == MODEL_TASK_SEQUENCE_CLASSIFICATION;
}

static bool has_means(const struct model *m)
{
    return has_texts(m) && modernbert_of(m)->config.pools_mean;
}

static bool has_head(const struct model *m)
{
    return has_words(m) || has_answers(m) || model_task_has_labels(m->task);
}

/* The field of the batch that lists the rows that the heads read; -1: all rows. */
static int listed(const struct model *m)
{
    return has_words(m) ? TEXT_MASKED_ROWS : has_texts(m) ? TEXT_CLS_ROWS : -1;
}

static enum batch_rows labelled(const struct model *m)
{
    return has_texts(m) ? BATCH_OF_SEQUENCES : BATCH_OF_TOKENS;
}

static void carve_input(const struct block_model *m, void *acts, struct arena *arena,
                        struct layer_memory memory)
{
    struct modernbert_acts *a = acts;
    int64_t t = memory.n_tokens, h = a->stack.form.hidden;
    (void)m;
    a->stack.in = arena_carve_2d(arena, memory.dtype, t, h);
    a->embedded = memory.kept ? arena_carve_2d(arena, memory.dtype, t, h) : a->stack.in;
    norm_carve_statistics(&a->norm_in, arena, LAYER_NORM_LAYER, memory.dtype, t);
}

/* Carves the rows that the last layer computes, in training; there are none for short streams, where the
 * rounded numbers of rows may add up to more than the tokens. */
static void carve_picks(struct modernbert_acts *a, struct arena *arena, const struct model *m, bool kept,
                        enum dtype dtype, const struct batch *sizes)
{
    struct row_picks *p = &a->stack.picks;
    *p = (struct row_picks){0};
    if (!kept || listed(m) < 0 || has_means(m)) {
        return;
    }
    row_picks_add(p, listed(m), has_words(m) ? sizes->n_labels : sizes->n_sequences);
    row_picks_carve(p, arena, dtype, a->stack.form.hidden, layer_heads_width(&a->stack.form));
    p->n_lists = p->n_rows <= sizes->n_tokens ? p->n_lists : 0;
}

static void carve_head(struct modernbert_acts *a, struct arena *arena, struct model_memory memory, int64_t n)
{
    enum dtype dtype = memory.dtype;
    int64_t h = a->stack.form.hidden;
    a->pre = arena_carve_2d(arena, dtype, n, h);
    a->act = arena_carve_2d(arena, dtype, n, h);
    a->r = arena_carve_2d(arena, dtype, n, h);
    a->dr = memory.kept ? arena_carve_2d(arena, dtype, n, h) : NULL_TENSOR;
    a->no_bias = memory.kept ? arena_carve_1d(arena, dtype_of_vectors(dtype), h) : NULL_TENSOR;
    norm_carve_statistics(&a->norm, arena, LAYER_NORM_LAYER, dtype, n);
}

static void carve_heads(const struct model *m, void *acts, struct arena *arena, struct model_memory memory,
                        const struct batch *sizes)
{
    struct modernbert_acts *a = acts;
    int64_t t = sizes->n_tokens, h = m->hidden_size;
    int64_t n = has_words(m) ? sizes->n_labels : has_texts(m) ? sizes->n_sequences : t;
    carve_picks(a, arena, m, memory.kept, memory.dtype, sizes);
    if (has_means(m)) {
        sequence_means_carve(&a->means, arena, &a->stack.form, memory.dtype, memory.kept, t);
    }
    if (has_head(m)) {
        a->rows = listed(m) >= 0 ? arena_carve_2d(arena, memory.dtype, n, h) : NULL_TENSOR;
        carve_head(a, arena, memory, n);
    }
    if (has_words(m)) {
        int64_t words = weights_vocab_rows(block_model_of(m)->sizes.padded[DIM_VOCAB], a->stack.n_slices);
        word_head_carve(&a->words, arena,
                        (struct word_head_room){.dtype = memory.dtype,
                                                .n_rows = n,
                                                .vocab_rows = words,
                                                .n_slices = a->stack.n_slices,
                                                .whole_logits = memory.whole_logits});
    }
    if (has_answers(m)) {
        answer_head_carve(&a->answers, arena, memory, h, modernbert_of(m)->config.classifier_dropout > 0,
                          sizes);
    }
    if (model_task_has_labels(m->task)) {
        label_head_carve(&a->labels, arena, m, memory.dtype, batch_all_rows(sizes, labelled(m)));
    }
    if (vector_head_is_of(m)) {
        vector_head_carve(&a->vectors, arena, m, memory.dtype, t);
    }
}

/* ---- the input ---- */

/* Dropout sites above those of all layers. */
static const uint32_t SITE_EMBEDDINGS = 0xFFFF0000U, SITE_HEAD = 0xFFFF0001U;

static struct dropout embedding_dropout(const struct model_pass *p)
{
    const struct modernbert_config *c = &modernbert_of(p->model)->config;
    return (struct dropout){.p = p->training ? c->embedding_dropout : 0, .site = SITE_EMBEDDINGS};
}

static void input_forward(const struct model_pass *p)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights;
    struct dropout drop = embedding_dropout(p);
    tensor in = a->stack.in;
    exec_enter(p->x, "embeddings", -1);

    /* x = dropout(LN(E[id])) */
    word_table_look_up(p->x, p->stream, a->embedded, w->word, p->model->vocab_size);
    p->x->ops->layernorm(p->x, in, a->norm_in.mean, a->norm_in.rstd, a->embedded, w->gamma_in, NULL_TENSOR,
                         a->stack.form.norm_eps);
    if (drop.p > 0) {
        p->x->ops->dropout(p->x, in, in, p->stream->row_keys, drop);
    }
}

static void input_backward(const struct model_pass *p, tensor dx)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights, *g = p->grads;
    struct dropout drop = embedding_dropout(p);
    exec_enter(p->x, "embeddings", -1);

    /* x = dropout(LN(E[id])) */
    if (drop.p > 0) {
        p->x->ops->dropout(p->x, dx, dx, p->stream->row_keys, drop);
    }
    p->x->ops->layernorm_backward(p->x, dx, g->gamma_in, NULL_TENSOR, dx, a->embedded, a->norm_in.mean,
                                  a->norm_in.rstd, w->gamma_in);
    word_table_add_gradients(p->x, g->word, dx, p->stream->ids, p->model->vocab_size);
}

/* ---- the heads ---- */

/* h_i, and its gradient in dh or in a->rows. */
static tensor rows_of(const struct model_pass *p, tensor h, const struct layer_call *call)
{
    const struct modernbert_acts *a = p->acts;
    return listed(p->model) < 0  ? h
           : has_means(p->model) ? a->rows
                                 : head_rows_in(a->rows, h, listed(p->model), call);
}

/* r = LN(gelu(h_i W^T)) */
static void head_forward(const struct model_pass *p, const struct layer_call *call)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights;
    struct exec *x = p->x;
    tensor h = block_model_output(a, p->model->n_layers - 1);
    exec_enter(x, "head", -1);
    if (has_means(p->model)) {
        sequence_means_forward(x, &a->means, h, call);
        x->ops->gather_rows(x, a->rows, a->means.means, p->stream->fields[TEXT_CLS_ROWS]);
    } else if (listed(p->model) >= 0) {
        head_rows_read(x, a->rows, h, listed(p->model), call);
    }
    x->ops->linear_gelu(x, a->act, a->pre, rows_of(p, h, call), w->w, NULL_TENSOR);
    x->ops->layernorm(x, a->r, a->norm.mean, a->norm.rstd, a->act, w->gamma, NULL_TENSOR,
                      call->form->norm_eps);
}

/* Sets dh, the gradient of h, from a->dr. */
static void head_backward(const struct model_pass *p, tensor dh, const struct layer_call *call)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights, *g = p->grads;
    struct exec *x = p->x;
    tensor h = block_model_output(a, p->model->n_layers - 1), rows = rows_of(p, h, call);
    exec_enter(x, "head", -1);
    x->ops->layernorm_backward(x, a->dr, g->gamma, NULL_TENSOR, a->dr, a->act, a->norm.mean, a->norm.rstd,
                               w->gamma);
    x->ops->fill(x, a->no_bias, 0);
    x->ops->gelu_backward(x, a->dr, a->no_bias, a->dr, a->pre);
    x->ops->linear_backward_weight(x, g->w, NULL_TENSOR, a->dr, rows, call->adds);
    x->ops->linear_backward_input(x, rows_of(p, dh, call), a->dr, w->w, false);
    if (has_means(p->model)) {
        x->ops->fill(x, a->means.dmeans, 0);
        x->ops->scatter_add_rows(x, a->means.dmeans, a->rows, p->stream->fields[TEXT_CLS_ROWS]);
        sequence_means_backward(x, &a->means, dh, h, call);
    } else if (listed(p->model) >= 0 && call->picks == NULL) {
        x->ops->fill(x, dh, 0);
        head_rows_add(x, dh, a->rows, listed(p->model), call);
    }
}

/* The rows r that scores are of. */
static struct head_rows scored(const struct model_pass *p)
{
    const struct modernbert_acts *a = p->acts;
    double drop = modernbert_of(p->model)->config.classifier_dropout;
    return (struct head_rows){.rows = a->r,
                              .keys = has_texts(p->model) ? p->stream->fields[TEXT_CLS_KEYS]
                                                          : p->stream->row_keys,
                              .drop = {.p = p->training ? drop : 0, .site = SITE_HEAD}};
}

/* Runs the heads up to their logits, without those of words. */
static void heads_begin(const struct model_pass *p, const struct layer_call *call)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights;
    struct head_rows in = scored(p);
    if (has_head(p->model)) {
        head_forward(p, call);
    }
    if (has_answers(p->model)) {
        answer_head_forward(p->x, &a->answers, &in, &w->answers);
    }
    if (model_task_has_labels(p->model->task)) {
        label_head_forward(p->x, &a->labels, &in, &w->labels);
    }
}

/* logits of words = r E^T + b */
static struct word_head words_of(const struct model_pass *p)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights;
    exec_enter(p->x, "MLM head", -1);
    return (struct word_head){.rows = a->r,
                              .word = w->word,
                              .bias = w->b_vocab,
                              .labels = p->stream->fields[TEXT_MASKED_LABELS],
                              .scale = tensor_slice(p->loss_scales, 0, 1),
                              .n_words = p->model->n_words};
}

static struct layer_call last_call(const struct model_pass *p)
{
    return block_model_call(p, p->model->n_layers - 1);
}

static void heads_forward(const struct model_pass *p)
{
    const struct modernbert_acts *a = p->acts;
    struct layer_call call = last_call(p);
    heads_begin(p, &call);
    if (has_words(p->model)) {
        struct word_head words = words_of(p);
        word_head_forward(p->x, &a->words, &words);
    }
}

/* Computes the losses of scores, and the gradients of their logits. */
static void score_losses(const struct model_pass *p, tensor sums, const struct layer_call *call)
{
    const struct modernbert_acts *a = p->acts;
    tensor scale = tensor_slice(p->loss_scales, 0, 1);
    if (has_answers(p->model)) {
        answer_head_loss(p->x, tensor_slice(sums, 0, 2), &a->answers, scale, call);
    }
    if (model_task_has_labels(p->model->task)) {
        label_head_loss(p->x, tensor_slice(sums, 0, 2), &a->labels, p->stream->fields[TEXT_CLASS_LABELS],
                        scale, &p->model->labels);
    }
}

static void heads_measure(const struct model_pass *p, tensor sums)
{
    const struct modernbert_acts *a = p->acts;
    struct layer_call call = last_call(p);
    heads_begin(p, &call);
    if (has_words(p->model)) {
        struct word_head words = words_of(p);
        word_head_measure(p->x, tensor_slice(sums, 0, 2), &a->words, &words);
    }
    score_losses(p, sums, &call);
}

static void heads_learn(const struct model_pass *p, tensor dx, tensor sums)
{
    const struct modernbert_acts *a = p->acts;
    const struct modernbert_weights *w = p->weights, *g = p->grads;
    struct layer_call call = last_call(p);
    struct head_rows in = scored(p);
    if (vector_head_is_of(p->model)) {
        vector_head_learn(p, dx, &a->vectors);
        return;
    }
    heads_begin(p, &call);
    score_losses(p, sums, &call);
    if (has_words(p->model)) {
        struct word_head words = words_of(p);
        struct word_head_gradients gradients = {a->dr, g->word, g->b_vocab};
        word_head_learn(p->x, tensor_slice(sums, 0, 2), &gradients, &a->words, &words);
    }
    if (has_answers(p->model)) {
        answer_head_backward(p->x, a->dr, &g->answers, &a->answers, &in, &w->answers, call.adds);
    }
    if (model_task_has_labels(p->model->task)) {
        label_head_backward(p->x, a->dr, &g->labels, &a->labels, &in, &w->labels, call.adds);
    }
    head_backward(p, dx, &call);
}

/* ---- logs of tensors ---- */

static void visit(const struct model *m, const void *acts, int64_t layer, model_visitor *visitor,
                  void *context)
{
    const struct modernbert_acts *a = acts;
    char path[MODEL_MODULE_BYTES];
    if (layer == MODEL_INPUT_LAYER) {
        visitor(context, "embeddings", "model.embeddings", BATCH_OF_TOKENS, a->stack.in);
    } else if (layer < m->n_layers) {
        bool is_picked = block_model_picks(m, &a->stack, layer) != NULL;
        const struct block_acts *l = &a->stack.layers[layer];
        block_model_path(path, m, layer);
        visitor(context, "query, key, value", NULL, BATCH_OF_TOKENS, l->attention.qkv);
        visitor(context, "attention", NULL, BATCH_OF_TOKENS, l->attention.heads);
        visitor(context, "output", path, BATCH_OF_TOKENS, is_picked ? NULL_TENSOR : l->out);
    } else {
        bool whole = !tensor_is_null(a->words.all_logits) && a->words.all_logits.dims[0] == a->r.dims[0];
        visitor(context, "MLM logits", "decoder", BATCH_OF_LABELS, whole ? a->words.all_logits : NULL_TENSOR);
        visitor(context, "logits of answers", "classifier", BATCH_OF_TOKENS, a->answers.logits);
        visitor(context, "logits of the classifier", "classifier", labelled(m), a->labels.logits);
    }
}

/* ---- the model ---- */

static tensor head_output(const void *acts, enum model_output output)
{
    const struct modernbert_acts *a = acts;
    switch (output) {
    case MODEL_WORD_LOGITS: return a->words.all_logits;
    case MODEL_WORD_LOSSES: return a->words.loss;
    case MODEL_WORD_CORRECT: return a->words.correct;
    case MODEL_SPAN_LOGITS: return a->answers.logits;
    case MODEL_TEXT_LOGITS:
    case MODEL_TOKEN_LOGITS: return a->labels.logits;
    default: return NULL_TENSOR;
    }
}

static const void *config(const struct model *m)
{
    return &modernbert_of(m)->config;
}

const char *modernbert_class(enum model_task task)
{
    static const char *const classes[] = {
        [MODEL_TASK_MASKED_LM] = "ModernBertForMaskedLM",
        [MODEL_TASK_ENCODER] = "ModernBertModel",
        [MODEL_TASK_QUESTION_ANSWERING] = "ModernBertForQuestionAnswering",
        [MODEL_TASK_SEQUENCE_CLASSIFICATION] = "ModernBertForSequenceClassification",
        [MODEL_TASK_TOKEN_CLASSIFICATION] = "ModernBertForTokenClassification",
    };
    return (size_t)task < sizeof classes / sizeof classes[0] ? classes[task] : NULL;
}

static json_t *to_json(const struct model *m)
{
    return modernbert_config_to_json(config(m), modernbert_class(m->task));
}

static const struct model_type modernbert_type = {
    .name = "modernbert",
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
    .visit = visit,
    .visit_gradients = block_model_visit_gradients,
    .head_output = head_output,
};

#define PART(rows_, prefix_, layer_, place_)                                                                 \
    (struct block_part)                                                                                      \
    {                                                                                                        \
        .rows = rows_, .n_rows = sizeof rows_ / sizeof rows_[0], .prefix = prefix_, .layer = layer_,         \
        .place = place_                                                                                      \
    }

static void add_weights(struct block_model *b)
{
    const struct model *m = &b->model;
    struct block_part layers = PART(layer_rows, "model.layers.", BLOCK_EVERY_LAYER, 0);
    layers.not_first = 1;
    block_model_add(b, PART(input_rows, "model.embeddings.", MODEL_INPUT_LAYER, 0));
    block_model_add(b, layers);
    block_model_add(b, PART(output_rows, "model.", m->n_layers - 1, 0));
    if (has_head(m)) {
        block_model_add(b, PART(head_rows, "head.", m->n_layers, 0));
    }
    if (has_words(m)) {
        block_model_add(b, PART(word_rows, "decoder.", m->n_layers, 0));
    }
    if (has_answers(m)) {
        block_model_add(b, (struct block_part){.rows = answer_head_rows,
                                               .n_rows = ANSWER_HEAD_N_ROWS,
                                               .prefix = "classifier.",
                                               .layer = m->n_layers,
                                               .place = offsetof(struct modernbert_weights, answers)});
    }
    if (model_task_has_labels(m->task)) {
        block_model_add(b, (struct block_part){.rows = label_head_rows,
                                               .n_rows = LABEL_HEAD_N_ROWS,
                                               .prefix = "classifier.",
                                               .layer = m->n_layers,
                                               .place = offsetof(struct modernbert_weights, labels)});
    }
}

static void add_measures(struct model *m)
{
    if (has_words(m)) {
        m->tied = "model.embeddings.tok_embeddings.weight";
        model_add_measure(m, MEASURE_MASKED_WORDS, TEXT_MASKED_LABELS);
    }
    if (has_answers(m)) {
        model_add_measure(m, MEASURE_ANSWER, TEXT_SPAN_LABELS);
    }
    if (model_task_has_labels(m->task)) {
        m->layout.fields[TEXT_CLASS_LABELS] = label_head_field(&m->labels, labelled(m));
        model_add_measure(m, MEASURE_LABEL, TEXT_CLASS_LABELS);
    }
}

/* Layers are local, and others global. */
static struct modernbert modernbert(const struct modernbert_config *c, enum model_task task)
{
    struct modernbert m = {
        .blocks = {.model = {.type = &modernbert_type,
                             .n_layers = c->n_layers,
                             .hidden_size = c->hidden_size,
                             .n_heads = c->n_heads,
                             .max_length = c->n_positions,
                             .feed_forward_size = c->feed_forward_size,
                             .task = task,
                             .labels = c->labels,
                             .vocab_size = c->vocab_size,
                             .n_words = c->n_words,
                             .layout = text_batch_layout},
                   .form = {.norm_eps = c->norm_eps,
                            .activation = LAYER_GEGLU,
                            .positions = LAYER_POSITIONS_ROTARY,
                            .window = c->local_attention / 2},
                   .others = {.every = c->global_every},
                   .norms_output = true,
                   .wiring = &block_pre,
                   .rotary = {.theta = c->local_theta, .size = c->hidden_size / c->n_heads},
                   .sizes = {.initializer_range = c->initializer_range},
                   .weight_bytes = sizeof(struct modernbert_weights),
                   .act_bytes = sizeof(struct modernbert_acts),
                   .carve_input = carve_input},
        .config = *c,
    };
    m.blocks.other = m.blocks.form;
    m.blocks.other.window = 0;
    m.blocks.other_rotary = m.blocks.rotary;
    m.blocks.other_rotary.theta = c->global_theta;
    return m;
}

struct status modernbert_model_create(struct model **model, const void *config, enum model_task task)
{
    enum { VOCAB_GRAIN = 64 };
    const struct modernbert_config *c = config;
    struct modernbert *m = malloc(sizeof *m);
    FAIL_IF(m == NULL, STATUS_MEMORY, "out of memory for a model");
    *m = modernbert(c, task);
    block_model_size(&m->blocks, int_round_up(c->vocab_size, VOCAB_GRAIN));
    add_weights(&m->blocks);
    add_measures(&m->blocks.model);
    *model = &m->blocks.model;
    return status_ok();
}
