/* Directories of GPT-2, BLOOM and Llama's relatives that `transformers` wrote
 * (tests/golden/make_decoders.py): kiln reads their weights, and computes the same logits, loss and
 * gradients; another network is refused by name. */
#include "decoder_case.h"

#include "core/buf.h"
#include "data/text_batch.h"
#include "ops/backend.h"
#include "pass/network_files.h"
#include "serve/model_outputs.h"
#include "train/trainer.h"

#include <stdlib.h>

static struct outputs_input in;

static tensor read_tensor(const char *name, enum dtype dtype)
{
    const struct stored_tensor *e = safetensors_find(&golden, name);
    EXPECT(e != NULL, "there is no %s", name);
    void *data = calloc((size_t)(e->bytes + 8) * 2, 1);
    tensor t =
        e->n_dims == 1 ? tensor_1d(data, dtype, e->dims[0]) : tensor_2d(data, dtype, e->dims[0], e->dims[1]);
    EXPECT_OK(stored_tensor_read(e, t));
    return t;
}

static void check_logits(const char *name)
{
    struct model_dir m;
    struct model_outputs o;
    char key[64];
    snprintf(key, sizeof key, "%s:mlm", name);
    EXPECT_OK(model_dir_open(&m, path_of(name)));
    EXPECT(m.task == MODEL_TASK_CAUSAL_LM, "%s is taken for another task", name);
    EXPECT_OK(model_outputs_compute(&o, &m, m.task, &in));
    tensor wanted = read_tensor(key, DTYPE_F64), actual = o.values[MODEL_WORD_LOGITS];
    double worst = 0, scale = 1;
    EXPECT(tensor_same_shape(actual, wanted), "%s has other logits", name);
    for (int64_t i = 0; i < tensor_count(wanted); i++) {
        double w = tensor_get(wanted, i);
        worst = fmax(worst, fabs(w - tensor_get(actual, i)));
        scale = fmax(scale, fabs(w));
    }
    printf("%s: logits within %.2g of %.3g\n", name, worst, scale);
    EXPECT(worst <= 1e-5 * scale, "%s differs by %g", name, worst);
    free(wanted.data);
    model_outputs_fini(&o);
    model_dir_close(&m);
}

/* ---- the loss of the next token, and its gradients ---- */

static void fill_step(struct batch_step *step)
{
    for (int64_t s = 0; s < in.n_sequences; s++) {
        int64_t n = in.lengths[s];
        const int32_t *ids = in.ids + s * in.length;
        memcpy(text_batch_add(step->micro, n, n, -1, (int32_t)s), ids, (size_t)n * sizeof *ids);
        for (int32_t i = 0; i + 1 < n; i++) {
            text_batch_masked_positions(step->micro)[i] = i;
            text_batch_masked_labels(step->micro)[i] = ids[i + 1];
        }
        text_batch_take_masked(step->micro, n - 1);
    }
    batch_finish(step->micro, 0);
    batch_step_count(step);
}

/* Where transformers keeps a gradient: a parameter of kiln, and a tensor, of which it is the rows or columns
 * first + i / size * stride + i % size. */
struct wanted_gradient {
    const char *param, *theirs;
    bool transposed;
    int64_t first, size, stride;
};

static void check_gradient(const struct trainer *t, const char *name, const struct wanted_gradient *g)
{
    char key[128];
    snprintf(key, sizeof key, "%s:grad:%s", name, g->theirs);
    const struct param *p = param_table_find(&t->net.params, g->param);
    EXPECT(p != NULL, "there is no %s", g->param);
    tensor wanted = read_tensor(key, DTYPE_F64), actual = param_view(p, t->grad);
    double worst = 0, scale = 0;
    int64_t cols = tensor_cols(actual), their_cols = tensor_cols(wanted), rows = tensor_count(actual) / cols;
    if (p->n_dims == 1) {
        rows = cols, cols = 1;
        their_cols = 1;
    }
    for (int64_t r = 0; r < rows; r++) {
        int64_t row = g->size == 0 ? r : g->first + r / g->size * g->stride + r % g->size;
        for (int64_t c = 0; c < cols; c++) {
            double w = tensor_get(wanted, g->transposed ? c * their_cols + row : row * their_cols + c);
            worst = fmax(worst, fabs(w - tensor_get(actual, r * cols + c)));
            scale = fmax(scale, fabs(w));
        }
    }
    EXPECT(worst <= 2e-5 * scale, "the gradient of %s differs by %g of %g", g->param, worst, scale);
    free(wanted.data);
}

