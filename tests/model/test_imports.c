/* Models as other programs leave them (tests/golden/make_imports.py: torch.save, DeepSpeed, TensorFlow):
 * every form has the same parameters to the bit, and what cannot be read is named. */
#include "captured_log.h"
#include "model/bert/bert_family.h"
#include "bert_params.h"

#include <unistd.h>

static char directory[128];

static const char *path_of(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

/* Writes the files of all cases: CASE/FILE. */
static void unpack_all(void)
{
    struct safetensors golden;
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kiln_imports_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    EXPECT_OK(safetensors_open(&golden, KILN_SOURCE_DIR "/tests/golden/imports.safetensors"));
    for (int i = 0; i < golden.n; i++) {
        const struct stored_tensor *e = &golden.entries[i];
        char folder[128];
        snprintf(folder, sizeof folder, "%.*s", (int)strcspn(e->name, "/"), e->name);
        EXPECT_OK(file_make_directories(path_of(folder)));
        EXPECT_OK(file_write_atomic(path_of(e->name), e->data, e->bytes));
    }
    safetensors_close(&golden);
}

/* The task's parameters of a model; free(flat->data).  What it lacks is a failure. */
static struct status read_given(tensor *flat, const char *path, struct model_dir_given given,
                                enum model_task task, struct load_report *report)
{
    struct model_dir m;
    struct param_table params = {0};
    *flat = (tensor){0};
    TRY(model_dir_open_given(&m, path, given));
    EXPECT_OK(bert_declare(&params, m.config, task));
    *flat = tensor_1d(calloc((size_t)params.n_elements, sizeof(float)), DTYPE_F32, params.n_elements);
    struct status s = model_dir_read_weights(&m, &params, *flat, task, 0, report);
    param_table_fini(&params);
    model_dir_close(&m);
    return s;
}

static struct status read_flat(tensor *flat, const char *path, enum model_task task)
{
    struct load_report report;
    return read_given(flat, path, (struct model_dir_given){0}, task, &report);
}

static struct status try(const char *path, enum model_task task)
{
    tensor flat;
    struct status s = read_flat(&flat, path, task);
    free(flat.data);
    return s;
}

static void expect_same(tensor wanted, const char *name, enum model_task task)
{
    tensor flat;
    EXPECT_OK(read_flat(&flat, path_of(name), task));
    EXPECT(flat.dims[0] == wanted.dims[0] &&
               memcmp(flat.data, wanted.data, (size_t)flat.dims[0] * sizeof(float)) == 0,
           "%s has other parameters", name);
    free(flat.data);
}

static void test_same_bits(void)
{
    static const struct {
        enum model_task task;
        const char *safetensors;
        const char *others[8];
    } models[] = {
        {MODEL_TASK_PRETRAINING,
         "pretraining_safetensors",
         {"pretraining_bin", "pretraining_bin/pytorch_model.bin", "pretraining_ckpt/ckpt_20.pt",
          "pretraining_states", "pretraining_states/mp_rank_00_model_states.pt", "pretraining_tf",
          "pretraining_tf/bert_model.ckpt", "pretraining_tf/bert_model.ckpt.index"}},
        {MODEL_TASK_QUESTION_ANSWERING,
         "qa_safetensors",
         {"qa_bin_shards", "qa_ckpt/model.ckpt-3.pt", "qa_tf/model.ckpt-8",
          "qa_safetensors/model.safetensors"}},
    };
    for (int i = 0; i < 2; i++) {
        tensor wanted;
        EXPECT_OK(read_flat(&wanted, path_of(models[i].safetensors), models[i].task));
        for (int k = 0; k < 8 && models[i].others[k] != NULL; k++) {
            expect_same(wanted, models[i].others[k], models[i].task);
        }
        free(wanted.data);
    }
}

/* Beside the file, or in the folder where the user is. */
static void test_current_directory(void)
{
    EXPECT(chdir(path_of("qa_ckpt")) == 0, "chdir");
    EXPECT_OK(try("model.ckpt-3.pt", MODEL_TASK_QUESTION_ANSWERING));
    EXPECT(chdir("/") == 0, "chdir");
}

static void test_report(void)
{
    static const struct {
        const char *path;
        int n_states;
    } files[] = {
        {"pretraining_ckpt/ckpt_20.pt", 2}, /* exp_avg, master params */
        {"pretraining_states", 1},
        /* the step, and 4 of each of 2 queries and 6 layer norms */
        {"pretraining_tf", 1 + 4 * 8},
    };
    for (int i = 0; i < 3; i++) {
        struct load_report r;
        tensor flat;
        EXPECT_OK(read_given(&flat, path_of(files[i].path), (struct model_dir_given){0},
                             MODEL_TASK_PRETRAINING, &r));
        EXPECT(r.n[LOAD_IGNORED][NAMES_STATE] == files[i].n_states && r.n[LOAD_IGNORED][NAMES_OTHER] == 0,
               "%s: %d of a state, %d others", files[i].path, r.n[LOAD_IGNORED][NAMES_STATE],
               r.n[LOAD_IGNORED][NAMES_OTHER]);
        EXPECT(r.n_words == 57 && r.n_rows == 57, "%lld rows", (long long)r.n_rows);
        load_report_print(&r, files[i].path);
        free(flat.data);
    }
}

static void copy_file(const char *from, const char *to)
{
    struct file_map map;
    EXPECT_OK(file_map_open(&map, path_of(from)));
    EXPECT_OK(file_write_atomic(path_of(to), map.data, map.n));
    file_map_close(&map);
}

/* safetensors wins over what stands beside it, and a line says so. */
static void test_two_forms(void)
{
    static const char line[] = "has both model.safetensors and pytorch_model.bin; kiln reads the first";
    EXPECT_OK(file_write_atomic(path_of("qa_safetensors/pytorch_model.bin"), "nothing", 7));
    char text[CAPTURED_LOG_BYTES];
    struct captured_log log = captured_log_begin();
    struct status s = try(path_of("qa_safetensors"), MODEL_TASK_QUESTION_ANSWERING);
    captured_log_end(&log, text);
    EXPECT_OK(s);
    EXPECT(strstr(text, line) != NULL, "the log is '%s'", text);
    EXPECT(unlink(path_of("qa_safetensors/pytorch_model.bin")) == 0, "unlink");
}

/* A configuration and a vocabulary that the command names stand in for those that are not beside the file. */
static void test_given(void)
{
    struct load_report r;
    tensor flat;
    EXPECT_OK(file_make_directories(path_of("alone")));
    copy_file("qa_ckpt/model.ckpt-3.pt", "alone/a.pt");
    EXPECT_ERROR(try(path_of("alone/a.pt"), MODEL_TASK_QUESTION_ANSWERING), STATUS_DATA,
                 "no config.json or bert_config.json beside");
    EXPECT_ERROR(try(path_of("alone"), MODEL_TASK_QUESTION_ANSWERING), STATUS_DATA, "has no config.json");
    char config[512], vocabulary[512];
    snprintf(config, sizeof config, "%s", path_of("qa_ckpt/bert_config.json"));
    snprintf(vocabulary, sizeof vocabulary, "%s", path_of("qa_ckpt/vocab.txt"));
    struct model_dir_given given = {.config_file = config};
    EXPECT_ERROR(read_given(&flat, path_of("alone/a.pt"), given, MODEL_TASK_QUESTION_ANSWERING, &r),
                 STATUS_DATA, "neither vocab.txt nor tokenizer.json");
    given.vocab_file = vocabulary;
    EXPECT_OK(read_given(&flat, path_of("alone/a.pt"), given, MODEL_TASK_QUESTION_ANSWERING, &r));
    free(flat.data);
    EXPECT_OK(file_make_directories(path_of("alone_states")));
    copy_file("pretraining_states/mp_rank_00_model_states.pt", "alone_states/mp_rank_00_model_states.pt");
    EXPECT_OK(read_given(&flat, path_of("alone_states"), given, MODEL_TASK_PRETRAINING, &r));
    free(flat.data);
    /* what is beside the weights is used, whatever else is named */
    given.config_file = "/nothing";
    given.vocab_file = "/nothing";
    EXPECT_OK(
        read_given(&flat, path_of("qa_ckpt/model.ckpt-3.pt"), given, MODEL_TASK_QUESTION_ANSWERING, &r));
    free(flat.data);
}

static void test_faults(void)
{
    static const struct {
        const char *file, *error;
        enum model_task task;
    } faults[] = {
        {"bad/only_optimizer.pt", "holds the state of an optimizer but no tensor", MODEL_TASK_ENCODER},
        {"bad/other_prefix.pt", "so it is not a BERT; its first tensor is network.encoder_stack",
         MODEL_TASK_ENCODER},
        {"bad/no_tensor.pt", "holds no tensors, so it lacks", MODEL_TASK_ENCODER},
        {"bad/lacks.pt", "lacks 4 of the 5 tensors of bert.embeddings.*", MODEL_TASK_QUESTION_ANSWERING},
        {"bad/shape.pt", "layer.0.output.dense.bias has the shape [9], but config.json needs [16]",
         MODEL_TASK_ENCODER},
        {"bad/integers.pt", "layer.0.output.dense.bias (int16) cannot be read: it", MODEL_TASK_ENCODER},
        {"bad/refused.pt", "_io.BytesIO", MODEL_TASK_ENCODER},
        {"bad/untied.pt", "decoder.weight differs from", MODEL_TASK_MASKED_LM},
        {"bad/vocab.txt", "bad/vocab.txt", MODEL_TASK_ENCODER},
        {"bad", "has no model.safetensors, pytorch_model.bin", MODEL_TASK_ENCODER},
        {"bad/nothing.pt", "is not a directory with a config.json, a file of tensors", MODEL_TASK_ENCODER},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        EXPECT_ERROR(try(path_of(faults[i].file), faults[i].task), STATUS_DATA, faults[i].error);
    }
}

/* A file cut anywhere is refused. */
static void test_truncation(void)
{
    static const char *const files[][2] = {
        {"pretraining_ckpt/ckpt_20.pt", "pretraining_ckpt/ckpt_20.pt"},
        {"pretraining_tf/bert_model.ckpt", "pretraining_tf/bert_model.ckpt.index"},
        {"pretraining_tf/bert_model.ckpt", "pretraining_tf/bert_model.ckpt.data-00000-of-00001"},
        {"qa_bin_shards", "qa_bin_shards/pytorch_model-00002-of-00002.bin"},
        {"qa_bin_shards", "qa_bin_shards/pytorch_model.bin.index.json"},
    };
    for (int i = 0; i < 5; i++) {
        struct file_map map;
        EXPECT_OK(file_map_open(&map, path_of(files[i][1])));
        size_t n = map.n;
        file_map_close(&map);
        copy_file(files[i][1], "whole");
        for (size_t keep = 0; keep < n; keep += 1 + n / 41) {
            copy_file("whole", files[i][1]);
            EXPECT(truncate(path_of(files[i][1]), (off_t)keep) == 0, "%s", files[i][1]);
            struct status s =
                try(path_of(files[i][0]), i < 3 ? MODEL_TASK_PRETRAINING : MODEL_TASK_QUESTION_ANSWERING);
            EXPECT(s.code == STATUS_DATA, "%s cut to %zu bytes: %d, %s", files[i][1], keep, (int)s.code,
                   s.message);
        }
        copy_file("whole", files[i][1]);
        EXPECT_OK(try(path_of(files[i][0]), i < 3 ? MODEL_TASK_PRETRAINING : MODEL_TASK_QUESTION_ANSWERING));
    }
}

int main(void)
{
    unpack_all();
    test_same_bits();
    test_current_directory();
    test_report();
    test_two_forms();
    test_given();
    test_faults();
    test_truncation();
    EXPECT_OK(file_remove_tree(directory));
    return 0;
}
