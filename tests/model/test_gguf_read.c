/* GGUF files that another program's package wrote, as llama.cpp's converter does
 * (tests/golden/make_gguf.py): their configuration, weights and tokenizer are those of the directory that
 * each was made of; and what is refused. */
#include "decoder_case.h"

#include "io/gguf_file.h"
#include "io/gguf_writer.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer_open.h"

static const char *const cases[] = {"llama", "qwen2", "qwen3", "olmo2", "smollm3", "gpt_neox", "phi3"};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static const char *file_of(const char *name)
{
    static char paths[2][PATH];
    static int next;
    char *path = paths[next++ % 2];
    snprintf(path, PATH, "%s/model.gguf", path_of(name));
    return path;
}

/* ---- the same as the directory ---- */

static void test_configuration(const char *name)
{
    const struct model_family *family, *of_file;
    void *config, *of_keys;
    json_t *root, *keys;
    char path[FILE_PATH_BYTES];
    EXPECT_OK(file_make_path(path, "%s/hf/config.json", path_of(name)));
    EXPECT_OK(model_family_read_config(&family, &config, &root, path));
    EXPECT_OK(model_family_read_config(&of_file, &of_keys, &keys, file_of(name)));
    EXPECT(family == of_file, "%s is %s", name, of_file->name);
    EXPECT_OK(family->same_architecture(config, of_keys));
    EXPECT(family->sizes(config).vocab_size == family->sizes(of_keys).vocab_size &&
               family->sizes(config).max_length == family->sizes(of_keys).max_length,
           "rows of words, or positions, of %s", name);
    free(config);
    free(of_keys);
    json_decref(root);
    json_decref(keys);
}

/* Every weight is the file's, decoded, its rows in kiln's order. */
static void test_weights(const char *name)
{
    struct decoder d;
    decoder_open(&d, file_of(name), false);
    for (int i = 0; i < d.params.n; i++) {
        const struct param *p = &d.params.params[i];
        char key[PATH];
        snprintf(key, sizeof key, "%s:%s", name, p->name);
        const struct stored_tensor *wanted = safetensors_find(&golden, key);
        EXPECT(wanted != NULL, "there is no %s", key);
        const float *got = (const float *)d.contents.master.data + p->offset;
        EXPECT(memcmp(got, wanted->data, wanted->bytes) == 0, "%s differs", key);
    }
    decoder_close(&d);
}

/* Text with what splits, spaces, bytes and special tokens make of it. */
static const char *const texts[] = {
    "",
    "the hand and the other",
    " two  spaces,\n\nlines\r\n and\ttabs ",
    "it's WE'LL don't 1234567 3.14",
    "\xC3\xA9t\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD \xE2\x96\x81x",
    "<|im_start|>user\nthe<|im_end|> <s> </s><unk><0x41>",
    "\xFF\xFEz\xC3(",
};

static void encode(struct id_list *ids, const struct tokenizer *t, const char *text)
{
    struct tokenizer_scratch s;
    EXPECT_OK(tokenizer_scratch_init(&s, t));
    EXPECT_OK(tokenizer_encode_document(&s, ids, text, strlen(text)));
    tokenizer_scratch_fini(&s);
}

static void test_tokenizer(const char *name)
{
    struct tokenizer t, of_keys;
    int64_t max_length;
    char path[FILE_PATH_BYTES];
    EXPECT_OK(file_make_path(path, "%s/hf", path_of(name)));
    EXPECT_OK(tokenizer_open_directory(&t, &max_length, path));
    EXPECT_OK(tokenizer_open_directory(&of_keys, &max_length, file_of(name)));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct id_list wanted = {0}, got = {0};
        encode(&wanted, &t, texts[i]);
        encode(&got, &of_keys, texts[i]);
        EXPECT(wanted.n == got.n && (got.n == 0 || memcmp(wanted.ids, got.ids, got.n * sizeof *got.ids) == 0),
               "text %zu of %s", i, name);
        id_list_fini(&wanted);
        id_list_fini(&got);
    }
    bool is_chat = strcmp(name, "llama") != 0;
    EXPECT((of_keys.chat_template != NULL) == is_chat, "the template of a chat of %s", name);
    EXPECT(of_keys.special[SPECIAL_END] >= 0 && tokenizer_ends(&of_keys, of_keys.special[SPECIAL_END]),
           "its end");
    EXPECT(of_keys.frame.one.before.n == (is_chat ? 0 : 1), "the begin token of %s", name);
    tokenizer_fini(&t);
    tokenizer_fini(&of_keys);
}