static void check_training(const char *name, const struct wanted_gradient *gradients, size_t n)
{
    struct model_dir m;
    struct model *model;
    struct backend backend;
    struct trainer t;
    struct trainer_result r;
    struct load_report report;
    struct batch_step step;
    char key[64];
    struct batch_limits limits = text_batch_limits(in.n_sequences, in.length, in.length);
    EXPECT_OK(backend_find(&backend, "cpu"));
    EXPECT_OK(model_dir_open(&m, path_of(name)));
    EXPECT_OK(m.family->create(&model, m.config, m.task));
    struct trainer_config config = {.net = {.model = model,
                                            .device = backend.device,
                                            .ops = backend.ops,
                                            .limits = limits,
                                            .learns = true},
                                    .optimizer = optimizer_defaults(&optimizer_adamw)};
    EXPECT_OK(trainer_init(&t, &config));
    EXPECT_OK(network_files_load(&t.net, &m, m.task, 0, NULL, &report));
    EXPECT_OK(batch_step_init(&step, 1, &model->layout, limits));
    fill_step(&step);
    EXPECT_OK(trainer_gradients(&t, &step, 1, &r));
    snprintf(key, sizeof key, "%s:loss", name);
    tensor loss = read_tensor(key, DTYPE_F64);
    EXPECT_NEAR(tensor_get(t.sums, 0) / (double)step.n_labels[model->sums[0].labels], tensor_get(loss, 0),
                1e-5);
    for (size_t i = 0; i < n; i++) {
        check_gradient(&t, name, &gradients[i]);
    }
    printf("%s: loss %.6f, and %zu gradients\n", name, tensor_get(loss, 0), n);
    free(loss.data);
    batch_step_fini(&step);
    trainer_fini(&t);
    free(model);
    model_dir_close(&m);
}

#define PLAIN(name)                                                                                          \
    {                                                                                                        \
        name, name, false, 0, 0, 0                                                                           \
    }

static void test_training_of_llamas(void)
{
    static const struct wanted_gradient llama[] = {
        PLAIN("model.embed_tokens.weight"),
        PLAIN("lm_head.weight"),
        PLAIN("model.norm.weight"),
        PLAIN("model.layers.0.input_layernorm.weight"),
        PLAIN("model.layers.1.post_attention_layernorm.weight"),
        PLAIN("model.layers.0.self_attn.q_proj.weight"),
        PLAIN("model.layers.0.self_attn.k_proj.weight"),
        PLAIN("model.layers.1.self_attn.v_proj.weight"),
        PLAIN("model.layers.1.self_attn.o_proj.weight"),
        PLAIN("model.layers.0.mlp.gate_proj.weight"),
        PLAIN("model.layers.0.mlp.up_proj.weight"),
        PLAIN("model.layers.1.mlp.down_proj.weight"),
    };
    static const struct wanted_gradient qwen2[] = {
        PLAIN("model.embed_tokens.weight"),
        PLAIN("model.layers.0.self_attn.q_proj.bias"),
        PLAIN("model.layers.0.self_attn.k_proj.bias"),
        PLAIN("model.layers.1.self_attn.v_proj.bias"),
        PLAIN("model.layers.1.mlp.gate_proj.weight"),
    };
    static const struct wanted_gradient smollm3[] = {
        PLAIN("model.embed_tokens.weight"),
        PLAIN("model.layers.2.self_attn.q_proj.weight"),
        PLAIN("model.layers.3.self_attn.q_proj.weight"),
        PLAIN("model.layers.3.self_attn.k_proj.weight"),
        PLAIN("model.layers.4.self_attn.k_proj.weight"),
    };
    check_training("llama", llama, sizeof llama / sizeof llama[0]);
    check_training("qwen2", qwen2, sizeof qwen2 / sizeof qwen2[0]);
    check_training("smollm3", smollm3, sizeof smollm3 / sizeof smollm3[0]);
}

