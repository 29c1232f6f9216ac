/* GGUF files of decoders, read byte by byte as the specification says: the header, the pairs, what the
 * tensors are, their places; their elements in all four types against a quantization written out here; and
 * kiln reads them back. */
#include "decoder_case.h"

#include "core/bytes.h"
#include "io/gguf_file.h"
#include "nn/decoder/decoder_config.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer_open.h"

enum { MOST_TENSORS = 64 };

struct info {
    char name[64];
    uint32_t n_dims, type;
    uint64_t dims[2], at; /* the fastest dim first */
};

struct header {
    struct file_map map;
    struct span span;
    struct info infos[MOST_TENSORS];
    uint64_t n_tensors, n_pairs, data;
};

static void read_text(struct span *s, char *to, size_t room)
{
    uint64_t n = bytes_read_u64(s);
    const unsigned char *text = bytes_take_items(s, n, 1);
    EXPECT(text != NULL && n < room, "a text of %llu bytes", (unsigned long long)n);
    memcpy(to, text, n);
    to[n] = '\0';
}

/* What a pair has, as text: numbers, the text, or "[N of TYPE: first ... last]". */
static void read_value(struct span *s, char *to, size_t room)
{
    char first[128] = "", last[128] = "";
    uint32_t type = bytes_read_u32(s);
    float real;
    switch (type) {
    case 4: snprintf(to, room, "%u", bytes_read_u32(s)); return;
    case 7: snprintf(to, room, "%s", bytes_read_u8(s) != 0 ? "true" : "false"); return;
    case 6:
        memcpy(&real, bytes_take(s, 4), 4);
        snprintf(to, room, "%g", (double)real);
        return;
    case 8: read_text(s, to, room); return;
    default: EXPECT(type == 9, "a value of type %u", type);
    }
    type = bytes_read_u32(s);
    uint64_t n = bytes_read_u64(s);
    for (uint64_t i = 0; i < n; i++) {
        if (type == 8) {
            read_text(s, last, sizeof last);
        } else {
            EXPECT(type == 5, "a list of type %u", type);
            snprintf(last, sizeof last, "%d", bytes_read_i32(s));
        }
        if (i == 0) {
            memcpy(first, last, sizeof first);
        }
    }
    snprintf(to, room, "[%llu: %s ... %s]", (unsigned long long)n, first, last);
}

struct pair {
    const char *key, *value;
};

static const char *wanted_of(const struct pair *pairs, const char *key)
{
    while (pairs->key != NULL && strcmp(pairs->key, key) != 0) {
        pairs++;
    }
    EXPECT(pairs->key != NULL, "the key %s", key);
    return pairs->value;
}

static void read_infos(struct header *h)
{
    for (uint64_t i = 0; i < h->n_tensors; i++) {
        struct info *t = &h->infos[i];
        read_text(&h->span, t->name, sizeof t->name);
        t->n_dims = bytes_read_u32(&h->span);
        EXPECT(t->n_dims == 1 || t->n_dims == 2, "%s has %u dims", t->name, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++) {
            t->dims[d] = bytes_read_u64(&h->span);
        }
        t->dims[1] = t->n_dims == 1 ? 1 : t->dims[1];
        t->type = bytes_read_u32(&h->span);
        t->at = bytes_read_u64(&h->span);
        EXPECT(t->at % 32 == 0, "%s begins at %llu", t->name, (unsigned long long)t->at);
    }
    h->data = (h->span.at + 31) / 32 * 32;
    EXPECT(!h->span.failed, "the header ends behind the file");
}

