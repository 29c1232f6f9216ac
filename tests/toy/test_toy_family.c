/* A family that no generic room knows (toy_family.c): it is trained by the run that all families share, goes
 * on after an interruption with the same bits, and answers from what was saved. */
#include "toy_family.h"

#include "fixture_store.h"
#include "data/text_batch.h"
#include "dev/host_view.h"
#include "io/token_store.h"
#include "ops/backend.h"
#include "pass/network_files.h"
#include "task/gpt/gpt_pretrain.h"
#include "task/pretrain.h"
#include "task/step_bench.h"
#include "text/tokenizer_open.h"

#include <stdlib.h>

static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\n";

enum { FIRST_WORD = 5, N_WORDS = 6, LENGTH = 8 };

/* Words in the order of the alphabet, round and round. */
static int32_t word_after(int32_t id)
{
    return FIRST_WORD + (id - FIRST_WORD + 1) % N_WORDS;
}

static void write_store(const char *name, uint64_t vocab_hash, int n_sequences)
{
    const char *prefix = fixture_path(name);
    struct indexed_writer w;
    EXPECT_OK(indexed_writer_open(&w, prefix, FIRST_WORD + N_WORDS));
    for (int i = 0; i < n_sequences; i++) {
        int32_t ids[LENGTH] = {FIRST_WORD + i * LENGTH % N_WORDS}; /* the text goes on */
        for (int k = 1; k < LENGTH; k++) {
            ids[k] = word_after(ids[k - 1]);
        }
        indexed_writer_add(&w, ids, LENGTH);
        indexed_writer_end_document(&w);
    }
    EXPECT_OK(indexed_writer_commit(&w, NULL));
    struct token_store_info info = {.vocab_hash = vocab_hash,
                                    .vocab_size = FIRST_WORD + N_WORDS,
                                    .n_documents = n_sequences,
                                    .n_sentences = n_sequences,
                                    .n_tokens = (int64_t)n_sequences * LENGTH,
                                    .bin_crc = w.parts[INDEXED_BIN].mark.crc,
                                    .idx_crc = w.idx.crc};
    EXPECT_OK(token_store_write_info(prefix, &info, NULL));
}

static void write_inputs(void)
{
    static const char config[] = "{\"model_type\": \"toy\", \"hidden_size\": 16, \"intermediate_size\": 32, "
                                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
                                 "\"max_position_embeddings\": 16}";
    struct tokenizer t;
    fixture_write("vocab.txt", words, sizeof words - 1);
    fixture_write("config.json", config, sizeof config - 1);
    EXPECT_OK(tokenizer_open_beside(&t, fixture_path("vocab.txt")));
    write_store("train", t.hash, 32);
    write_store("heldout", t.hash, 8);
    tokenizer_fini(&t);
}

static const struct run_flag_names names = {.data = "--input_dir",
                                            .output = "--output_dir",
                                            .resume = "--resume_from_checkpoint",
                                            .batch = "--train_batch_size",
                                            .command = "pretrain"};

static struct pretrain_options options(const char *input_dir, const char *config_file, const char *output_dir)
{
    static struct pretrain_kind kind;
    static const struct gpt_pretrain_options own;
    kind = gpt_pretrain_kind(&toy_family);
    return (struct pretrain_options){
        .run =
            {
                .names = &names,
                .common.config_file = config_file,
                .common.output_dir = output_dir,
                .device = "cpu",
                .batch.max_seq_length = LENGTH,
                .batch.train_batch_size = 4,
                .batch.gradient_accumulation_steps = 2,
                .eval_steps = 30,
                .log_freq = 20,
                .max_steps = 60,
                .seed = 1,
                .learning_rate = 1e-2,
                .profile = {.steps = "0"},
                .common.disable_progress_bar = true,
                .resume_from_checkpoint = true,
            },
        .kind = &kind,
        .own = &own,
        .input_dir = input_dir,
        .optimizer = "adamw",
        .loss_norm = "global",
        .schedule = "linear",
        .steps_this_run = -1,
        .resume_step = -1,
        .eval_samples = 8,
        .update = {.max_grad_norm = 1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    };
}

static void expect_same_file(const char *a, const char *b, const char *name)
{
    char path[2][600];
    struct file_map map[2];
    const char *const directories[] = {a, b};
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/ckpt_60/%s", directories[i], name);
        EXPECT_OK(file_map_open(&map[i], path[i]));
    }
    EXPECT(map[0].n == map[1].n && memcmp(map[0].data, map[1].data, map[0].n) == 0, "%s differs from %s",
           path[0], path[1]);
    for (int i = 0; i < 2; i++) {
        file_map_close(&map[i]);
    }
}