/* Four heads of six columns, of keys and values two. */
static void test_training_of_phi3(void)
{
    static const struct wanted_gradient phi3[] = {
        PLAIN("model.embed_tokens.weight"),
        PLAIN("lm_head.weight"),
        PLAIN("model.layers.1.self_attn.o_proj.weight"),
        {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.qkv_proj.weight", false, 0, 24,
         0},
        {"model.layers.1.self_attn.k_proj.weight", "model.layers.1.self_attn.qkv_proj.weight", false, 24, 12,
         0},
        {"model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.qkv_proj.weight", false, 36, 12,
         0},
        {"model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.gate_up_proj.weight", false, 0, 40, 0},
        {"model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.gate_up_proj.weight", false, 40, 40, 0},
    };
    check_training("phi3", phi3, sizeof phi3 / sizeof phi3[0]);
}

static void test_training_of_pythia(void)
{
    static const struct wanted_gradient pythia[] = {
        PLAIN("gpt_neox.embed_in.weight"),
        {"embed_out.weight", "lm_head.weight", false, 0, 0, 0},
        PLAIN("gpt_neox.final_layer_norm.bias"),
        PLAIN("gpt_neox.layers.0.input_layernorm.weight"),
        PLAIN("gpt_neox.layers.0.input_layernorm.bias"),
        PLAIN("gpt_neox.layers.1.post_attention_layernorm.weight"),
        PLAIN("gpt_neox.layers.0.post_attention_layernorm.bias"),
        PLAIN("gpt_neox.layers.0.attention.dense.weight"),
        PLAIN("gpt_neox.layers.0.attention.dense.bias"),
        PLAIN("gpt_neox.layers.1.mlp.dense_h_to_4h.weight"),
        PLAIN("gpt_neox.layers.0.mlp.dense_4h_to_h.bias"),
        {"gpt_neox.layers.0.attention.query.weight", "gpt_neox.layers.0.attention.query_key_value.weight",
         false, 0, 8, 24},
        {"gpt_neox.layers.1.attention.key.weight", "gpt_neox.layers.1.attention.query_key_value.weight",
         false, 8, 8, 24},
        {"gpt_neox.layers.0.attention.value.bias", "gpt_neox.layers.0.attention.query_key_value.bias", false,
         16, 8, 24},
    };
    check_training("pythia", pythia, sizeof pythia / sizeof pythia[0]);
}

static void test_training(void)
{
    static const struct wanted_gradient gpt2[] = {
        PLAIN("transformer.wte.weight"),
        PLAIN("transformer.wpe.weight"),
        PLAIN("transformer.h.0.ln_1.weight"),
        PLAIN("transformer.h.2.ln_2.bias"),
        PLAIN("transformer.ln_f.weight"),
        {"transformer.h.1.attn.query.weight", "transformer.h.1.attn.c_attn.weight", true, 0, 24, 0},
        {"transformer.h.1.attn.key.weight", "transformer.h.1.attn.c_attn.weight", true, 24, 24, 0},
        {"transformer.h.1.attn.value.weight", "transformer.h.1.attn.c_attn.weight", true, 48, 24, 0},
        {"transformer.h.1.attn.value.bias", "transformer.h.1.attn.c_attn.bias", false, 48, 24, 0},
        {"transformer.h.0.attn.out.weight", "transformer.h.0.attn.c_proj.weight", true, 0, 0, 0},
        {"transformer.h.0.attn.out.bias", "transformer.h.0.attn.c_proj.bias", false, 0, 0, 0},
        {"transformer.h.2.mlp.in.weight", "transformer.h.2.mlp.c_fc.weight", true, 0, 0, 0},
        {"transformer.h.2.mlp.in.bias", "transformer.h.2.mlp.c_fc.bias", false, 0, 0, 0},
        {"transformer.h.0.mlp.out.weight", "transformer.h.0.mlp.c_proj.weight", true, 0, 0, 0},
        {"transformer.h.0.mlp.out.bias", "transformer.h.0.mlp.c_proj.bias", false, 0, 0, 0},
    };
    static const struct wanted_gradient bloom[] = {
        PLAIN("transformer.word_embeddings.weight"),
        PLAIN("transformer.word_embeddings_layernorm.weight"),
        PLAIN("transformer.h.0.input_layernorm.bias"),
        PLAIN("transformer.h.1.mlp.dense_h_to_4h.weight"),
        PLAIN("transformer.h.1.mlp.dense_4h_to_h.bias"),
        PLAIN("transformer.h.0.self_attention.dense.weight"),
        {"transformer.h.0.self_attention.query.weight",
         "transformer.h.0.self_attention.query_key_value.weight", false, 0, 4, 12},
        {"transformer.h.0.self_attention.key.weight", "transformer.h.0.self_attention.query_key_value.weight",
         false, 4, 4, 12},
        {"transformer.h.0.self_attention.value.bias", "transformer.h.0.self_attention.query_key_value.bias",
         false, 8, 4, 12},
    };
    check_training("gpt2", gpt2, sizeof gpt2 / sizeof gpt2[0]);
    check_training("bloom", bloom, sizeof bloom / sizeof bloom[0]);
}