static void header_open(struct header *h, const char *path, const struct pair *pairs)
{
    EXPECT_OK(file_map_open(&h->map, path));
    h->span = bytes_span(h->map.data, h->map.n);
    EXPECT(memcmp(bytes_take(&h->span, 4), "GGUF", 4) == 0 && bytes_read_u32(&h->span) == 3, "%s", path);
    h->n_tensors = bytes_read_u64(&h->span);
    h->n_pairs = bytes_read_u64(&h->span);
    EXPECT(h->n_tensors <= MOST_TENSORS, "%llu tensors", (unsigned long long)h->n_tensors);
    uint64_t n = 0;
    for (const struct pair *p = pairs; p->key != NULL; p++) {
        n++;
    }
    EXPECT(h->n_pairs == n, "%llu pairs, not %llu", (unsigned long long)h->n_pairs, (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        char key[64], value[1 << 14];
        read_text(&h->span, key, sizeof key);
        read_value(&h->span, value, sizeof value);
        const char *wanted = wanted_of(pairs, key); /* NULL: test_tokenizers compares it */
        EXPECT(wanted == NULL || strcmp(value, wanted) == 0, "%s is %s, not %s", key, value,
               wanted_of(pairs, key));
    }
    read_infos(h);
}

/* ---- the elements ---- */

/* A parameter of kiln, and where GGUF has it: rows from `first` on of a tensor of this many. */
struct place {
    const char *param, *name;
    uint64_t first, rows;
    uint64_t paired; /* rows of a head whose halves the file has in turn, as llama.cpp's llama; 0: none */
};

/* Q8_0, written out: 127 steps to the largest magnitude. */
static int reference_step(const float *block, int i, float *scale)
{
    float most = 0;
    for (int k = 0; k < 32; k++) {
        most = fabsf(block[k]) > most ? fabsf(block[k]) : most;
    }
    *scale = most / 127.0F;
    float steps = *scale == 0 ? 0 : block[i] * (1.0F / *scale);
    return steps < 0 ? -(int)(0.5F - steps) : (int)(steps + 0.5F);
}

static void check_element(const struct info *t, const unsigned char *data, uint64_t i, const float *row,
                          uint64_t col)
{
    float got, scale;
    switch (t->type) {
    case 0:
        memcpy(&got, data + 4 * i, 4);
        EXPECT(got == row[col], "%s", t->name);
        return;
    case 1: EXPECT(bytes_load_u16(data + 2 * i) == f16_from_f32(row[col]), "%s", t->name); return;
    case 30: EXPECT(bytes_load_u16(data + 2 * i) == bf16_from_f32(row[col]), "%s", t->name); return;
    default: EXPECT(t->type == 8, "%s has the type %u", t->name, t->type);
    }
    int step = reference_step(row + col / 32 * 32, (int)(col % 32), &scale);
    const unsigned char *block = data + i / 32 * 34;
    EXPECT(bytes_load_u16(block) == f16_from_f32(scale) && (int8_t)block[2 + i % 32] == step,
           "%s, element %llu: %d, not %d", t->name, (unsigned long long)i, (int8_t)block[2 + i % 32], step);
}

/* llama.cpp's conversion makes [2, D / 2] of the rows of a head, and exchanges the two. */
static uint64_t row_in_file(const struct place *p, uint64_t r)
{
    if (p->paired == 0) {
        return p->first + r;
    }
    uint64_t head = r / p->paired, half = r % p->paired / (p->paired / 2), i = r % (p->paired / 2);
    return p->first + head * p->paired + 2 * i + half;
}

static void check_place(const struct header *h, const struct decoder *d, const struct place *p, uint32_t type)
{
    const struct info *t = h->infos;
    while (strcmp(t->name, p->name) != 0) {
        t++;
        EXPECT(t < h->infos + h->n_tensors, "there is no %s", p->name);
    }
    const struct param *param = param_table_find(&d->params, p->param);
    EXPECT(param != NULL, "there is no %s", p->param);
    const float *values = param_view(param, d->contents.master).data;
    uint64_t cols = t->dims[0], rows = t->n_dims == 1 ? 1 : (uint64_t)param->dims[0];
    uint64_t all = t->n_dims == 1 ? p->rows : (uint64_t)param->dims[1];
    EXPECT(t->type == type && cols == all && (t->n_dims == 1 || t->dims[1] == p->rows),
           "%s: type %u, [%llu, %llu]", t->name, t->type, (unsigned long long)t->dims[1],
           (unsigned long long)cols);
    uint64_t n = t->n_dims == 1 ? (uint64_t)param->dims[0] : cols;
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t c = 0; c < n; c++) {
            uint64_t i = t->n_dims == 1 ? p->first + c : row_in_file(p, r) * cols + c;
            check_element(t, h->map.data + h->data + t->at, i, values + r * cols, c);
        }
    }
}

/* ---- the cases ---- */

