/* Models in the forms of other programs: the names and shapes that PyTorch's scripts know, weights that are
 * read back bit by bit, a changed byte that is named, and directories of one form that another does not
 * replace. */
#include "test.h"

#include "core/log.h"
#include "io/tensor_file.h"
#include "model/bert/bert_family.h"
#include "model/checkpoint.h"
#include "text/wordpiece.h"
#include "bert_params.h"

#include <unistd.h>

struct fixture {
    struct bert_config config;
    struct tokenizer tokenizer;
    struct param_table params;
    struct model_dir_contents contents;
    char directory[128], place[160];
};

/* A model of one layer whose weights all differ. */
static void model_init(struct fixture *f, int64_t vocab_size, enum model_task task)
{
    param_table_fini(&f->params);
    free(f->contents.master.data);
    f->params = (struct param_table){0};
    f->config.vocab_size = vocab_size;
    EXPECT_OK(bert_declare(&f->params, &f->config, task));
    float *flat = calloc((size_t)f->params.n_elements, sizeof *flat);
    EXPECT(flat != NULL, "memory");
    tensor master = tensor_1d(flat, DTYPE_F32, f->params.n_elements);
    param_table_initialize(master, &f->params, 3);
    f->contents = (struct model_dir_contents){.family = &bert_family,
                                              .task = task,
                                              .params = &f->params,
                                              .master = master,
                                              .config = &f->config,
                                              .tokenizer = &f->tokenizer};
}

