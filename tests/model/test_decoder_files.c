/* Decoders in the files of Megatron-DeepSpeed, as those programs write them
 * (tests/golden/make_decoder_files.py): kiln reads the weights of Hugging Face's directory out of each,
 * writes the same bytes, and names what is missing or damaged. */
#include "decoder_case.h"

#include "core/bytes.h"
#include "core/log.h"
#include "io/torch_file.h"
#include "io/torch_writer.h"
#include "model/megatron_names.h"

#include <math.h>

/* Both have the same weights, bit by bit, but for rows that are no words; `other` names a parameter that
 * differs by `by`, or is NULL. */
static void expect_same(const struct decoder *a, const struct decoder *b, const char *other, float by)
{
    EXPECT(a->params.n == b->params.n, "%d parameters, not %d", b->params.n, a->params.n);
    for (int i = 0; i < a->params.n; i++) {
        const struct param *p = &a->params.params[i], *q = param_table_find(&b->params, p->name);
        EXPECT(q != NULL, "there is no %s", p->name);
        tensor x = param_view(p, a->contents.master), y = param_view(q, b->contents.master);
        int64_t n = tensor_count(x) < tensor_count(y) ? tensor_count(x) : tensor_count(y);
        float wanted = other != NULL && strcmp(p->name, other) == 0 ? by : 0;
        for (int64_t k = 0; k < n; k++) {
            float u = ((const float *)x.data)[k], v = ((const float *)y.data)[k];
            EXPECT(u + wanted == v, "%s, element %lld: %g, not %g", p->name, (long long)k, (double)v,
                   (double)u);
        }
    }
}

static void expect_model(const char *reference, const char *name, const char *other, float by)
{
    struct decoder a, b;
    decoder_open(&a, path_of(reference), false);
    decoder_open(&b, path_of(name), false);
    expect_same(&a, &b, other, by);
    decoder_close(&a);
    decoder_close(&b);
}

static void expect_refused(const char *name, const char *message)
{
    struct model_dir m;
    EXPECT_ERROR(model_dir_open(&m, path_of(name)), STATUS_DATA, message);
}

static void save(const char *name, struct model_dir_form form, const char *saved)
{
    struct decoder d;
    decoder_open(&d, path_of(name), model_dir_form_drops_rows(form));
    d.contents.form = form;
    EXPECT_OK(model_dir_save(path_of(saved), &d.contents));
    EXPECT_OK(model_dir_verify(path_of(saved), &d.contents));
    decoder_close(&d);
}

/* ---- Megatron-DeepSpeed ---- */

/* Every tensor of a file that kiln wrote is, as fp32, that of the golden one. */
static void expect_same_layer(const char *wanted, const char *written)
{
    struct torch_file a, b;
    float x[8192], y[8192];
    EXPECT_OK(torch_file_open(&a, path_of(wanted)));
    EXPECT_OK(torch_file_open(&b, path_of(written)));
    EXPECT(a.n == b.n && a.n > 0, "%s has %d tensors", written, b.n);
    for (int i = 0; i < a.n; i++) {
        const struct stored_tensor *t = stored_tensor_find(b.tensors, b.n, a.tensors[i].name);
        EXPECT(t != NULL, "%s has no %s", written, a.tensors[i].name);
        int64_t n = (int64_t)(t->bytes / sizeof(float));
        EXPECT(t->n_dims == a.tensors[i].n_dims && n <= 8192 &&
                   memcmp(t->dims, a.tensors[i].dims, sizeof t->dims) == 0,
               "the shape of %s", t->name);
        EXPECT_OK(stored_tensor_read_elements(&a.tensors[i], 0, tensor_1d(x, DTYPE_F32, n)));
        EXPECT_OK(stored_tensor_read_elements(t, 0, tensor_1d(y, DTYPE_F32, n)));
        EXPECT(memcmp(x, y, (size_t)n * sizeof *x) == 0, "%s of %s", t->name, written);
    }
    torch_file_close(&a);
    torch_file_close(&b);
}

static const struct pickle_node *child(const struct pickle_node *dict, const char *key)
{
    const struct pickle_node *node = pickle_find(dict, key);
    EXPECT(node != NULL, "there is no \"%s\"", key);
    return node;
}

/* The shape of a parameter as "param_shapes" of a rank has it: dims[0], and 0 if it has none. */
static int64_t rows_in(const struct pickle_node *states, const char *name)
{
    const struct pickle_node *size = pickle_find(pickle_item(child(states, "param_shapes"), 0), name);
    return size == NULL ? 0 : pickle_item(size, 0)->integer;
}

/* What the loaders of DeepSpeed and Megatron look for in the file of a rank, of
 * a model of 262 pieces. */