#define TOKENIZER(pre, end)                                                                                  \
    {"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", pre},                                           \
        {"tokenizer.ggml.tokens", "[262: ! ... " end "]"}, {"tokenizer.ggml.token_type", "[262: 1 ... 3]"},  \
        {"tokenizer.ggml.add_bos_token", "false"}, {"tokenizer.ggml.add_eos_token", "false"},                \
        {"tokenizer.huggingface.json", NULL},                                                                \
    {                                                                                                        \
        "tokenizer.ggml.merges", "[5: t h ... an d]"                                                         \
    }

static const struct pair gpt2_pairs[] = {
    {"general.architecture", "gpt2"},
    {"general.name", "gpt2_q8"},
    {"general.file_type", "7"},
    {"gpt2.context_length", "24"},
    {"gpt2.embedding_length", "24"},
    {"gpt2.block_count", "3"},
    {"gpt2.feed_forward_length", "96"},
    {"gpt2.activation_function", "gelu_new"},
    {"gpt2.attention.head_count", "3"},
    {"gpt2.attention.head_count_kv", "3"},
    {"gpt2.attention.layer_norm_epsilon", "1e-05"},
    TOKENIZER("gpt-2", "<|endoftext|>"),
    {"tokenizer.ggml.bos_token_id", "261"},
    {"tokenizer.ggml.eos_token_id", "261"},
    {NULL, NULL},
};

static const struct pair bloom_pairs[] = {
    {"general.architecture", "bloom"},
    {"general.name", "bloom_bf16"},
    {"general.file_type", "32"},
    {"bloom.context_length", "2048"},
    {"bloom.embedding_length", "24"},
    {"bloom.block_count", "2"},
    {"bloom.feed_forward_length", "96"},
    {"bloom.attention.head_count", "6"},
    {"bloom.attention.head_count_kv", "6"},
    {"bloom.attention.layer_norm_epsilon", "1e-05"},
    TOKENIZER("gpt-2", "</s>"), /* the golden's tokenizer has GPT-2's pattern */
    {"tokenizer.ggml.eos_token_id", "261"},
    {"tokenizer.ggml.eot_token_id", "2"}, /* config.json has that of its class */
    {NULL, NULL},
};

static void write_model(struct decoder *d, const char *name, enum model_dir_type type, const char *saved)
{
    decoder_open(d, path_of(name), true);
    d->contents.form = (struct model_dir_form){.kind = MODEL_DIR_GGUF, .type = type};
    EXPECT_OK(model_dir_save(path_of(saved), &d->contents));
    EXPECT_OK(model_dir_verify(path_of(saved), &d->contents));
}

/* Rows of 96 are three blocks of Q8_0; those of 24 are none, and fp16. */
static void test_gpt2(void)
{
    static const struct place in_f16[] = {
        {"transformer.wte.weight", "token_embd.weight", 0, 262, 0},
        {"transformer.h.1.attn.query.weight", "blk.1.attn_qkv.weight", 0, 72, 0},
        {"transformer.h.1.attn.key.weight", "blk.1.attn_qkv.weight", 24, 72, 0},
        {"transformer.h.2.attn.value.weight", "blk.2.attn_qkv.weight", 48, 72, 0},
        {"transformer.h.0.attn.out.weight", "blk.0.attn_output.weight", 0, 24, 0},
        {"transformer.h.0.mlp.in.weight", "blk.0.ffn_up.weight", 0, 96, 0},
    };
    static const struct place in_f32[] = {
        {"transformer.wpe.weight", "position_embd.weight", 0, 24, 0},
        {"transformer.h.0.ln_1.weight", "blk.0.attn_norm.weight", 0, 24, 0},
        {"transformer.h.2.attn.key.bias", "blk.2.attn_qkv.bias", 24, 72, 0},
        {"transformer.h.1.ln_2.bias", "blk.1.ffn_norm.bias", 0, 24, 0},
        {"transformer.h.1.mlp.in.bias", "blk.1.ffn_up.bias", 0, 96, 0},
        {"transformer.ln_f.bias", "output_norm.bias", 0, 24, 0},
    };
    static const struct place in_q8 = {"transformer.h.2.mlp.out.weight", "blk.2.ffn_down.weight", 0, 24, 0};
    struct decoder d;
    struct header h;
    write_model(&d, "gpt2", MODEL_DIR_Q8_0, "gpt2_q8");
    header_open(&h, path_of("gpt2_q8/model.gguf"), gpt2_pairs);
    EXPECT(h.n_tensors == 2 + 3 * 12 + 2, "%llu tensors", (unsigned long long)h.n_tensors);
    for (size_t i = 0; i < 6; i++) {
        check_place(&h, &d, &in_f16[i], 1);
        check_place(&h, &d, &in_f32[i], 0);
    }
    check_place(&h, &d, &in_q8, 8);
    file_map_close(&h.map);
    decoder_close(&d);
}