/* Queries and keys have norms. */
static void test_training_of_normed(void)
{
    static const struct wanted_gradient qwen3[] = {
        PLAIN("model.embed_tokens.weight"),
        PLAIN("model.layers.0.self_attn.q_norm.weight"),
        PLAIN("model.layers.0.self_attn.k_norm.weight"),
        PLAIN("model.layers.1.self_attn.q_norm.weight"),
        PLAIN("model.layers.0.self_attn.q_proj.weight"),
        PLAIN("model.layers.0.self_attn.k_proj.weight"),
        PLAIN("model.layers.0.self_attn.v_proj.weight"),
        PLAIN("model.layers.1.self_attn.o_proj.weight"),
        PLAIN("model.layers.0.input_layernorm.weight"),
    };
    static const struct wanted_gradient olmo2[] = {
        PLAIN("model.embed_tokens.weight"),
        PLAIN("lm_head.weight"),
        PLAIN("model.layers.0.self_attn.q_norm.weight"),
        PLAIN("model.layers.1.self_attn.k_norm.weight"),
        PLAIN("model.layers.0.self_attn.q_proj.weight"),
        PLAIN("model.layers.0.self_attn.k_proj.weight"),
        PLAIN("model.layers.1.self_attn.v_proj.weight"),
        PLAIN("model.layers.0.self_attn.o_proj.weight"),
        PLAIN("model.layers.0.post_attention_layernorm.weight"),
        PLAIN("model.layers.1.post_feedforward_layernorm.weight"),
        PLAIN("model.layers.0.mlp.gate_proj.weight"),
        PLAIN("model.layers.1.mlp.down_proj.weight"),
    };
    check_training("qwen3", qwen3, sizeof qwen3 / sizeof qwen3[0]);
    check_training("olmo2", olmo2, sizeof olmo2 / sizeof olmo2[0]);
}

/* ---- what kiln writes ---- */

/* Every tensor of the directory that was saved is, bit by bit, that of the one that was read. */
static void check_files(const char *name, const char *saved)
{
    char path[PATH];
    struct safetensors ours, theirs;
    snprintf(path, sizeof path, "%s/model.safetensors", saved);
    EXPECT_OK(safetensors_open(&ours, path));
    snprintf(path, sizeof path, "%s/model.safetensors", path_of(name));
    EXPECT_OK(safetensors_open(&theirs, path));
    EXPECT(ours.n == theirs.n && safetensors_has_sums(&ours), "%d tensors, not %d", ours.n, theirs.n);
    for (int i = 0; i < ours.n; i++) {
        const struct stored_tensor *e = &ours.entries[i], *wanted = safetensors_find(&theirs, e->name);
        EXPECT(wanted != NULL && e->n_dims == wanted->n_dims && e->bytes == wanted->bytes &&
                   memcmp(e->dims, wanted->dims, sizeof e->dims) == 0 &&
                   memcmp(e->data, wanted->data, e->bytes) == 0,
               "%s of %s was written otherwise", e->name, name);
    }
    printf("%s: %d tensors, written as they were read\n", name, ours.n);
    safetensors_close(&ours);
    safetensors_close(&theirs);
}