static void expect_states(const char *saved, int64_t n, int64_t stages, int64_t k)
{
    static const char *const keys[] = {"module",
                                       "buffer_names",
                                       "optimizer",
                                       "lr_scheduler",
                                       "dp_world_size",
                                       "skipped_steps",
                                       "global_samples",
                                       "ds_config",
                                       "ds_version",
                                       "tokens",
                                       "sparse_tensor_module_names"};
    char name[160];
    struct torch_file f;
    snprintf(name, sizeof name, "%s/global_step7/mp_rank_%02lld_model_states.pt", saved, (long long)k);
    EXPECT_OK(torch_file_open(&f, path_of(name)));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        (void)child(f.root, keys[i]);
    }
    const struct pickle_node *args = child(f.root, "args");
    EXPECT(args->kind == PICKLE_OBJECT && args->object.state != NULL, "args are no Namespace");
    args = args->object.state;
    EXPECT(child(f.root, "iteration")->integer == 7 && child(f.root, "global_steps")->integer == 7 &&
               child(f.root, "mp_world_size")->integer == n * stages &&
               child(f.root, "checkpoint_version")->real == 3,
           "the state of %s", name);
    int64_t words = (262 + 128 * n - 1) / (128 * n) * (128 * n);
    EXPECT(child(args, "num_layers")->integer == 2 && child(args, "hidden_size")->integer == 16 &&
               child(args, "num_attention_heads")->integer == 4 &&
               child(args, "padded_vocab_size")->integer == words &&
               child(args, "tensor_model_parallel_size")->integer == n &&
               child(args, "pipeline_model_parallel_size")->integer == stages,
           "args of %s", name);
    bool is_first = k / n == 0, is_last = k / n == stages - 1;
    EXPECT(rows_in(f.root, "tied_modules.embed.word_embeddings.weight") ==
                   (is_first || is_last ? words / n : 0) &&
               rows_in(f.root, "3.input_layernorm.weight") == (is_first ? 16 : 0) &&
               rows_in(f.root, "4.mlp.dense_h_to_4h.weight") == (is_last ? 64 / n : 0) &&
               rows_in(f.root, "6.bias") == (is_last ? 16 : 0),
           "param_shapes of %s", name);
    torch_file_close(&f);
}

/* As many stages as there are, each with its ranks, and none more. */
static void test_stages(const char *name)
{
    for (int64_t n = 1; n <= 4; n *= 2) {
        for (int64_t stages = 1; stages <= 2; stages++) {
            char saved[64], more[128];
            snprintf(saved, sizeof saved, "%s_saved_tp%lld_pp%lld", name, (long long)n, (long long)stages);
            save(name,
                 (struct model_dir_form){
                     .kind = MODEL_DIR_MEGATRON, .step = 7, .n_ranks = n, .n_stages = stages},
                 saved);
            expect_model(name, saved, NULL, 0);
            for (int64_t k = 0; k < n * stages; k++) {
                expect_states(saved, n, stages, k);
            }
            snprintf(more, sizeof more, "%s/global_step7/mp_rank_%02lld_model_states.pt", saved,
                     (long long)(n * stages));
            EXPECT(!file_exists(path_of(more)), "%s", more);
        }
    }
}

/* Whatever the ranks, the weights come back; with those of the golden folder its files do too. */
static void test_ranks(const char *name, const char *golden_case, int64_t golden_ranks)
{
    static const int modules[] = {1, 3, 4, 6};
    for (int64_t n = 1; n <= 4; n *= 2) {
        char saved[64];
        snprintf(saved, sizeof saved, "%s_saved_tp%lld", name, (long long)n);
        save(name, (struct model_dir_form){.kind = MODEL_DIR_MEGATRON, .step = 7, .n_ranks = n}, saved);
        expect_model(name, saved, NULL, 0);
        for (int64_t rank = 0; n == golden_ranks && rank < n; rank++) {
            for (int k = 0; k < 4; k++) {
                char wanted[128], written[128], file[64];
                snprintf(file, sizeof file, "global_step7/layer_%02d-model_%02d-model_states.pt", modules[k],
                         (int)rank);
                snprintf(wanted, sizeof wanted, "%s/%s", golden_case, file);
                snprintf(written, sizeof written, "%s/%s", saved, file);
                if (modules[k] != 4 || rank != 1 || strcmp(name, "bloom") == 0) { /* that drifted */
                    expect_same_layer(wanted, written);
                }
            }
        }
    }
}

enum damage { EMPTY, FLAT, NOT_A_NUMBER, OTHER_VALUES };