static void test_bloom(void)
{
    static const struct place in_bf16[] = {
        {"transformer.word_embeddings.weight", "token_embd.weight", 0, 262, 0},
        {"transformer.h.1.self_attention.query.weight", "blk.1.attn_qkv.weight", 0, 72, 0},
        {"transformer.h.1.self_attention.value.weight", "blk.1.attn_qkv.weight", 48, 72, 0},
        {"transformer.h.0.self_attention.dense.weight", "blk.0.attn_output.weight", 0, 24, 0},
        {"transformer.h.1.mlp.dense_4h_to_h.weight", "blk.1.ffn_down.weight", 0, 24, 0},
    };
    static const struct place in_f32[] = {
        {"transformer.word_embeddings_layernorm.weight", "token_embd_norm.weight", 0, 24, 0},
        {"transformer.h.0.self_attention.key.bias", "blk.0.attn_qkv.bias", 24, 72, 0},
        {"transformer.h.0.input_layernorm.weight", "blk.0.attn_norm.weight", 0, 24, 0},
        {"transformer.h.0.post_attention_layernorm.bias", "blk.0.ffn_norm.bias", 0, 24, 0},
        {"transformer.ln_f.weight", "output_norm.weight", 0, 24, 0},
    };
    struct decoder d;
    struct header h;
    write_model(&d, "bloom", MODEL_DIR_BF16, "bloom_bf16");
    header_open(&h, path_of("bloom_bf16/model.gguf"), bloom_pairs);
    EXPECT(h.n_tensors == 3 + 2 * 12 + 2, "%llu tensors", (unsigned long long)h.n_tensors);
    for (size_t i = 0; i < 5; i++) {
        check_place(&h, &d, &in_bf16[i], 30);
        check_place(&h, &d, &in_f32[i], 0);
    }
    file_map_close(&h.map);
    decoder_close(&d);
}

static const struct pair mistral_pairs[] = {
    {"general.architecture", "llama"},
    {"general.name", "mistral_f32"},
    {"general.file_type", "0"},
    {"llama.context_length", "24"},
    {"llama.embedding_length", "24"},
    {"llama.block_count", "2"},
    {"llama.feed_forward_length", "40"},
    {"llama.attention.head_count", "4"},
    {"llama.attention.head_count_kv", "1"},
    {"llama.attention.layer_norm_rms_epsilon", "1e-06"},
    {"llama.rope.freq_base", "10000"},
    {"llama.rope.dimension_count", "8"},
    {"llama.attention.key_length", "8"},
    {"llama.attention.value_length", "8"},
    TOKENIZER("gpt-2", "<|endoftext|>"),
    {"tokenizer.ggml.bos_token_id", "261"},
    {"tokenizer.ggml.eos_token_id", "261"},
    {"tokenizer.ggml.eot_token_id", "2"},
    {NULL, NULL},
};

static const struct pair smollm3_pairs[] = {
    {"general.architecture", "smollm3"},
    {"general.name", "smollm3_f32"},
    {"general.file_type", "0"},
    {"smollm3.context_length", "24"},
    {"smollm3.embedding_length", "24"},
    {"smollm3.block_count", "5"},
    {"smollm3.feed_forward_length", "40"},
    {"smollm3.attention.head_count", "4"},
    {"smollm3.attention.head_count_kv", "2"},
    {"smollm3.attention.layer_norm_rms_epsilon", "1e-06"},
    {"smollm3.rope.freq_base", "500"},
    {"smollm3.rope.dimension_count", "6"},
    {"smollm3.attention.key_length", "6"},
    {"smollm3.attention.value_length", "6"},
    TOKENIZER("gpt-2", "<|endoftext|>"),
    {"tokenizer.ggml.bos_token_id", "261"},
    {"tokenizer.ggml.eos_token_id", "261"},
    {NULL, NULL},
};

