/* Parity with Hugging Face's BertForPreTraining on the same weights (tests/golden/make_bert_parity.py), and
 * of pre-LN layers and a vocabulary with more rows than words with torch (make_bert_pre_parity.py): logits
 * within 1e-5 x max(1, max |logit|) of its fp64 values, gradients, and the losses of 10 optimizer steps to 6
 * digits; on the reference ops in fp64 and on the cpu ops in fp32. */
#include "bert_fixture.h"
#include "result_mean.h"

#include "io/safetensors.h"

struct golden {
    struct safetensors file;
    struct batch_step step;
    int64_t n_layers, n_words;
    bool pre_ln;
};

static tensor read_golden(const struct golden *g, const char *name, void *data, enum dtype dtype)
{
    const struct stored_tensor *e = safetensors_find(&g->file, name);
    EXPECT(e != NULL, "%s is missing", name);
    tensor t =
        e->n_dims == 1 ? tensor_1d(data, dtype, e->dims[0]) : tensor_2d(data, dtype, e->dims[0], e->dims[1]);
    EXPECT_OK(stored_tensor_read(e, t));
    return t;
}

/* The padded golden batch as two micro-batches of a ragged stream. */
static void read_batch(struct golden *g)
{
    enum { B = 4, S = 24 };
    int32_t ids[B * S], types[B * S], labels[B * S], lengths[B], nsp[B];
    read_golden(g, "golden.input_ids", ids, DTYPE_I32);
    read_golden(g, "golden.token_type_ids", types, DTYPE_I32);
    read_golden(g, "golden.labels", labels, DTYPE_I32);
    read_golden(g, "golden.lengths", lengths, DTYPE_I32);
    read_golden(g, "golden.next_sentence_label", nsp, DTYPE_I32);
    EXPECT_OK(batch_step_init(&g->step, 2, &text_batch_layout, text_batch_limits(B, S, S)));
    for (int i = 0; i < B; i++) {
        struct batch *b = &g->step.micro[i / 2];
        int64_t n_first = 0, m = 0;
        while (n_first < lengths[i] && types[i * S + n_first] == 0) {
            n_first++;
        }
        memcpy(text_batch_add(b, lengths[i], n_first, nsp[i], i), ids + i * S,
               (size_t)lengths[i] * sizeof *ids);
        for (int32_t p = 0; p < lengths[i]; p++) {
            if (labels[i * S + p] >= 0) {
                text_batch_masked_positions(b)[m] = p;
                text_batch_masked_labels(b)[m++] = labels[i * S + p];
            }
        }
        text_batch_take_masked(b, m);
    }
    batch_finish(&g->step.micro[0], 0);
    batch_finish(&g->step.micro[1], 0);
    batch_step_count(&g->step);
}

static void load(struct trainer *t, const struct golden *g, const struct ops *ops, enum dtype dtype,
                 const struct optimizer_kind *kind)
{
    struct trainer_config config = fixture_trainer(ops, dtype, g->step.micro[0].limits);
    config.optimizer = optimizer_defaults(kind);
    struct bert_model *bert = fixture_bert(&config);
    bert->config.vocab_size = 61;
    bert->config.n_words = g->n_words;
    bert->config.num_hidden_layers = g->n_layers;
    bert->config.layer_norm_large_model = g->pre_ln;
    bert->config.hidden_size = 24;
    bert->config.num_attention_heads = 3;
    bert->config.intermediate_size = 40;
    bert->config.max_position_embeddings = 32;
    bert->config.hidden_dropout_prob = bert->config.attention_probs_dropout_prob = 0;
    fixture_bert_changed(bert);
    EXPECT_OK(trainer_init(t, &config));
    for (int i = 0; i < t->net.params.n; i++) {
        const struct stored_tensor *e = safetensors_find(&g->file, t->net.params.params[i].name);
        EXPECT(e != NULL, "the golden has no %s", t->net.params.params[i].name);
        EXPECT_OK(stored_tensor_read(e, param_view(&t->net.params.params[i], t->net.master)));
    }
    network_weights_changed(&t->net);
}

/* Rows [first, first + n) of `wanted` against the first columns of `actual`. */
static double worst_difference(tensor actual, tensor wanted, int64_t first, int64_t n)
{
    double worst = 0, scale = 1;
    for (int64_t i = 0; i < tensor_count(wanted); i++) {
        scale = fmax(scale, fabs(tensor_get(wanted, i)));
    }
    int64_t cols = tensor_cols(wanted);
    for (int64_t r = 0; r < n; r++) {
        for (int64_t c = 0; c < cols; c++) {
            double a = tensor_get(actual, r * tensor_cols(actual) + c);
            worst = fmax(worst, fabs(a - tensor_get(wanted, (first + r) * cols + c)));
        }
    }
    return worst / scale;
}