/* Writes a file of layers again, with one tensor that is damaged so. */
static void damage(const char *file, const char *name, enum damage how)
{
    struct torch_file f;
    struct torch_writer w;
    struct torch_item items[64];
    float *values = malloc((1 << 20) * sizeof *values), *next = values;
    EXPECT_OK(torch_file_open(&f, path_of(file)));
    EXPECT(f.n <= 64 && values != NULL && stored_tensor_find(f.tensors, f.n, name) != NULL, "%s", file);
    for (int i = 0; i < f.n; i++) {
        const struct stored_tensor *t = &f.tensors[i];
        int64_t n = (int64_t)(t->bytes / dtype_bytes(t->dtype));
        bool is_it = strcmp(t->name, name) == 0;
        tensor value = t->n_dims == 1 ? tensor_1d(next, DTYPE_F32, n)
                                      : tensor_2d(next, DTYPE_F32, t->dims[0], t->dims[1]);
        EXPECT_OK(stored_tensor_read_elements(t, 0, tensor_1d(next, DTYPE_F32, n)));
        for (int64_t k = 0; k < n && is_it; k++) {
            next[k] = how == OTHER_VALUES ? -next[k] : how == NOT_A_NUMBER && k == n - 1 ? NAN : next[k];
        }
        value = is_it && how == FLAT ? tensor_1d(next, DTYPE_F32, n) : value;
        value.dims[0] = is_it && how == EMPTY ? 0 : value.dims[0];
        items[i] = (struct torch_item){t->name, value};
        next += n;
    }
    torch_writer_init(&w);
    torch_writer_put_dict(&w, items, f.n);
    EXPECT_OK(torch_writer_commit(&w, path_of(file)));
    torch_file_close(&f);
    free(values);
}

/* Files of the right names and sizes whose ranks do not belong together. */
static void test_ranks_that_differ(void)
{
    static const char one[] = "cut/global_step7/layer_04-model_01-model_states.pt";
    static const char norms[] = "cut/global_step7/layer_04-model_00-model_states.pt";
    const struct model_dir_form form = {.kind = MODEL_DIR_MEGATRON, .n_ranks = 2, .step = 7};
    struct decoder d;
    struct model_dir m;
    save("gpt2", form, "cut");
    decoder_open(&d, path_of("cut"), false);
    decoder_close(&d);
    damage(one, "input_layernorm.bias", NOT_A_NUMBER);
    EXPECT_ERROR(model_dir_open(&m, path_of("cut")), STATUS_NUMERIC,
                 "the copies that ranks 0 and 1 have of layers.1.input_layernorm.bias are not finite");
    save("gpt2", form, "cut");
    damage(one, "post_attention_layernorm.weight", OTHER_VALUES);
    expect_refused("cut", "layers.1.post_attention_layernorm.weight differ by up to");
    damage(norms, "attention.dense.weight", EMPTY);
    damage(one, "attention.dense.weight", EMPTY);
    expect_refused("cut", "attention.dense.weight of module 04 has no elements on rank 0");
    save("gpt2", form, "cut");
    damage(norms, "attention.dense.weight", FLAT);
    damage(one, "attention.dense.weight", FLAT);
    expect_refused(
        "cut", "attention.dense.weight of module 04 has 1 dims of float32 on rank 0, but must be a matrix");
    save("gpt2", form, "cut");
    EXPECT(unlink(path_of(one)) == 0 && link(path_of(norms), path_of(one)) == 0, "%s", one);
    expect_refused("cut",
                   "ranks 0 and 1 have the same slice of attention.query_key_value.weight of module 04");
}

static void test_megatron_damage(void)
{
    struct decoder d;
    static const char layer[] = "bloom_tp4/global_step7/layer_04-model_02-model_states.pt";
    static const char last[] = "bloom_tp4/global_step7/layer_06-model_00-model_states.pt";
    EXPECT(unlink(path_of(layer)) == 0, "%s", layer);
    expect_refused("bloom_tp4", "is of 2 layers and 4 ranks of tensor parallelism, but has no "
                                "layer_04-model_02-model_states.pt");
    unpack("bloom_tp4");
    EXPECT(unlink(path_of(last)) == 0, "%s", last);
    expect_refused("bloom_tp4", "but has no layer_06-model_00-model_states.pt");
    unpack("bloom_tp4");
    EXPECT(rename(path_of(last), path_of("bloom_tp4/global_step7/layer_07-model_00-model_states.pt")) == 0,
           "%s", last);
    expect_refused("bloom_tp4", "has layer_07, but config.json says 2 layers, of which the last file is "
                                "layer_06");
    EXPECT_OK(file_remove_tree(path_of("bloom_tp4")));
    unpack("bloom_tp4");
    EXPECT(rename(path_of(last), path_of(layer)) == 0, "%s", layer);
    expect_refused("bloom_tp4", "layer_04-model_02-model_states.pt has no input_layernorm.weight, which "
                                "another rank has");
    decoder_open(&d, path_of("gpt2"), false);
    d.contents.form = (struct model_dir_form){.kind = MODEL_DIR_MEGATRON, .n_ranks = 3};
    EXPECT_ERROR(model_dir_save(path_of("x"), &d.contents), STATUS_USAGE,
                 "--tp 3 does not divide the 4 heads");
    d.contents.form = (struct model_dir_form){.kind = MODEL_DIR_MEGATRON, .n_stages = 3};
    EXPECT_ERROR(model_dir_save(path_of("x"), &d.contents), STATUS_USAGE,
                 "--pp 3 does not divide the 2 layers");
    decoder_close(&d);
}