static const struct pair pythia_pairs[] = {
    {"general.architecture", "gptneox"},
    {"general.name", "pythia_f32"},
    {"general.file_type", "0"},
    {"gptneox.context_length", "24"},
    {"gptneox.embedding_length", "24"},
    {"gptneox.block_count", "2"},
    {"gptneox.feed_forward_length", "40"},
    {"gptneox.attention.head_count", "3"},
    {"gptneox.attention.head_count_kv", "3"},
    {"gptneox.attention.layer_norm_epsilon", "1e-05"},
    {"gptneox.use_parallel_residual", "true"},
    {"gptneox.hidden_act", "gelu"},
    {"gptneox.rope.dimension_count", "2"},
    {"gptneox.rope.freq_base", "10000"},
    TOKENIZER("gpt-2", "<|endoftext|>"),
    {"tokenizer.ggml.bos_token_id", "261"},
    {"tokenizer.ggml.eos_token_id", "261"},
    {"tokenizer.ggml.eot_token_id", "2"}, /* config.json has that of its class */
    {NULL, NULL},
};

/* llama.cpp has the rows of all queries, then keys, then values; Hugging Face's files those of a head. */
static void test_pythia(void)
{
    static const struct place places[] = {
        {"gpt_neox.embed_in.weight", "token_embd.weight", 0, 262, 0},
        {"embed_out.weight", "output.weight", 0, 262, 0},
        {"gpt_neox.layers.1.attention.query.weight", "blk.1.attn_qkv.weight", 0, 72, 0},
        {"gpt_neox.layers.0.attention.key.weight", "blk.0.attn_qkv.weight", 24, 72, 0},
        {"gpt_neox.layers.1.attention.value.bias", "blk.1.attn_qkv.bias", 48, 72, 0},
        {"gpt_neox.layers.0.attention.dense.weight", "blk.0.attn_output.weight", 0, 24, 0},
        {"gpt_neox.layers.1.mlp.dense_4h_to_h.weight", "blk.1.ffn_down.weight", 0, 24, 0},
    };
    struct decoder d;
    struct header h;
    write_model(&d, "pythia", MODEL_DIR_F32, "pythia_f32");
    header_open(&h, path_of("pythia_f32/model.gguf"), pythia_pairs);
    EXPECT(h.n_tensors == 1 + 2 * 12 + 3, "%llu tensors", (unsigned long long)h.n_tensors);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        check_place(&h, &d, &places[i], 0);
    }
    file_map_close(&h.map);
    decoder_close(&d);
    decoder_open(&d, path_of("neox"), true);
    d.contents.form = (struct model_dir_form){.kind = MODEL_DIR_GGUF, .type = MODEL_DIR_F32};
    EXPECT_ERROR(model_dir_save(path_of("neox_f32"), &d.contents), STATUS_UNAVAILABLE,
                 "a decoder of its own");
    decoder_close(&d);
}