static void check_logits(struct trainer *t, const struct golden *g, double bound)
{
    double mlm[64 * 61], nsp[8];
    tensor wanted_mlm = read_golden(g, "golden.prediction_logits", mlm, DTYPE_F64);
    tensor wanted_nsp = read_golden(g, "golden.seq_relationship_logits", nsp, DTYPE_F64);
    int64_t mlm_row = 0, nsp_row = 0;
    for (int64_t i = 0; i < g->step.n_micro; i++) {
        const struct batch *b = &g->step.micro[i];
        stage_infer(&t->net.stage, b);
        EXPECT_OK(t->net.x.status);
        double error = worst_difference(stage_head_output(&t->net.stage, MODEL_WORD_LOGITS), wanted_mlm,
                                        mlm_row, b->n_real_labels);
        EXPECT(error <= bound, "%s: MLM logits differ by %g", t->net.x.ops->name, error);
        printf("%s %s micro-batch %lld: MLM logits within %.2g", t->net.x.ops->name,
               dtype_name(t->config.net.precision.dtype), (long long)i, error);
        error = worst_difference(stage_head_output(&t->net.stage, MODEL_PAIR_LOGITS), wanted_nsp, nsp_row,
                                 b->n_sequences);
        EXPECT(error <= bound, "%s: NSP logits differ by %g", t->net.x.ops->name, error);
        printf(", NSP logits within %.2g\n", error);
        mlm_row += b->n_real_labels;
        nsp_row += b->n_sequences;
    }
}

static void check_gradients(struct trainer *t, const struct golden *g, double bound)
{
    static const char *const names[] = {"bert.embeddings.word_embeddings.weight",
                                        "bert.encoder.layer.0.attention.self.query.weight",
                                        "bert.pooler.dense.bias"};
    struct trainer_result r;
    EXPECT_OK(trainer_gradients(t, &g->step, 1, &r));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double values[61 * 24];
        char name[128];
        snprintf(name, sizeof name, "golden.grad.%s", names[i]);
        tensor wanted = read_golden(g, name, values, DTYPE_F64);
        tensor actual = param_view(param_table_find(&t->net.params, names[i]), t->grad);
        for (int64_t k = 0; k < tensor_count(wanted); k++) {
            EXPECT_NEAR(tensor_get(actual, k), tensor_get(wanted, k), bound);
        }
    }
}

static void check_losses(struct trainer *t, const struct golden *g, const char *name, double bound)
{
    double values[16], worst = 0;
    tensor wanted = read_golden(g, name, values, DTYPE_F64);
    for (int64_t step = 1; step <= tensor_count(wanted); step++) {
        struct trainer_result r;
        EXPECT_OK(trainer_step(t, &g->step, step, step, 3e-3, &r));
        double error =
            fabs(result_mean(&r, "mlm_loss") + result_mean(&r, "nsp_loss") - tensor_get(wanted, step - 1));
        EXPECT(error <= bound * tensor_get(wanted, step - 1), "%s step %lld: loss %.9g, wanted %.9g", name,
               (long long)step, result_mean(&r, "mlm_loss") + result_mean(&r, "nsp_loss"),
               tensor_get(wanted, step - 1));
        worst = fmax(worst, error);
    }
    printf("%s %s: 10 %s within %.2g\n", t->net.x.ops->name, dtype_name(t->config.net.precision.dtype), name,
           worst);
}

static void check(const struct golden *g, const struct ops *ops, enum dtype dtype, double bound,
                  double loss_bound)
{
    struct trainer t;
    load(&t, g, ops, dtype, &optimizer_lamb);
    check_logits(&t, g, bound);
    check_gradients(&t, g, bound);
    check_losses(&t, g, "golden.lamb_losses", loss_bound);
    trainer_fini(&t);
    load(&t, g, ops, dtype, &optimizer_adamw);
    check_losses(&t, g, "golden.adamw_losses", loss_bound);
    trainer_fini(&t);
}

static void check_golden(const char *path, int64_t n_layers, int64_t n_words, bool pre_ln)
{
    struct golden g = {.n_layers = n_layers, .n_words = n_words, .pre_ln = pre_ln};
    EXPECT_OK(safetensors_open(&g.file, path));
    read_batch(&g);
    check(&g, &ops_ref, DTYPE_F64, 1e-12, 1e-10);
    check(&g, ops_cpu(), DTYPE_F32, 1e-5, 1e-6);
    batch_step_fini(&g.step);
    safetensors_close(&g.file);
}

int main(void)
{
    check_golden(KILN_SOURCE_DIR "/tests/golden/bert_parity.safetensors", 2, 61, false);
    check_golden(KILN_SOURCE_DIR "/tests/golden/bert_pre_parity.safetensors", 3, 57, true);
    return 0;
}
