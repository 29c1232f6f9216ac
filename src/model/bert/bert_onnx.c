/* The equations are those of nn/bert/bert_embed.c, bert_layer.c, bert_layer_pre.c and bert_heads.c, without
 * dropout, on padded batches [B, S]: padding is masked in the attention, as `transformers` does. */
#include "model/bert/bert_onnx.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

typedef struct onnx_value value;

struct building {
    struct onnx_graph *g;
    const struct bert_config *c;
    value ids, types; /* i64 [B, S] */
    value bias;       /* [B, 1, 1, S] added to the scores of attention: 0, or the least number for padding */
};

static const struct onnx_dim BATCH = {"batch", 0}, SEQUENCE = {"sequence", 0};

static struct onnx_attribute integer(const char *name, int64_t n)
{
    return (struct onnx_attribute){.name = name, .kind = ONNX_INTEGER, .integers = {n}, .n_integers = 1};
}

/* {attribute, end} */
#define ONE(attribute) ((const struct onnx_attribute[]){attribute, {.name = NULL}})

static value add(struct building *b, value x, value y)
{
    return onnx_graph_2(b->g, "Add", x, y, NULL);
}

static value multiply(struct building *b, value x, double y)
{
    return onnx_graph_2(b->g, "Mul", x, onnx_graph_real(b->g, y), NULL);
}