static void test_llamas(void)
{
    static const struct place mistral[] = {
        {"model.embed_tokens.weight", "token_embd.weight", 0, 262, 0},
        {"lm_head.weight", "output.weight", 0, 262, 0},
        {"model.layers.1.self_attn.q_proj.weight", "blk.1.attn_q.weight", 0, 32, 8},
        {"model.layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight", 0, 8, 8},
        {"model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight", 0, 8, 0},
        {"model.layers.1.self_attn.o_proj.weight", "blk.1.attn_output.weight", 0, 24, 0},
        {"model.layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight", 0, 40, 0},
        {"model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight", 0, 24, 0},
    };
    static const struct place smollm3[] = {
        {"model.layers.2.self_attn.q_proj.weight", "blk.2.attn_q.weight", 0, 24, 6},
        {"model.layers.3.self_attn.q_proj.weight", "blk.3.attn_q.weight", 0, 24, 6},
        {"model.layers.3.self_attn.k_proj.weight", "blk.3.attn_k.weight", 0, 12, 6},
    };
    struct decoder d;
    struct header h;
    write_model(&d, "mistral", MODEL_DIR_F32, "mistral_f32");
    header_open(&h, path_of("mistral_f32/model.gguf"), mistral_pairs);
    EXPECT(h.n_tensors == 1 + 2 * 9 + 2, "%llu tensors", (unsigned long long)h.n_tensors);
    for (size_t i = 0; i < sizeof mistral / sizeof mistral[0]; i++) {
        check_place(&h, &d, &mistral[i], 0);
    }
    file_map_close(&h.map);
    decoder_close(&d);
    write_model(&d, "qwen2", MODEL_DIR_Q8_0, "qwen2_q8");
    decoder_close(&d);
    write_model(&d, "smollm3", MODEL_DIR_F32, "smollm3_f32");
    header_open(&h, path_of("smollm3_f32/model.gguf"), smollm3_pairs);
    EXPECT(h.n_tensors == 1 + 5 * 9 + 1, "%llu tensors", (unsigned long long)h.n_tensors);
    for (size_t i = 0; i < sizeof smollm3 / sizeof smollm3[0]; i++) {
        check_place(&h, &d, &smollm3[i], 0);
    }
    file_map_close(&h.map);
    ((struct decoder_config *)d.m.config)->unturned = (struct layer_cycle){2, 1};
    EXPECT_ERROR(model_dir_save(path_of("smollm3_f32"), &d.contents), STATUS_UNAVAILABLE,
                 "layer 1 of this model");
    decoder_close(&d);
    write_model(&d, "llama", MODEL_DIR_F32, "llama_f32");
    decoder_close(&d);
}

#define NORMED_PAIRS(arch, eps, head_size)                                                                   \
    {                                                                                                        \
        {"general.architecture", arch}, {"general.name", arch "_f32"}, {"general.file_type", "0"},           \
            {arch ".context_length", "24"}, {arch ".embedding_length", "24"}, {arch ".block_count", "2"},    \
            {arch ".feed_forward_length", "40"}, {arch ".attention.head_count", "4"},                        \
            {arch ".attention.head_count_kv", "2"}, {arch ".attention.layer_norm_rms_epsilon", eps},         \
            {arch ".rope.freq_base", "10000"}, {arch ".rope.dimension_count", head_size},                    \
            {arch ".attention.key_length", head_size}, {arch ".attention.value_length", head_size},          \
            TOKENIZER("gpt-2", "<|endoftext|>"), {"tokenizer.ggml.bos_token_id", "261"},                     \
            {"tokenizer.ggml.eos_token_id", "261"}, {NULL, NULL},                                            \
    }
static const struct pair qwen3_pairs[] = NORMED_PAIRS("qwen3", "1e-06", "10"),
                         olmo2_pairs[] = NORMED_PAIRS("olmo2", "1e-05", "6");

/* Heads of qwen3 and olmo2 are halves, and their norms have names of their own. */
static void test_normed(void)
{
    static const struct place qwen3[] = {
        {"model.layers.0.self_attn.q_norm.weight", "blk.0.attn_q_norm.weight", 0, 10, 0},
        {"model.layers.1.self_attn.k_norm.weight", "blk.1.attn_k_norm.weight", 0, 10, 0},
        {"model.layers.1.self_attn.q_proj.weight", "blk.1.attn_q.weight", 0, 40, 0},
        {"model.layers.1.self_attn.k_proj.weight", "blk.1.attn_k.weight", 0, 20, 0},
        {"model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight", 0, 24, 0},
    };
    static const struct place olmo2[] = {
        {"model.layers.0.self_attn.q_norm.weight", "blk.0.attn_q_norm.weight", 0, 24, 0},
        {"model.layers.1.self_attn.k_norm.weight", "blk.1.attn_k_norm.weight", 0, 12, 0},
        {"model.layers.1.self_attn.k_proj.weight", "blk.1.attn_k.weight", 0, 12, 0},
        {"model.layers.0.post_attention_layernorm.weight", "blk.0.post_attention_norm.weight", 0, 24, 0},
        {"model.layers.1.post_feedforward_layernorm.weight", "blk.1.post_ffw_norm.weight", 0, 24, 0},
    };
    const struct place *const places[] = {qwen3, olmo2};
    const struct pair *const pairs[] = {qwen3_pairs, olmo2_pairs};
    static const char *const names[][2] = {{"qwen3", "qwen3_f32"}, {"olmo2", "olmo2_f32"}};
    for (int k = 0; k < 2; k++) {
        char file[64];
        struct decoder d;
        struct header h;
        write_model(&d, names[k][0], MODEL_DIR_F32, names[k][1]);
        snprintf(file, sizeof file, "%s/model.gguf", names[k][1]);
        header_open(&h, path_of(file), pairs[k]);
        for (size_t i = 0; i < sizeof qwen3 / sizeof qwen3[0]; i++) {
            check_place(&h, &d, &places[k][i], 0);
        }
        file_map_close(&h.map);
        decoder_close(&d);
    }
}