/* A build without PCRE2 has no splits by expressions. */
static bool can_split(const char *name)
{
    struct tokenizer t;
    struct status s = gguf_tokenizer_open(&t, file_of(name));
    tokenizer_fini(&t);
    EXPECT(!failed(s) || s.code == STATUS_UNAVAILABLE, "%s", s.message);
    return !failed(s);
}

/* ---- what is refused ---- */

/* A copy of the file of a case with `old` in place of `new`, of equally many bytes, and its first bytes
 * alone. */
static const char *changed(const char *name, const char *old, const char *new, size_t n_bytes)
{
    struct file_map map;
    const char *path = path_of("changed.gguf");
    size_t n = strlen(old), at = 0;
    EXPECT_OK(file_map_open(&map, file_of(name)));
    char *copy = malloc(map.n);
    EXPECT(copy != NULL && n == strlen(new), "no memory, or %s is longer than %s", old, new);
    memcpy(copy, map.data, map.n);
    while (at + n < map.n && memcmp(copy + at, old, n) != 0) {
        at++;
    }
    EXPECT(at + n < map.n, "%s has no %s", name, old);
    memcpy(copy + at, new, n);
    EXPECT_OK(file_write_atomic(path, copy, n_bytes == 0 ? map.n : n_bytes));
    free(copy);
    file_map_close(&map);
    return path;
}

static void refuse(const char *name, const char *old, const char *new, const char *message)
{
    struct model_dir m;
    EXPECT_ERROR(model_dir_open(&m, changed(name, old, new, 0)), STATUS_DATA, message);
}

static void test_refused(void)
{
    struct model_dir m;
    refuse("qwen2", "qwen2.block_count", "qwen2.block_kount",
           "has no key qwen2.block_count, without which its model is not known");
    refuse("llama", "llama.vocab_size", "llama.experts_nr",
           "has the key llama.experts_nr, which kiln does not read");
    refuse("llama", "token_embd.weight", "token_embd.wait__", "holds no tensor model.embed_tokens.weight");
    refuse("llama", "tokenizer.ggml.model", "tokenizer.ggml.nodel",
           "tokenizer.ggml.model is \"\"; kiln reads gpt2");
    refuse("llama", "tokenizer.ggml.tokens", "tokenizer.ggml.tokenz", "has no list tokenizer.ggml.tokens");
    refuse("qwen2", "tokenizer.ggml.merges", "tokenizer.ggml.merge_", "has no list tokenizer.ggml.merges");
    for (size_t n = 4; n < 6000; n += 61) {
        (void)changed("qwen2", "qwen2", "qwen2", n);
        EXPECT(failed(model_dir_open(&m, path_of("changed.gguf"))), "%zu bytes of it", n);
    }
}

/* A file of one tensor of four numbers, with pairs of the caller's, who has put them in `w`. */
static struct status open_tensor(struct gguf_writer *w, const char *name, float values[4])
{
    const struct gguf_item item = {name, tensor_1d(NULL, DTYPE_F32, 4), GGUF_F32};
    struct model_dir m;
    EXPECT_OK(gguf_writer_open(w, path_of("written.gguf"), &item, 1));
    gguf_writer_put(w, tensor_1d(values, DTYPE_F32, 4));
    EXPECT_OK(gguf_writer_commit(w));
    struct status s = model_dir_open(&m, path_of("written.gguf"));
    EXPECT(failed(s), "a model of one tensor");
    return s;
}

static struct status open_written(struct gguf_writer *w)
{
    return open_tensor(w, "x", (float[4]){0});
}

static void begin(struct gguf_writer *w, const char *architecture)
{
    gguf_writer_init(w);
    gguf_put_text(w, "general.architecture", architecture);
}

static void put_llama(struct gguf_writer *w)
{
    begin(w, "llama");
    gguf_put_u32(w, "llama.context_length", 32);
    gguf_put_u32(w, "llama.embedding_length", 16);
    gguf_put_u32(w, "llama.block_count", 1);
    gguf_put_u32(w, "llama.feed_forward_length", 16);
    gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
}