static void check_saved(const char *name)
{
    struct decoder d;
    char saved[PATH];
    snprintf(saved, sizeof saved, "%s_saved", path_of(name));
    decoder_open(&d, path_of(name), false);
    EXPECT_OK(model_dir_save(saved, &d.contents));
    EXPECT_OK(model_dir_verify(saved, &d.contents));
    const struct param *p = &d.params.params[3]; /* a part of a joined tensor, or beside one */
    ((float *)d.contents.master.data)[p->offset] += 1;
    EXPECT_ERROR(model_dir_verify(saved, &d.contents), STATUS_IO, p->name);
    check_files(name, saved);
    decoder_close(&d);
}

/* ---- networks that kiln does not compute ---- */

/* A file of a case with a text in it replaced; in safetensors a length stands before the text. */
static void edit(const char *name, const char *of, const char *from, const char *to)
{
    char file[PATH];
    snprintf(file, sizeof file, "%s/%s", name, of);
    const struct stored_tensor *e = safetensors_find(&golden, file);
    struct buf text = {0}, changed = {0};
    buf_append(&text, e->data, e->bytes);
    const char *at = strstr(buf_text(&text) + (text.data[0] == '{' ? 0 : 8), from);
    EXPECT(at != NULL, "no %s in %s", from, file);
    size_t before = (size_t)(at - text.data), behind = before + strlen(from);
    buf_append(&changed, text.data, before);
    buf_puts(&changed, to);
    buf_append(&changed, text.data + behind, text.n - behind);
    EXPECT_OK(file_write_atomic(path_of(file), changed.data, changed.n));
    buf_fini(&text);
    buf_fini(&changed);
}

static void expect_refused(const char *name, const char *from, const char *to, const char *message)
{
    struct model_dir m;
    unpack(name);
    edit(name, "config.json", from, to);
    struct status s = model_dir_open(&m, path_of(name));
    EXPECT_ERROR(s, STATUS_DATA, message);
    model_dir_close(&m);
    unpack(name);
}

/* Published BLOOM models have keys of its first releases. */
static void test_other_keys(void)
{
    unpack("bloom");
    edit("bloom", "config.json", "\"hidden_size\"", "\"n_embed\"");
    check_logits("bloom");
    edit("bloom", "config.json", "\"n_head\"", "\"num_attention_heads\"");
    check_logits("bloom");
    unpack("bloom");
}