/* The configuration in the keys of a file is that of the model which it was written from. */
static void test_configurations(void)
{
    static const char *const names[][2] = {
        {"gpt2", "gpt2_q8"},    {"bloom", "bloom_bf16"}, {"mistral", "mistral_f32"}, {"qwen2", "qwen2_q8"},
        {"llama", "llama_f32"}, {"qwen3", "qwen3_f32"},  {"olmo2", "olmo2_f32"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct model_family *family, *of_file;
        void *config, *of_keys;
        json_t *root, *root_of_keys;
        char path[FILE_PATH_BYTES];
        EXPECT_OK(file_make_path(path, "%s/config.json", path_of(names[i][0])));
        EXPECT_OK(model_family_read_config(&family, &config, &root, path));
        EXPECT_OK(file_make_path(path, "%s/model.gguf", path_of(names[i][1])));
        EXPECT_OK(model_family_read_config(&of_file, &of_keys, &root_of_keys, path));
        EXPECT_OK(family->same_architecture(config, of_keys));
        EXPECT(family->gguf == of_file->gguf, "%s is a %s", path, of_file->name);
        free(config);
        free(of_keys);
        json_decref(root);
        json_decref(root_of_keys);
    }
}

/* In GGUF the end of documents ends an answer too. */
static void expect_same_tokenizer(const struct tokenizer *a, const struct tokenizer *b)
{
    EXPECT(a->n == b->n && memcmp(a->special, b->special, sizeof a->special) == 0 &&
               a->frame.one.before.n == b->frame.one.before.n,
           "special tokens, or %d pieces, not %d", a->n, b->n);
    for (int i = 0; i < b->n_ends; i++) {
        EXPECT(tokenizer_ends(a, b->ends[i]), "token %d ends a text", b->ends[i]);
    }
    EXPECT(a->hash == b->hash, "the hash of what decides ids");
    for (int32_t id = 0; id < a->n; id++) {
        size_t n_a, n_b;
        const char *x = tokenizer_piece(a, id, &n_a), *y = tokenizer_piece(b, id, &n_b);
        EXPECT(n_a == n_b && memcmp(x, y, n_a) == 0, "token %d is '%.*s', not '%.*s'", id, (int)n_a, x,
               (int)n_b, y);
    }
}

/* The tokenizer of a file is that of its directory, by the tokenizer.json in it and without. */
static void test_tokenizers(void)
{
    static const char *const names[][2] = {
        {"gpt2", "gpt2_q8"}, {"bloom", "bloom_bf16"}, {"llama", "llama_f32"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tokenizer t, of_keys;
        struct gguf_file f;
        int64_t max_length;
        char path[FILE_PATH_BYTES];
        EXPECT_OK(tokenizer_open_directory(&t, &max_length, path_of(names[i][0])));
        EXPECT_OK(file_make_path(path, "%s/model.gguf", path_of(names[i][1])));
        EXPECT_OK(tokenizer_open_directory(&of_keys, &max_length, path));
        expect_same_tokenizer(&of_keys, &t);
        tokenizer_fini(&of_keys);
        EXPECT_OK(gguf_file_open_keys(&f, path));
        for (int k = 0; k < f.n_pairs; k++) {
            f.pairs[k].key = strcmp(f.pairs[k].key, GGUF_TOKENIZER_JSON) == 0 ? "other" : f.pairs[k].key;
        }
        EXPECT_OK(gguf_tokenizer_read(&of_keys, &f, path));
        expect_same_tokenizer(&of_keys, &t);
        gguf_file_close(&f);
        tokenizer_fini(&of_keys);
        tokenizer_fini(&t);
    }
}

static void test_other_types(void)
{
    struct decoder d;
    write_model(&d, "gpt2_exact", MODEL_DIR_F32, "exact_f32");
    ((float *)d.contents.master.data)[d.params.params[2].offset] += 1;
    EXPECT_ERROR(model_dir_verify(path_of("exact_f32"), &d.contents), STATUS_IO, d.params.params[2].name);
    decoder_close(&d);
    write_model(&d, "gpt2", MODEL_DIR_F16, "gpt2_f16");
    const struct param *p = param_table_find(&d.params, "transformer.h.0.mlp.in.weight");
    ((float *)d.contents.master.data)[p->offset + 5] = -65520;
    EXPECT_ERROR(model_dir_save(path_of("gpt2_f16"), &d.contents), STATUS_NUMERIC,
                 "blk.0.ffn_up.weight has the value -65520, which fp16 cannot hold");
    ((float *)d.contents.master.data)[p->offset + 5] = 65519;
    EXPECT_OK(model_dir_save(path_of("gpt2_f16"), &d.contents));
    decoder_close(&d);
}

/* ---- what the reader refuses ---- */

static void expect_damage(const unsigned char *bytes, size_t n, size_t at, uint64_t value, size_t size,
                          const char *message)
{
    struct gguf_file f;
    unsigned char *copy = malloc(n + 1);
    EXPECT(copy != NULL, "no memory");
    memcpy(copy, bytes, n);
    for (size_t i = 0; i < size; i++) {
        copy[at + i] = (unsigned char)(value >> (8 * i));
    }
    EXPECT_ERROR(gguf_file_parse(&f, copy, n, "m.gguf"), STATUS_DATA, message);
    free(copy);
}

static void test_refused(void)
{
    struct gguf_file f;
    struct file_map map;
    EXPECT_OK(file_map_open(&map, path_of("gpt2_q8/model.gguf")));
    struct header h = {.map = map};
    header_open(&h, path_of("gpt2_q8/model.gguf"), gpt2_pairs);
    size_t last = h.span.at - 8 - 4; /* the type of the last tensor, then its place */
    expect_damage(map.data, map.n, 4, 1, 4, "version 1 of GGUF; kiln reads 2 and 3");
    expect_damage(map.data, map.n, 8, 1U << 20, 8, "says that it has 1048576 tensors");
    expect_damage(map.data, map.n, 8, 41, 8, "cut short, damaged");
    expect_damage(map.data, map.n, 24, UINT64_MAX, 8, "a key");
    expect_damage(map.data, map.n, last + 4, 1, 8, "the place of a tensor");
    expect_damage(map.data, map.n, last + 4, 0, 8, "overlaps the one before it");
    expect_damage(map.data, map.n, last + 4, 1U << 30, 8, "ends behind the end of the file");
    for (size_t n = 0; n < map.n; n += n < h.span.at ? 7 : 997) {
        EXPECT(failed(gguf_file_parse(&f, map.data, n, "m.gguf")), "%zu bytes of it", n);
    }
    unsigned char *copy = malloc(map.n + 1);
    EXPECT(copy != NULL, "no memory");
    memcpy(copy, map.data, map.n);
    bytes_store_u32(copy + last, 12); /* Q4_K */
    EXPECT_OK(gguf_file_parse(&f, copy, map.n, "m.gguf"));
    EXPECT(f.tensors[f.n - 1].unreadable != NULL, "a type that kiln does not read");
    gguf_file_close(&f);
    free(copy);
    file_map_close(&h.map);
    file_map_close(&map);
}

int main(void)
{
    cases_open(KILN_SOURCE_DIR "/tests/golden/decoders.safetensors");
    unpack("gpt2");
    unpack("gpt2_exact");
    unpack("bloom");
    unpack("llama");
    unpack("mistral");
    unpack("qwen2");
    unpack("smollm3");
    unpack("qwen3");
    unpack("olmo2");
    unpack("pythia");
    unpack("neox");
    test_llamas();
    test_pythia();
    test_normed();
    test_gpt2();
    test_bloom();
    test_configurations();
    test_tokenizers();
    test_other_types();
    test_refused();
    cases_close();
    return 0;
}