/* The token that the saved model finds most probable behind each of `ids`. */
static void answer(int32_t *next, const char *directory, const int32_t *ids, int n)
{
    struct model_dir m;
    struct model *model;
    struct network net = {0};
    struct backend backend;
    struct batch b;
    struct load_report report;
    struct host_view view;
    EXPECT_OK(model_dir_open(&m, directory));
    EXPECT(m.family == &toy_family && m.task == MODEL_TASK_CAUSAL_LM, "a %s model", m.family->name);
    EXPECT_OK(m.family->create(&model, m.config, m.task));
    EXPECT_OK(backend_find(&backend, "cpu"));
    struct network_config config = {.model = model,
                                    .device = backend.device,
                                    .ops = backend.ops,
                                    .limits = text_batch_limits(1, n, n),
                                    .whole_logits = true};
    EXPECT_OK(network_init(&net, &config));
    EXPECT_OK(network_files_load(&net, &m, m.task, 0, NULL, &report));
    EXPECT_OK(text_batch_init(&b, config.limits));
    memcpy(text_batch_add(&b, n, n, -1, 0), ids, (size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++) {
        text_batch_masked_positions(&b)[i] = i;
        text_batch_masked_labels(&b)[i] = 0;
    }
    text_batch_take_masked(&b, n);
    batch_finish(&b, 0);
    stage_infer(&net.stage, &b);
    EXPECT_OK(host_view_open(&view, &net.x, stage_head_output(&net.stage, MODEL_WORD_LOGITS)));
    for (int i = 0; i < n; i++) {
        const float *row = (const float *)view.host.data + i * model->vocab_size;
        next[i] = 0;
        for (int32_t k = 1; k < model->n_words; k++) {
            next[i] = row[k] > row[next[i]] ? k : next[i];
        }
    }
    host_view_close(&view);
    batch_fini(&b);
    network_fini(&net);
    free(model);
    model_dir_close(&m);
}

/* `kiln plan` and `kiln bench` take it by its config.json: every token but the first is a label. */
static void expect_plan(const char *config_file)
{
    json_t *root;
    struct model *model;
    struct backend backend;
    EXPECT_OK(json_read_object(&root, config_file));
    EXPECT_OK(model_family_create(&model, root, config_file, MODEL_TASK_PRETRAINING));
    EXPECT_OK(backend_find(&backend, "cpu"));
    EXPECT(model->vocab_size == toy_family.usual_words, "%lld rows", (long long)model->vocab_size);
    struct step_bench b = {
        .config = {.net = {.model = model, .device = backend.device, .ops = &ops_plan, .learns = true},
                   .optimizer = optimizer_defaults(&optimizer_adamw)},
        .length = LENGTH,
        .n_sequences = 4};
    EXPECT_OK(step_bench_plan(&b));
    /* the products of two layers and of the head, forward and twice backward */
    double layer = 2.0 * 4 * LENGTH * 16 * (4 * 16 + 2 * 32), head = 2.0 * 4 * (LENGTH - 1) * 16 * 64;
    EXPECT(b.useful_flops > 3 * (2 * layer + head) * 0.99 && b.useful_flops < 3 * (2 * layer + head) * 1.2,
           "%g FLOPs, of products %g", b.useful_flops, 3 * (2 * layer + head));
    free(model);
    json_decref(root);
}

int main(void)
{
    char input[512], config[512], whole[512], halves[512], saved[600];
    write_inputs();
    snprintf(input, sizeof input, "%s", fixture_directory);
    snprintf(config, sizeof config, "%s", fixture_path("config.json"));
    snprintf(whole, sizeof whole, "%s", fixture_path("whole"));
    snprintf(halves, sizeof halves, "%s", fixture_path("halves"));

    expect_plan(config);
    struct pretrain_options o = options(input, config, whole);
    EXPECT_OK(pretrain_run(&o));

    /* a configuration of another family is refused by name */
    fixture_write("bert.json", "{}", 2);
    o = options(input, fixture_path("bert.json"), halves);
    EXPECT_ERROR(pretrain_run(&o), STATUS_DATA,
                 "is the configuration of a BERT model, and this run trains toy");

    o = options(input, config, halves);
    o.steps_this_run = 25;
    EXPECT_OK(pretrain_run(&o));
    o.steps_this_run = -1;
    EXPECT_OK(pretrain_run(&o));
    expect_same_file(whole, halves, "model.safetensors");

    int32_t ids[LENGTH] = {FIRST_WORD + 2}, next[LENGTH];
    for (int i = 1; i < LENGTH; i++) {
        ids[i] = word_after(ids[i - 1]);
    }
    snprintf(saved, sizeof saved, "%s/ckpt_60", halves);
    answer(next, saved, ids, LENGTH);
    for (int i = 0; i < LENGTH; i++) {
        EXPECT(next[i] == word_after(ids[i]), "after %d it expects %d", ids[i], next[i]);
    }
    fixture_remove();
    return 0;
}