static void test_refused_keys(void)
{
    struct gguf_writer w;
    begin(&w, "mamba");
    EXPECT_ERROR(open_written(&w), STATUS_DATA,
                 "general.architecture is \"mamba\", but of GGUF kiln reads only: gpt2, bloom, ");
    put_llama(&w);
    gguf_put_f32(&w, "llama.attention.head_count", 2);
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "llama.attention.head_count must be an integer, and no list");
    put_llama(&w);
    gguf_put_list(&w, "llama.attention.head_count", GGUF_VALUE_I32, 1);
    gguf_put_list_i32(&w, 2);
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "llama.attention.head_count must be an integer, and no list");
    put_llama(&w);
    gguf_put_u32(&w, "llama.attention.head_count", 4096);
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "llama.attention.head_count is 4096");
    put_llama(&w);
    gguf_put_u32(&w, "llama.attention.head_count", 2);
    gguf_put_text(&w, "llama.rope.scaling.type", "yarn");
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "\"yarn\"");
    put_llama(&w);
    gguf_put_u32(&w, "llama.attention.head_count", 2);
    gguf_put_u32(&w, "llama.attention.key_length", 8);
    gguf_put_u32(&w, "llama.attention.value_length", 4);
    EXPECT_ERROR(open_written(&w), STATUS_DATA,
                 "llama.attention.value_length is 4, but kiln has this architecture");
    begin(&w, "qwen2");
    gguf_put_u32(&w, "split.count", 3);
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "is one of 3 files of a model (split.count)");
}

/* Pairs of a head of 8: of the waves 2 pi 10,000^(i / 4) only the last is above 8,192 / 4 and so divided. */
static void test_refused_divisors(void)
{
    struct gguf_writer w;
    put_llama(&w);
    gguf_put_u32(&w, "llama.attention.head_count", 2);
    EXPECT_ERROR(open_tensor(&w, "rope_freqs.weight", (float[4]){1, 1, 5, 8}), STATUS_DATA,
                 "element 2 of rope_freqs.weight is 5, but 1 by Llama 3's scaling with the factor 8");
    put_llama(&w);
    gguf_put_u32(&w, "llama.attention.head_count", 4);
    EXPECT_ERROR(open_tensor(&w, "rope_freqs.weight", (float[4]){1, 1, 1, 1}), STATUS_DATA,
                 "rope_freqs.weight must have a number in F32 for each of 2 pairs of a head");
}

static void put_tokens(struct gguf_writer *w, const char *pre)
{
    put_llama(w);
    gguf_put_u32(w, "llama.attention.head_count", 2);
    gguf_put_text(w, GGUF_TOKENIZER_MODEL, "gpt2");
    gguf_put_text(w, GGUF_TOKENIZER_PRE, pre);
    gguf_put_list(w, GGUF_TOKENIZER_TOKENS, GGUF_VALUE_TEXT, 2);
    gguf_put_list_text(w, "a", 1);
    gguf_put_list_text(w, "a", 1);
}

static void test_refused_tokens(void)
{
    struct gguf_writer w;
    put_tokens(&w, "kimi-k9");
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "tokenizer.ggml.pre is \"kimi-k9\"; kiln reads: gpt-2, ");
    put_tokens(&w, "gpt-2");
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "token 1 of tokenizer.ggml.tokens, 'a', stands there twice");
    put_tokens(&w, "gpt-2");
    gguf_put_u32(&w, "tokenizer.ggml.bos_token_id", 2);
    EXPECT_ERROR(open_written(&w), STATUS_DATA,
                 "tokenizer.ggml.bos_token_id is 2, but the file has the tokens 0 to 1");
    put_tokens(&w, "gpt-2");
    gguf_put_list(&w, GGUF_TOKENIZER_TYPES, GGUF_VALUE_I32, 1);
    gguf_put_list_i32(&w, 1);
    EXPECT_ERROR(open_written(&w), STATUS_DATA,
                 "tokenizer.ggml.token_type must be a list of numbers, one for each");
    put_tokens(&w, "gpt-2");
    gguf_put_list(&w, GGUF_TOKENIZER_TYPES, GGUF_VALUE_I32, 2);
    gguf_put_list_i32(&w, 1);
    gguf_put_list_i32(&w, 7);
    EXPECT_ERROR(open_written(&w), STATUS_DATA, "token 1 of tokenizer.ggml.token_type is 7");
}

int main(void)
{
    cases_open(KILN_SOURCE_DIR "/tests/golden/gguf.safetensors");
    for (size_t i = 0; i < N_CASES; i++) {
        unpack(cases[i]);
        test_configuration(cases[i]);
        if (can_split(cases[i])) {
            test_weights(cases[i]);
            test_tokenizer(cases[i]);
        }
    }
    test_refused();
    test_refused_keys();
    test_refused_divisors();
    test_refused_tokens();
    cases_close();
    return 0;
}