/* A parameter of kiln's table: PREFIX and name. */
static value weight(struct building *b, const char *prefix, const char *name, bool transposed)
{
    char full[ONNX_NAME_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return onnx_graph_weight(b->g, full, transposed);
}

/* x W^T + b */
static value linear(struct building *b, value x, const char *prefix, const char *name)
{
    char matrix[ONNX_NAME_BYTES], bias[ONNX_NAME_BYTES];
    snprintf(matrix, sizeof matrix, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    value y = onnx_graph_2(b->g, "MatMul", x, weight(b, prefix, matrix, true), NULL);
    return add(b, y, weight(b, prefix, bias, false));
}

static value layer_norm(struct building *b, value x, const char *prefix)
{
    struct onnx_attribute attributes[] = {
        integer("axis", -1),
        {.name = "epsilon", .kind = ONNX_REAL, .real = b->c->layer_norm_eps},
        {.name = NULL}};
    value inputs[] = {x, weight(b, prefix, "LayerNorm.weight", false),
                      weight(b, prefix, "LayerNorm.bias", false)};
    return onnx_graph_n(b->g, "LayerNormalization", 3, inputs, attributes);
}

/* x Phi(x) = x / 2 (1 + erf(x / sqrt(2))), with Erf, since Gelu is only in opset 20; runtimes fuse the five
 * nodes. */
static value gelu(struct building *b, value x)
{
    value erf = onnx_graph_1(b->g, "Erf", multiply(b, x, sqrt(0.5)), NULL);
    value factor = add(b, erf, onnx_graph_real(b->g, 1));
    return multiply(b, onnx_graph_2(b->g, "Mul", x, factor, NULL), 0.5);
}

static value transpose(struct building *b, value x, int n, const int64_t *order)
{
    struct onnx_attribute perm = {.name = "perm", .kind = ONNX_INTEGERS, .n_integers = n};
    for (int i = 0; i < n; i++) {
        perm.integers[i] = order[i];
    }
    return onnx_graph_1(b->g, "Transpose", x, ONE(perm));
}

/* ---- the input layer ---- */

/* 0 where the mask is 1, the least fp32 where it is 0. */
static value attention_bias(struct building *b, value mask)
{
    value real = onnx_graph_1(b->g, "Cast", mask, ONE(integer("to", ONNX_F32)));
    value padding = onnx_graph_2(b->g, "Sub", onnx_graph_real(b->g, 1), real, NULL);
    value axes = onnx_graph_integers(b->g, 2, (int64_t[]){1, 2});
    return onnx_graph_2(b->g, "Unsqueeze", multiply(b, padding, -FLT_MAX), axes, NULL);
}

/* LN(word[id] + position[p] + type[segment]) */
static value embeddings(struct building *b)
{
    static const char prefix[] = "bert.embeddings.";
    value zero = onnx_graph_integers(b->g, 1, (int64_t[]){0}),
          one = onnx_graph_integers(b->g, 1, (int64_t[]){1});
    value shape = onnx_graph_1(b->g, "Shape", b->ids, NULL);
    value length = onnx_graph_2(b->g, "Gather", shape, one, ONE(integer("axis", 0)));
    value words =
        onnx_graph_2(b->g, "Gather", weight(b, prefix, "word_embeddings.weight", false), b->ids, NULL);
    value types = onnx_graph_2(b->g, "Gather", weight(b, prefix, "token_type_embeddings.weight", false),
                               b->types, NULL);
    value positions = onnx_graph_n(
        b->g, "Slice", 4,
        (value[]){weight(b, prefix, "position_embeddings.weight", false), zero, length, zero}, NULL);
    return layer_norm(b, add(b, add(b, words, types), positions), prefix);
}

/* ---- layers ---- */

/* [B, S, H] as heads in the order of dims: {0, 2, 1, 3} is [B, N, S, D]. */
static value heads(struct building *b, value x, const int64_t order[4])
{
    int64_t n = b->c->num_attention_heads;
    value shape = onnx_graph_integers(b->g, 4, (int64_t[]){0, 0, n, b->c->hidden_size / n});
    return transpose(b, onnx_graph_2(b->g, "Reshape", x, shape, NULL), 4, order);
}

/* A W_o^T + b_o, A = softmax(Q K^T / sqrt(D) + bias) V */
static value attention(struct building *b, value x, const char *prefix)
{
    static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};
    double scale = 1 / sqrt((double)b->c->hidden_size / (double)b->c->num_attention_heads);
    value q = heads(b, linear(b, x, prefix, "attention.self.query"), rows);
    value k = heads(b, linear(b, x, prefix, "attention.self.key"), columns);
    value v = heads(b, linear(b, x, prefix, "attention.self.value"), rows);
    value scores = add(b, multiply(b, onnx_graph_2(b->g, "MatMul", q, k, NULL), scale), b->bias);
    value p = onnx_graph_1(b->g, "Softmax", scores, ONE(integer("axis", -1)));
    value a = transpose(b, onnx_graph_2(b->g, "MatMul", p, v, NULL), 4, rows);
    value shape = onnx_graph_integers(b->g, 3, (int64_t[]){0, 0, b->c->hidden_size});
    return linear(b, onnx_graph_2(b->g, "Reshape", a, shape, NULL), prefix, "attention.output.dense");
}

static value feed_forward(struct building *b, value h, const char *prefix)
{
    return linear(b, gelu(b, linear(b, h, prefix, "intermediate.dense")), prefix, "output.dense");
}

/* What a layer passes to the next; `sum` is the residual stream of pre-LN layers, which begins in the
 * first. */
struct passed {
    value out, sum;
    bool has_sum;
};

static struct passed layer(struct building *b, struct passed in, int64_t i)
{
    char prefix[64], first[96], second[96], scope[32];
    snprintf(prefix, sizeof prefix, "bert.encoder.layer.%lld.", (long long)bert_config_layer_number(b->c, i));
    snprintf(first, sizeof first, "%sattention.output.", prefix);
    snprintf(second, sizeof second, "%soutput.", prefix);
    snprintf(scope, sizeof scope, "layer.%lld", (long long)i);
    b->g->scope = scope;
    bool is_pre = b->c->layer_norm_large_model;
    value a = attention(b, in.out, prefix);
    value sum_1 = !is_pre ? add(b, a, in.out) : in.has_sum ? add(b, a, in.sum) : a;
    value h = layer_norm(b, sum_1, first);
    value sum_2 = add(b, feed_forward(b, h, prefix), is_pre ? sum_1 : h);
    struct passed out = {layer_norm(b, sum_2, second), sum_2, true};
    b->g->scope = NULL;
    return out;
}

/* ---- heads ---- */

static struct onnx_shape shape_of(int n_dims, struct onnx_dim d0, struct onnx_dim d1, int64_t last)
{
    return (struct onnx_shape){ONNX_F32, n_dims, {d0, d1, {NULL, last}}};
}

/* For each token, or for each sequence. */
static struct onnx_shape of_tokens(int64_t last)
{
    return shape_of(3, BATCH, SEQUENCE, last);
}

static struct onnx_shape of_sequences(int64_t last)
{
    return shape_of(2, BATCH, (struct onnx_dim){NULL, last}, 0);
}

/* tanh(h_cls W_pool^T + b_pool) */
static value pooled(struct building *b, value h)
{
    value first = onnx_graph_integers(b->g, 1, (int64_t[]){0});
    value cls = onnx_graph_2(b->g, "Gather", h, first, ONE(integer("axis", 1)));
    value flat = onnx_graph_2(b->g, "Squeeze", cls, onnx_graph_integers(b->g, 1, (int64_t[]){1}), NULL);
    return onnx_graph_1(b->g, "Tanh", linear(b, flat, "bert.pooler.", "dense"), NULL);
}

/* LN(gelu(h W_t^T + b_t)) E^T + b_vocab: the word embeddings are also the decoder. */
static value words(struct building *b, value h)
{
    static const char prefix[] = "cls.predictions.";
    value z = layer_norm(b, gelu(b, linear(b, h, prefix, "transform.dense")), "cls.predictions.transform.");
    value decoder =
        transpose(b, weight(b, "bert.embeddings.", "word_embeddings.weight", false), 2, (int64_t[]){1, 0});
    return add(b, onnx_graph_2(b->g, "MatMul", z, decoder, NULL), weight(b, prefix, "bias", false));
}

/* Both columns of the head as vectors of the tokens. */
static void spans(struct building *b, value h)
{
    static const char *const names[] = {"start_logits", "end_logits"};
    value logits = linear(b, h, "", "qa_outputs");
    for (int64_t i = 0; i < 2; i++) {
        value column =
            onnx_graph_2(b->g, "Gather", logits, onnx_graph_integers(b->g, 1, &i), ONE(integer("axis", 2)));
        value flat =
            onnx_graph_2(b->g, "Squeeze", column, onnx_graph_integers(b->g, 1, (int64_t[]){2}), NULL);
        onnx_graph_output(b->g, names[i], flat, shape_of(2, BATCH, SEQUENCE, 0));
    }
}

static void outputs(struct building *b, value h, enum model_task task)
{
    int64_t v = b->c->vocab_size, n = b->c->labels.n;
    switch (task) {
    case MODEL_TASK_PRETRAINING:
        onnx_graph_output(b->g, "prediction_logits", words(b, h), of_tokens(v));
        onnx_graph_output(b->g, "seq_relationship_logits",
                          linear(b, pooled(b, h), "cls.", "seq_relationship"), of_sequences(2));
        break;
    case MODEL_TASK_MASKED_LM: onnx_graph_output(b->g, "logits", words(b, h), of_tokens(v)); break;
    case MODEL_TASK_CAUSAL_LM: break; /* no task of BERT's */
    case MODEL_TASK_QUESTION_ANSWERING: spans(b, h); break;
    case MODEL_TASK_SEQUENCE_CLASSIFICATION:
        onnx_graph_output(b->g, "logits", linear(b, pooled(b, h), "", "classifier"), of_sequences(n));
        break;
    case MODEL_TASK_TOKEN_CLASSIFICATION:
        onnx_graph_output(b->g, "logits", linear(b, h, "", "classifier"), of_tokens(n));
        break;
    case MODEL_TASK_ENCODER:
        onnx_graph_output(b->g, "last_hidden_state", h, of_tokens(b->c->hidden_size));
        onnx_graph_output(b->g, "pooler_output", pooled(b, h), of_sequences(b->c->hidden_size));
        break;
    }
}

void bert_onnx_build(struct onnx_graph *g, const void *config, enum model_task task)
{
    struct building b = {.g = g, .c = config};
    struct onnx_shape tokens = {ONNX_I64, 2, {BATCH, SEQUENCE}};
    b.ids = onnx_graph_input(g, "input_ids", tokens);
    value mask = onnx_graph_input(g, "attention_mask", tokens);
    b.types = onnx_graph_input(g, "token_type_ids", tokens);
    b.bias = attention_bias(&b, mask);
    struct passed x = {.out = embeddings(&b)};
    for (int64_t i = 0; i < b.c->num_hidden_layers; i++) {
        x = layer(&b, x, i);
    }
    outputs(&b, x.out, task);
}