static void fixture_init(struct fixture *f)
{
    static const char pieces[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n";
    const char *parent = getenv("TMPDIR");
    *f = (struct fixture){.config = {.hidden_size = 8,
                                     .num_hidden_layers = 1,
                                     .num_attention_heads = 2,
                                     .intermediate_size = 12,
                                     .max_position_embeddings = 10,
                                     .type_vocab_size = 2,
                                     .initializer_range = 0.02,
                                     .layer_norm_eps = 1e-12,
                                     .labels.n = 2}};
    EXPECT_OK(wordpiece_tokenizer_init(&f->tokenizer, pieces, sizeof pieces - 1, "the test's", true));
    snprintf(f->directory, sizeof f->directory, "%s/kiln_forms_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(f->directory) != NULL, "%s", f->directory);
    snprintf(f->place, sizeof f->place, "%s/model", f->directory);
}

static const char *written_path(const struct fixture *f)
{
    static char path[MODEL_DIR_PATH_BYTES];
    EXPECT_OK(model_dir_written_path(path, f->place, f->contents.form));
    return path;
}

/* NVIDIA's modeling.py, BertForPreTraining with one layer, and the shapes with a vocabulary of 8. */
static void test_script_names(struct fixture *f)
{
    static const struct {
        const char *name;
        int64_t dims[2];
    } wanted[] = {
        {"bert.embeddings.word_embeddings.weight", {8, 8}},
        {"bert.embeddings.position_embeddings.weight", {10, 8}},
        {"bert.embeddings.token_type_embeddings.weight", {2, 8}},
        {"bert.embeddings.LayerNorm.weight", {8}},
        {"bert.embeddings.LayerNorm.bias", {8}},
        {"bert.encoder.layer.0.attention.self.query.weight", {8, 8}},
        {"bert.encoder.layer.0.attention.self.query.bias", {8}},
        {"bert.encoder.layer.0.attention.self.key.weight", {8, 8}},
        {"bert.encoder.layer.0.attention.self.key.bias", {8}},
        {"bert.encoder.layer.0.attention.self.value.weight", {8, 8}},
        {"bert.encoder.layer.0.attention.self.value.bias", {8}},
        {"bert.encoder.layer.0.attention.output.dense.weight", {8, 8}},
        {"bert.encoder.layer.0.attention.output.dense.bias", {8}},
        {"bert.encoder.layer.0.attention.output.LayerNorm.weight", {8}},
        {"bert.encoder.layer.0.attention.output.LayerNorm.bias", {8}},
        {"bert.encoder.layer.0.intermediate.dense_act.weight", {12, 8}},
        {"bert.encoder.layer.0.intermediate.dense_act.bias", {12}},
        {"bert.encoder.layer.0.output.dense.weight", {8, 12}},
        {"bert.encoder.layer.0.output.dense.bias", {8}},
        {"bert.encoder.layer.0.output.LayerNorm.weight", {8}},
        {"bert.encoder.layer.0.output.LayerNorm.bias", {8}},
        {"bert.pooler.dense_act.weight", {8, 8}},
        {"bert.pooler.dense_act.bias", {8}},
        {"cls.predictions.bias", {8}},
        {"cls.predictions.transform.dense_act.weight", {8, 8}},
        {"cls.predictions.transform.dense_act.bias", {8}},
        {"cls.predictions.transform.LayerNorm.weight", {8}},
        {"cls.predictions.transform.LayerNorm.bias", {8}},
        {"cls.predictions.decoder.weight", {8, 8}},
        {"cls.seq_relationship.weight", {2, 8}},
        {"cls.seq_relationship.bias", {2}},
    };
    enum { N = sizeof wanted / sizeof wanted[0] };
    struct tensor_file file;
    model_init(f, 6, MODEL_TASK_PRETRAINING);
    f->contents.form = (struct model_dir_form){.kind = MODEL_DIR_SCRIPT, .step = 20};
    EXPECT_OK(model_dir_save(f->place, &f->contents));
    EXPECT_OK(tensor_file_open(&file, written_path(f)));
    EXPECT(strstr(written_path(f), "/ckpt_20.pt") != NULL && file.n == N, "%d tensors", file.n);
    for (int i = 0; i < N; i++) {
        char name[128];
        snprintf(name, sizeof name, "model.%s", wanted[i].name);
        const struct stored_tensor *t = stored_tensor_find(file.tensors, file.n, name);
        EXPECT(t != NULL && t->n_dims == 1 + (wanted[i].dims[1] > 0) && t->dims[0] == wanted[i].dims[0] &&
                   (t->n_dims == 1 || t->dims[1] == wanted[i].dims[1]),
               "%s", name);
    }
    tensor_file_close(&file);
}

/* The number of rows that another reader of the directory sees. */
static int64_t rows_read(const struct fixture *f)
{
    struct model_dir m;
    EXPECT_OK(model_dir_open(&m, written_path(f)));
    int64_t rows = ((const struct bert_config *)m.config)->vocab_size;
    model_dir_close(&m);
    return rows;
}

/* A vocabulary of as many rows as pieces comes back so; one with more keeps them, rounded up. */
static void test_script_rows(struct fixture *f)
{
    static const int64_t rows[][2] = {{6, 6}, {8, 8}, {11, 16}};
    for (int i = 0; i < 3; i++) {
        model_init(f, rows[i][0], MODEL_TASK_MASKED_LM);
        f->contents.form = (struct model_dir_form){.kind = MODEL_DIR_SCRIPT, .step = 20};
        EXPECT_OK(model_dir_save(f->place, &f->contents));
        EXPECT_OK(model_dir_verify(f->place, &f->contents));
        EXPECT(rows_read(f) == rows[i][1], "%lld rows of %lld", (long long)rows_read(f),
               (long long)rows[i][0]);
    }
    EXPECT_OK(file_remove_tree(f->place));
}

/* Flips a bit of an element in the file of the weights. */
static void damage(const char *path, float value)
{
    struct file_map map;
    EXPECT_OK(file_map_open(&map, path));
    size_t at = 0;
    while (at + sizeof value <= map.n && memcmp(map.data + at, &value, sizeof value) != 0) {
        at++;
    }
    EXPECT(at + sizeof value <= map.n, "%g is not in %s", value, path);
    int changed = map.data[at] ^ 1;
    file_map_close(&map);
    FILE *file = fopen(path, "r+b");
    EXPECT(file != NULL && fseek(file, (long)at, SEEK_SET) == 0 && fputc(changed, file) == changed &&
               fclose(file) == 0,
           "%s", path);
}

static void test_verify(struct fixture *f)
{
    static const enum model_task tasks[] = {MODEL_TASK_PRETRAINING,
                                            MODEL_TASK_MASKED_LM,
                                            MODEL_TASK_QUESTION_ANSWERING,
                                            MODEL_TASK_ENCODER,
                                            MODEL_TASK_SEQUENCE_CLASSIFICATION,
                                            MODEL_TASK_TOKEN_CLASSIFICATION};
    static const char name[] = "bert.encoder.layer.0.intermediate.dense.weight";
    for (int kind = MODEL_DIR_HUGGING_FACE; kind <= MODEL_DIR_SCRIPT; kind++) {
        for (int i = 0; i < 12; i++) {
            bool is_pre = i >= 6;
            char path[MODEL_DIR_PATH_BYTES];
            f->config.layer_norm_large_model = is_pre;
            model_init(f, 6, tasks[i % 6]);
            f->contents.form.kind = (enum model_dir_kind)kind;
            EXPECT_OK(model_dir_save(f->place, &f->contents));
            EXPECT_OK(model_dir_verify(f->place, &f->contents));
            tensor t = param_view(param_table_find(&f->params, name), f->contents.master);
            EXPECT_OK(checkpoint_path(path, "%s%s", written_path(f),
                                      kind == MODEL_DIR_HUGGING_FACE ? "/model.safetensors" : ""));
            damage(path, ((const float *)t.data)[5]);
            EXPECT_ERROR(model_dir_verify(f->place, &f->contents), STATUS_DATA, "the CRC-32");
            EXPECT(truncate(path, 100) == 0, "%s", path);
            EXPECT(model_dir_verify(f->place, &f->contents).code == STATUS_DATA, "form %d, cut", kind);
        }
        EXPECT_OK(file_remove_tree(f->place));
    }
    f->config.layer_norm_large_model = false;
}

static void test_replacing(struct fixture *f)
{
    static const char *const errors[] = {"which is not part of a model: ", "a model in PyTorch's form"};
    model_init(f, 6, MODEL_TASK_ENCODER);
    for (int old = MODEL_DIR_HUGGING_FACE; old <= MODEL_DIR_SCRIPT; old++) {
        f->contents.form = (struct model_dir_form){.kind = (enum model_dir_kind)old, .step = 7};
        EXPECT_OK(model_dir_save(f->place, &f->contents));
        EXPECT_OK(model_dir_save(f->place, &f->contents));
        for (int new = MODEL_DIR_HUGGING_FACE; new <= MODEL_DIR_SCRIPT; new ++) {
            f->contents.form = (struct model_dir_form){.kind = (enum model_dir_kind) new, .step = 8};
            if (new != old || new == MODEL_DIR_SCRIPT) { /* a checkpoint of another step is another model */
                EXPECT_ERROR(model_dir_save(f->place, &f->contents), STATUS_USAGE, errors[new]);
            }
        }
        EXPECT_OK(file_remove_tree(f->place));
    }
}

int main(void)
{
    struct fixture f;
    fixture_init(&f);
    log_set_level(LOG_QUIET);
    test_script_names(&f);
    test_script_rows(&f);
    test_verify(&f);
    test_replacing(&f);
    EXPECT_OK(file_remove_tree(f.directory));
    free(f.contents.master.data);
    param_table_fini(&f.params);
    tokenizer_fini(&f.tokenizer);
    return 0;
}