static void test_refused(void)
{
    expect_refused("gpt2", "\"gelu_new\"", "\"relu\"", "\"activation_function\" is \"relu\"");
    expect_refused("gpt2", "\"scale_attn_by_inverse_layer_idx\": false",
                   "\"scale_attn_by_inverse_layer_idx\": true", "by the layer's number");
    expect_refused("gpt2", "\"n_head\": 3", "\"n_head\": 5", "does not divide into 5 heads");
    expect_refused("llama", "\"silu\"", "\"gelu\"", "\"hidden_act\" is \"gelu\"");
    expect_refused("llama", "\"mlp_bias\": false", "\"mlp_bias\": true", "\"mlp_bias\" is true");
    expect_refused("llama", "\"attention_bias\": false", "\"attention_bias\": true",
                   "\"attention_bias\" is true");
    expect_refused("llama", "\"rope_type\": \"llama3\"", "\"rope_type\": \"yarn\"",
                   "the scaling of rotary positions is \"yarn\"");
    expect_refused("llama", "\"factor\": 4.0", "\"factor\": 0.5",
                   "\"factor\" of the rotary positions is 0.5");
    expect_refused("llama", "\"high_freq_factor\": 4.0", "\"high_freq_factor\": 1.0", "above the first");
    expect_refused("llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4",
                   "\"num_attention_heads\" 6 does not divide into \"num_key_value_heads\" 4");
    expect_refused("llama", "\"rope_theta\": 500.0", "\"partial_rotary_factor\": 0.5",
                   "\"partial_rotary_factor\" is 0.5");
    expect_refused("qwen2", "\"use_sliding_window\": false", "\"use_sliding_window\": true",
                   "\"use_sliding_window\" is true");
    expect_refused("qwen3", "\"use_sliding_window\": false", "\"use_sliding_window\": true",
                   "\"use_sliding_window\" is true: kiln has no qwen3 model with windows");
    expect_refused("qwen3", "\"attention_bias\": false", "\"attention_bias\": true",
                   "attention of qwen3 models has no biases");
    expect_refused("mistral", "\"sliding_window\": null", "\"sliding_window\": 1", "must be at least 2");
    expect_refused("smollm3", "    0,\n", "    2,\n", "\"no_rope_layers\" of layer 3 must be 1, or 0");
    expect_refused(
        "smollm3", "    1,\n    1,\n    1,\n    0,\n    1\n", "    0,\n    0,\n    1,\n    0,\n    1\n",
        "\"no_rope_layers\" of layer 2 is 1: kiln has layers without positions at equal distances");
    expect_refused("smollm3", "    1,\n    1,\n", "    1,\n", "a number for each of the 5 layers");
    expect_refused("smollm3", "\"full_attention\"", "\"sliding_attention\"",
                   "\"layer_types\" of layer 0 is sliding");
    expect_refused("smollm3", "\"use_sliding_window\": false", "\"use_sliding_window\": true",
                   "no smollm3 model with windows");
    expect_refused("phi3", "\"partial_rotary_factor\": 1.0", "\"partial_rotary_factor\": 0.75",
                   "\"partial_rotary_factor\" is 0.75");
    expect_refused("phi3", "\"rope_type\": \"default\"", "\"rope_type\": \"longrope\"",
                   "\"rope_parameters\": the scaling of rotary positions is \"longrope\"");
    expect_refused("phi3", "\"resid_pdrop\": 0.0", "\"resid_pdrop\": 1.5", "\"resid_pdrop\" is 1.5");
    expect_refused("mistral", "\"head_dim\": 8", "\"head_dim\": 7", "a head has 7");
    expect_refused("pythia", "\"gelu\"", "\"relu\"", "\"hidden_act\" is \"relu\"");
    expect_refused("pythia", "\"attention_bias\": true", "\"attention_bias\": false",
                   "\"attention_bias\" is false: kiln has no decoder with");
    expect_refused("pythia", "\"partial_rotary_factor\": 0.25", "\"partial_rotary_factor\": 0.4",
                   "a head has 8, of which 3 are to turn");
    expect_refused("neox", "\"rotary_pct\": 0.5", "\"partial_rotary_factor\": 0.5",
                   "\"partial_rotary_factor\" is 0.5, but \"rotary_pct\" is 0.25");
    expect_refused("neox", "\"rotary_pct\": 0.5", "\"rotary_pct\": 1.5", "\"rotary_pct\" is 1.5");
    expect_refused("pythia", "\"num_attention_heads\": 3", "\"num_attention_heads\": 5",
                   "does not divide into 5 heads");
    expect_refused("bloom", "\"hidden_size\": 24", "\"n_embed\": 0", "\"n_embed\" is 0, but must lie");
    expect_refused("bloom", "\"hidden_size\": 24", "\"n_embed\": 25", "does not divide into 6 heads");
    expect_refused("bloom", "\"apply_residual_connection_post_layernorm\": false",
                   "\"apply_residual_connection_post_layernorm\": true", "behind the norm");
}