static void test_names(void)
{
    const char *rest;
    char name[PARAM_NAME_BYTES];
    EXPECT(megatron_names_module("tied_modules.embed.word_embeddings.weight", &rest) == 1 &&
               strcmp(rest, "word_embeddings.weight") == 0,
           "%s", rest);
    EXPECT(megatron_names_module("44.weight", &rest) == 44 && strcmp(rest, "weight") == 0, "%s", rest);
    EXPECT(megatron_names_module("transformer.h.0.ln_1.weight", &rest) == 0, "%s", rest);
    EXPECT(megatron_names_put(name, 42, "x", 40) && strcmp(name, "layers.39.x") == 0, "%s", name);
    EXPECT(megatron_names_put(name, 44, "bias", 40) && strcmp(name, "final.bias") == 0, "%s", name);
    EXPECT(!megatron_names_put(name, 43, "x", 40) && !megatron_names_put(name, 2, "x", 40), "no weights");
    EXPECT(megatron_names_split("layers.39.x", &rest, 40) == 42 && strcmp(rest, "x") == 0, "%s", rest);
}

static void test_megatron(void)
{
    test_names();
    /* rank 1 has a norm that is 0.25 larger: kiln reads the mean */
    expect_model("gpt2", "gpt2_tp2", "transformer.h.1.ln_1.weight", 0.125F);
    expect_model("gpt2", "gpt2_tp2/global_step7", "transformer.h.1.ln_1.weight", 0.125F);
    expect_model("bloom", "bloom_tp4", NULL, 0);
    test_ranks("gpt2", "gpt2_tp2", 2);
    test_ranks("bloom", "bloom_tp4", 4);
    test_stages("gpt2");
    test_stages("bloom");
    test_megatron_damage();
    test_ranks_that_differ();
}

/* ---- universal checkpoints, and the parts of twelve ranks ---- */

static void test_universal(void)
{
    expect_model("gpt2", "universal", NULL, 0);
    EXPECT(rename(path_of("universal/zero/4.attention.dense.bias/exp_avg.pt"), path_of("universal/kept")) ==
               0,
           "exp_avg.pt");
    expect_refused("universal", "zero/4.attention.dense.bias/exp_avg.pt is missing");
    EXPECT(rename(path_of("universal/zero/3.input_layernorm.bias/fp32.pt"),
                  path_of("universal/zero/4.attention.dense.bias/exp_avg.pt")) == 0,
           "fp32.pt");
    expect_refused("universal", "zero/3.input_layernorm.bias/fp32.pt is missing");
    unpack("universal");
    EXPECT(rename(path_of("universal/zero/3.mlp.dense_h_to_4h.bias/fp32.pt"),
                  path_of("universal/zero/4.attention.dense.bias/exp_avg_sq.pt")) == 0,
           "fp32.pt");
    EXPECT_OK(file_remove_tree(path_of("universal/zero/3.mlp.dense_h_to_4h.bias")));
    expect_refused("universal", "zero/4.attention.dense.bias: exp_avg_sq.pt has another shape than fp32.pt");
}

/* The tenth rank and those after it hold what is behind the parts of the first ten. */
static void test_shards(void)
{
    static const char rank_10[] = "shards/global_step7/bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt";
    static const char rank_2[] = "shards/global_step7/bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt";
    expect_model("gpt2", "shards", NULL, 0);
    EXPECT(unlink(path_of(rank_10)) == 0, "%s", rank_10);
    expect_refused("shards", "no bf16_zero_pp_rank_10_mp_rank_00_optim_states.pt");
    unpack("shards");
    EXPECT(unlink(path_of(rank_2)) == 0, "%s", rank_2);
    expect_refused("shards", "no bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt");
}

int main(void)
{
    static const char *const cases[] = {"gpt2", "bloom", "gpt2_tp2", "bloom_tp4", "universal", "shards"};
    log_set_level(LOG_QUIET);
    cases_open(KILN_SOURCE_DIR "/tests/golden/decoder_files.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unpack(cases[i]);
    }
    test_megatron();
    test_universal();
    test_shards();
    cases_close();
    return 0;
}