/* Matrices of GPT-2 are [in, out], those of BLOOM [out, in]. */
static void test_turned(void)
{
    static const struct {
        const char *name, *from, *to, *message;
    } rows[] = {
        {"gpt2", "[24,72]", "[72,24]",
         "attn.c_attn.weight has the shape [72, 24], but config.json needs [24, 72]: it is the transpose "
         "of "
         "what such files hold, [in, out]"},
        {"gpt2", "[96,24]", "[24,96]",
         "mlp.c_proj.weight has the shape [24, 96], but config.json needs [96, 24]"},
        {"phi3", "[48,24]", "[24,48]",
         "self_attn.qkv_proj.weight has the shape [24, 48], but config.json needs [48, 24]"},
        {"phi3", "[80,24]", "[24,80]",
         "mlp.gate_up_proj.weight has the shape [24, 80], but config.json needs [80, 24]"},
        {"bloom", "[72,24]", "[24,72]",
         "self_attention.query_key_value.weight has the shape [24, 72], but config.json needs [72, 24]: "
         "it "
         "is the transpose of what such files hold, [out, in]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct model_dir m;
        struct param_table params = {0};
        struct load_report report;
        edit(rows[i].name, "model.safetensors", rows[i].from, rows[i].to);
        EXPECT_OK(model_dir_open(&m, path_of(rows[i].name)));
        EXPECT_OK(model_dir_declare(&m, &params, m.task));
        float *flat = calloc((size_t)params.n_elements, sizeof *flat);
        EXPECT(flat != NULL, "no memory");
        tensor master = tensor_1d(flat, DTYPE_F32, params.n_elements);
        EXPECT_ERROR(model_dir_read_weights(&m, &params, master, m.task, 0, &report), STATUS_DATA,
                     rows[i].message);
        free(flat);
        param_table_fini(&params);
        model_dir_close(&m);
        unpack(rows[i].name);
    }
}

/* A rank's part of a Hugging Face directory: some layers, and a slice of what is split. */
static void check_part(const struct decoder *d, struct param_part part)
{
    struct param_table params = {.part = part};
    struct load_report report;
    EXPECT_OK(model_dir_declare(&d->m, &params, d->m.task));
    float *flat = calloc((size_t)params.n_elements, sizeof *flat);
    EXPECT(flat != NULL, "no memory");
    tensor master = tensor_1d(flat, DTYPE_F32, params.n_elements);
    EXPECT_OK(model_dir_read_weights(&d->m, &params, master, d->m.task, 0, &report));
    for (int i = 0; i < params.n; i++) {
        const struct param *p = &params.params[i], *all = param_table_find(&d->params, p->name);
        const float *whole = (const float *)d->contents.master.data + all->offset;
        for (int64_t k = 0; k < param_count(p); k++) {
            EXPECT(flat[p->offset + k] == whole[param_full_index(p, k)], "%s, slice %d of %d, element %lld",
                   p->name, part.slice, part.n_slices, (long long)k);
        }
    }
    free(flat);
    param_table_fini(&params);
}

static void check_parts(const char *name)
{
    struct decoder d;
    decoder_open(&d, path_of(name), false);
    const char *tied = strcmp(name, "bloom") == 0    ? "transformer.word_embeddings.weight"
                       : strcmp(name, "gpt2") == 0   ? "transformer.wte.weight"
                       : strcmp(name, "pythia") == 0 ? NULL
                                                     : "model.embed_tokens.weight";
    for (int slice = 0; slice < 2; slice++) {
        check_part(&d, (struct param_part){.slice = slice, .n_slices = 2});
        check_part(&d,
                   (struct param_part){.ranges = {{-1, 1}}, .n_ranges = 1, .slice = slice, .n_slices = 2});
        check_part(&d, (struct param_part){
                           .ranges = {{1, 100}}, .n_ranges = 1, .slice = slice, .n_slices = 2, .tied = tied});
    }
    decoder_close(&d);
}

int main(void)
{
    static const char *const cases[] = {"gpt2",    "gpt2_exact", "bloom",          "bloom_half", "llama",
                                        "mistral", "qwen2",      "mistral_window", "qwen3",      "olmo2",
                                        "smollm3", "phi3",       "pythia",         "neox"};
    cases_open(KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    tensor ids = read_tensor("ids", DTYPE_I32);
    in = (struct outputs_input){ids.dims[0], ids.dims[1], ids.data, read_tensor("types", DTYPE_I32).data,
                                read_tensor("lengths", DTYPE_I32).data};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unpack(cases[i]);
        check_logits(cases[i]);
    }
    test_training_of_llamas();
    test_training_of_phi3();
    test_training_of_pythia();
    test_training();
    test_training_of_normed();
    check_saved("gpt2");
    check_saved("bloom");
    check_saved("llama");
    check_saved("qwen2");
    check_saved("mistral_window");
    check_saved("qwen3");
    check_saved("olmo2");
    check_saved("smollm3");
    check_saved("phi3");
    check_saved("pythia");
    check_parts("gpt2");
    check_parts("pythia");
    check_parts("bloom");
    check_parts("qwen2");
    check_parts("qwen3");
    check_parts("phi3");
    test_other_keys();
    test_refused();
    test_turned();
    outputs_input_fini(&in);
    cases_close();
    return 0;
}
