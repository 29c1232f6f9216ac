/* Model directories: what `transformers` wrote (tests/golden/make_hf_dirs.py) gives its outputs, what kiln
 * writes reads back the same, and what is wrong is refused by name.
 *
 * With arguments it is a tool for tests/golden/check_transformers.py: `test_model_dir DIR TASK IN OUT` writes
 * the outputs for the batch in IN, both safetensors files. */
#include "test.h"

#include "core/buf.h"
#include "core/log.h"
#include "io/file.h"
#include "model/bert/bert_family.h"
#include "model/checkpoint.h"
#include "serve/model_outputs.h"
#include "bert_params.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const cases[] = {"pretraining", "masked_lm",   "question_answering", "encoder",
                                    "nvidia",      "fp16_shards", "bf16_shards"};
static const enum model_task tasks[] = {
    MODEL_TASK_PRETRAINING, MODEL_TASK_MASKED_LM, MODEL_TASK_QUESTION_ANSWERING, MODEL_TASK_ENCODER,
    MODEL_TASK_PRETRAINING, MODEL_TASK_ENCODER,   MODEL_TASK_PRETRAINING};
enum { N_CASES = 7, PATH = 512 };

struct fixture {
    struct safetensors golden;
    struct outputs_input in;
    char directory[128]; /* CASE below it is a model directory */
};

static tensor read_tensor(const struct safetensors *f, const char *name, enum dtype dtype)
{
    const struct stored_tensor *e = safetensors_find(f, name);
    EXPECT(e != NULL, "there is no %s", name);
    void *data = calloc((size_t)(e->bytes + 8) * 2, 1);
    tensor t =
        e->n_dims == 1 ? tensor_1d(data, dtype, e->dims[0]) : tensor_2d(data, dtype, e->dims[0], e->dims[1]);
    EXPECT_OK(stored_tensor_read(e, t));
    return t;
}

static void read_input(struct outputs_input *in, const struct safetensors *f)
{
    tensor ids = read_tensor(f, "ids", DTYPE_I32);
    *in = (struct outputs_input){ids.dims[0], ids.dims[1], ids.data, read_tensor(f, "types", DTYPE_I32).data,
                                 read_tensor(f, "lengths", DTYPE_I32).data};
}

static char *path_of(const struct fixture *f, const char *name)
{
    static char paths[4][PATH];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH, "%s/%s", f->directory, name);
    return path;
}

/* Writes the files of a case into DIRECTORY/CASE. */
static void unpack(const struct fixture *f, const char *name)
{
    EXPECT_OK(file_make_directories(path_of(f, name)));
    for (int i = 0; i < f->golden.n; i++) {
        const struct stored_tensor *e = &f->golden.entries[i];
        size_t n = strlen(name);
        if (strncmp(e->name, name, n) == 0 && e->name[n] == '/') {
            EXPECT_OK(file_write_atomic(path_of(f, e->name), e->data, e->bytes));
        }
    }
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){0};
    EXPECT_OK(safetensors_open(&f->golden, KILN_SOURCE_DIR "/tests/golden/hf_dirs.safetensors"));
    read_input(&f->in, &f->golden);
    const char *parent = getenv("TMPDIR");
    snprintf(f->directory, sizeof f->directory, "%s/kiln_model_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(f->directory) != NULL, "%s", f->directory);
    for (int i = 0; i < N_CASES; i++) {
        unpack(f, cases[i]);
    }
}

static void fixture_fini(struct fixture *f)
{
    EXPECT_OK(file_remove_tree(f->directory));
    outputs_input_fini(&f->in);
    safetensors_close(&f->golden);
}

/* The largest difference of an output from the golden one, relative to max(1, its largest element). */
static void expect_golden(const struct fixture *f, const struct model_outputs *o, const char *name)
{
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        char key[64];
        snprintf(key, sizeof key, "%s:%s", name, model_outputs_name(o, k));
        EXPECT(model_task_has(o->task, k) || tensor_is_null(o->values[k]), "%s of a model without it", key);
        if (safetensors_find(&f->golden, key) == NULL) {
            continue;
        }
        tensor wanted = read_tensor(&f->golden, key, DTYPE_F64), actual = o->values[k];
        double worst = 0, scale = 1;
        EXPECT(!tensor_is_null(actual) && tensor_same_shape(actual, wanted), "%s", key);
        for (int64_t i = 0; i < tensor_count(wanted); i++) {
            double w = tensor_get(wanted, i);
            worst = fmax(worst, fabs(w - tensor_get(actual, i)));
            scale = fmax(scale, fabs(w));
        }
        printf("%s: difference %.2g of %.3g\n", key, worst, scale);
        EXPECT(worst <= 1e-5 * scale, "%s differs by %g", key, worst);
        free(wanted.data);
    }
}

static void run_and_compare(const struct fixture *f, const char *directory, const char *name,
                            enum model_task task)
{
    struct model_dir m;
    struct model_outputs o;
    EXPECT_OK(model_dir_open(&m, path_of(f, directory)));
    EXPECT(m.task == task, "%s was taken for a %s", directory, bert_kind.classes[m.task]);
    int64_t rows =
        strcmp(name, "encoder") == 0 ? 40 : 37; /* what its config.json says; nvidia's says 37 and has 40 */
    EXPECT(((const struct bert_config *)m.config)->vocab_size == rows && m.tokenizer.n == 37 &&
               m.max_length == 24,
           "%lld, %d, %lld", (long long)((const struct bert_config *)m.config)->vocab_size, m.tokenizer.n,
           (long long)m.max_length);
    EXPECT(m.tokenizer.lower_case == (strcmp(name, "masked_lm") != 0), "%s lower_case", name);
    EXPECT_OK(model_outputs_compute(&o, &m, task, &f->in));
    expect_golden(f, &o, name);
    model_outputs_fini(&o);
    model_dir_close(&m);
}

static void test_golden(const struct fixture *f)
{
    for (int i = 0; i < N_CASES; i++) {
        run_and_compare(f, cases[i], cases[i], tasks[i]);
    }
}

/* Reads a case's weights into a flat buffer, which the caller frees. */
static tensor read_flat(const struct model_dir *m, struct param_table *params, enum model_task task)
{
    struct load_report report;
    *params = (struct param_table){0};
    EXPECT_OK(bert_declare(params, m->config, task));
    tensor flat = tensor_1d(calloc((size_t)params->n_elements, sizeof(float)), DTYPE_F32, params->n_elements);
    EXPECT_OK(model_dir_read_weights(m, params, flat, task, 0, &report));
    return flat;
}

static void save_case(const struct fixture *f, const char *from, const char *to, enum model_task task,
                      uint64_t shard)
{
    struct model_dir m;
    struct param_table params;
    EXPECT_OK(model_dir_open(&m, path_of(f, from)));
    tensor flat = read_flat(&m, &params, task);
    struct model_dir_contents c = {.family = &bert_family,
                                   .task = task,
                                   .params = &params,
                                   .master = flat,
                                   .config = m.config,
                                   .tokenizer = &m.tokenizer,
                                   .max_shard_bytes = shard};
    EXPECT_OK(model_dir_save(path_of(f, to), &c));
    free(flat.data);
    param_table_fini(&params);
    model_dir_close(&m);
}

static void expect_same_file(const struct fixture *f, const char *a, const char *b)
{
    struct file_map x, y;
    EXPECT_OK(file_map_open(&x, path_of(f, a)));
    EXPECT_OK(file_map_open(&y, path_of(f, b)));
    EXPECT(x.n == y.n && memcmp(x.data, y.data, x.n) == 0, "%s and %s differ", a, b);
    file_map_close(&x);
    file_map_close(&y);
}

/* What kiln writes has the golden outputs too, whole and in shards; writing what was read changes no byte. */
static void test_round_trip(const struct fixture *f)
{
    static const char *const files[] = {"config.json",           "model.safetensors",       "vocab.txt",
                                        "tokenizer_config.json", "special_tokens_map.json", "tokenizer.json"};
    for (int i = 0; i < N_CASES; i++) {
        save_case(f, cases[i], "saved", tasks[i], 0);
        run_and_compare(f, "saved", cases[i], tasks[i]);
        save_case(f, "saved", "again", tasks[i], 0);
        for (int k = 0; k < 6; k++) {
            char a[64], b[64];
            snprintf(a, sizeof a, "saved/%s", files[k]);
            snprintf(b, sizeof b, "again/%s", files[k]);
            expect_same_file(f, a, b);
        }
        save_case(f, cases[i], "saved", tasks[i], 4096);
        EXPECT(!file_exists(path_of(f, "saved/model.safetensors")), "%s is whole", cases[i]);
        EXPECT(unlink(path_of(f, "saved/vocab.txt")) == 0, "%s", cases[i]);
        run_and_compare(f, "saved", cases[i], tasks[i]);
    }
}

static void expect_nothing_left(const char *directory)
{
    DIR *dir = opendir(directory);
    EXPECT(dir != NULL, "%s", directory);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        EXPECT(strstr(e->d_name, ".kiln-") == NULL, "%s/%s is left", directory, e->d_name);
    }
    closedir(dir);
}

/* Only a directory of a model's files is replaced, and nothing is left behind. */
static void test_replacing(const struct fixture *f)
{
    struct model_dir m;
    struct param_table params;
    EXPECT_OK(model_dir_open(&m, path_of(f, "encoder")));
    tensor flat = read_flat(&m, &params, MODEL_TASK_ENCODER);
    struct model_dir_contents c = {.family = &bert_family,
                                   .task = MODEL_TASK_ENCODER,
                                   .params = &params,
                                   .master = flat,
                                   .config = m.config,
                                   .tokenizer = &m.tokenizer};
    EXPECT_OK(file_make_directories(path_of(f, "mine")));
    EXPECT_OK(model_dir_save(path_of(f, "mine/"), &c));
    EXPECT_OK(file_write_atomic(path_of(f, "mine/notes.txt"), "x", 1));
    EXPECT_ERROR(model_dir_save(path_of(f, "mine"), &c), STATUS_USAGE, "notes.txt");
    EXPECT(file_exists(path_of(f, "mine/notes.txt")) && file_exists(path_of(f, "mine/config.json")), "mine");
    EXPECT_ERROR(model_dir_save(path_of(f, "mine/notes.txt"), &c), STATUS_USAGE, "Not a directory");
    EXPECT_ERROR(model_dir_save("/proc/nothing/model", &c), STATUS_IO, "/proc/nothing");
    EXPECT_OK(model_dir_save(path_of(f, "new/deep/model"), &c));
    EXPECT(symlink("new/deep/model", path_of(f, "link")) == 0, "link");
    EXPECT_OK(model_dir_save(path_of(f, "link"), &c));
    struct stat info;
    EXPECT(lstat(path_of(f, "link"), &info) == 0 && S_ISLNK(info.st_mode), "the link was replaced");
    EXPECT_ERROR(model_dir_save("", &c), STATUS_USAGE, "its own name");
    EXPECT_ERROR(model_dir_save(path_of(f, "new/deep/model/."), &c), STATUS_USAGE, "its own name");
    EXPECT_ERROR(model_dir_save("/", &c), STATUS_USAGE, "/ holds");
    EXPECT(chdir(path_of(f, "new/deep/model")) == 0, "chdir");
    EXPECT_ERROR(model_dir_save(path_of(f, "new/deep/model"), &c), STATUS_USAGE, "is the current directory");
    EXPECT(chdir("/") == 0, "chdir");
    expect_nothing_left(f->directory);
    expect_nothing_left(path_of(f, "new/deep"));
    free(flat.data);
    param_table_fini(&params);
    model_dir_close(&m);
}

/* Reading a case for a task: the status, and the report. */
static struct status read_as(const struct fixture *f, const char *name, enum model_task task,
                             unsigned may_be_new, struct load_report *report)
{
    struct model_dir m;
    struct param_table params = {0};
    TRY(model_dir_open(&m, path_of(f, name)));
    EXPECT_OK(bert_declare(&params, m.config, task));
    tensor flat = tensor_1d(calloc((size_t)params.n_elements, sizeof(float)), DTYPE_F32, params.n_elements);
    struct status s = model_dir_read_weights(&m, &params, flat, task, may_be_new, report);
    free(flat.data);
    param_table_fini(&params);
    model_dir_close(&m);
    return s;
}

static void expect_counts(const struct load_report *r, enum load_outcome outcome, enum names_part part, int n)
{
    EXPECT(r->n[outcome][part] == n, "outcome %d, part %d: %d tensors, not %d", outcome, part,
           r->n[outcome][part], n);
}

/* What is normal for a task, and what is not. */
static void test_report(const struct fixture *f)
{
    struct load_report r;
    unsigned qa = 1U << NAMES_QA, pooler = 1U << NAMES_POOLER;
    EXPECT_OK(read_as(f, "pretraining", MODEL_TASK_QUESTION_ANSWERING, qa, &r));
    expect_counts(&r, LOAD_LOADED, NAMES_EMBEDDINGS, 5);
    expect_counts(&r, LOAD_LOADED, NAMES_ENCODER, 32);
    expect_counts(&r, LOAD_NEW, NAMES_QA, 2);
    expect_counts(&r, LOAD_IGNORED, NAMES_POOLER, 2);
    expect_counts(&r, LOAD_IGNORED, NAMES_MLM, 5);
    expect_counts(&r, LOAD_IGNORED, NAMES_NSP, 2);
    load_report_print(&r, "pretraining");
    EXPECT_ERROR(read_as(f, "pretraining", MODEL_TASK_QUESTION_ANSWERING, 0, &r), STATUS_DATA,
                 "lacks 2 of the 2 tensors of qa_outputs.*");
    EXPECT_OK(read_as(f, "masked_lm", MODEL_TASK_ENCODER, pooler, &r));
    expect_counts(&r, LOAD_NEW, NAMES_POOLER, 2);
    EXPECT_ERROR(read_as(f, "masked_lm", MODEL_TASK_ENCODER, 0, &r), STATUS_DATA, "bert.pooler.*");
    EXPECT_ERROR(read_as(f, "encoder", MODEL_TASK_MASKED_LM, 0, &r), STATUS_DATA,
                 "such as cls.predictions.transform.dense.weight: the files hold a BertModel");
    EXPECT_OK(read_as(f, "nvidia", MODEL_TASK_MASKED_LM, 0, &r));
    expect_counts(&r, LOAD_IGNORED, NAMES_BUFFER, 1);
    EXPECT(r.n_tied == 1, "%d tied", r.n_tied);
    load_report_print(&r, "nvidia");
}

/* Replaces the first `old` in a file by `new`. */
static void edit(const struct fixture *f, const char *file, const char *old, const char *new)
{
    struct file_map map;
    struct buf b = {0};
    EXPECT_OK(file_map_open(&map, path_of(f, file)));
    const unsigned char *at = map.data;
    size_t n = strlen(old);
    while (at + n <= map.data + map.n && memcmp(at, old, n) != 0) {
        at++;
    }
    EXPECT(at + n <= map.data + map.n, "%s has no %s", file, old);
    buf_append(&b, map.data, (size_t)(at - map.data));
    buf_puts(&b, new);
    buf_append(&b, at + n, map.n - (size_t)(at - map.data) - n);
    EXPECT_OK(buf_status(&b));
    file_map_close(&map);
    EXPECT_OK(file_write_atomic(path_of(f, file), b.data, b.n));
    buf_fini(&b);
}

static void cut_file(const struct fixture *f, const char *file, size_t n)
{
    EXPECT(truncate(path_of(f, file), (off_t)n) == 0, "%s", file);
}

/* One edit, the error it causes, and the case made whole again. */
struct fault {
    const char *name, *file, *old, *new, *error;
};

#define CONFIG "config.json"
#define INDEX  "model.safetensors.index.json"
static const struct fault faults[] = {
    {"pretraining", CONFIG, "\"hidden_size\": 16", "\"hidden_size\": 32",
     "[37, 16], but config.json needs [37, 32]"},
    {"pretraining", CONFIG, "\"intermediate_size\": 20", "\"intermediate_size\": 24",
     "config.json needs [24, 16]"},
    {"pretraining", CONFIG, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "bert.encoder.layer.1."},
    {"pretraining", CONFIG, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
     "lacks 16 of the 48 tensors"},
    {"pretraining", CONFIG, "\"vocab_size\": 37", "\"vocab_size\": 36", "\"vocab_size\" 36"},
    {"pretraining", CONFIG, "\"is_decoder\": false", "\"is_decoder\": true", "is_decoder"},
    {"pretraining", CONFIG, "\"gelu\"", "\"relu\"", "must be \"gelu\""},
    {"pretraining", CONFIG, "{", "[", "not valid JSON"},
    {"pretraining", "tokenizer.json", "\"##p\": 36", "\"##p\": 35", "have the same id 35"},
    {"pretraining", "tokenizer.json", "\"id\": 4", "\"id\": 5", "the id 5, but 4 elsewhere in the file"},
    {"pretraining", "tokenizer.json", "\"[PAD]\": 0", "\"\xEF\xBB\xBF[PAD]\": 0", "byte-order mark"},
    {"pretraining", "tokenizer.json", "\"##p\": 36", "\"##p\": 99", "the vocabulary has 100 pieces"},
    {"pretraining", "tokenizer.json", "\"##p\": 36", "\"##p\": 36,\n      \"##q\": 37",
     "37 rows, and the vocabulary has 38 pieces"},
    {"pretraining", "tokenizer.json", "\"BertNormalizer\"", "\"NFC\"", "BERT's is BertNormalizer"},
    {"pretraining", "tokenizer.json", "\"strip_accents\": null", "\"strip_accents\": false", "strip_accents"},
    {"pretraining", "tokenizer_config.json", "\"BertTokenizer\"", "\"T5Tokenizer\"", "T5Tokenizer"},
    {"nvidia", "bert_config.json", "\"vocab_size\": 37", "\"vocab_size\": 39", "\"vocab_size\" 39"},
    {"nvidia", "vocab.txt", "##p\n", "##p\n##q\n##r\n##s\n##t\n", "has 40 rows, and the vocabulary has 41"},
    {"nvidia", "model.safetensors", "F32", "I32", "dtype I32"},
    {"nvidia", "model.safetensors", "layer.0.output.LayerNorm.gamma", "layer.0.output.LayerNorm.weigh",
     "has no such tensor"},
    {"pretraining", "model.safetensors", "[37,16],\"data_offsets\":[", "[16,37],\"data_offsets\":[",
     "word_embeddings.weight has 16 rows"},
    {"pretraining", "model.safetensors", "layer.0.attention.self.key.bias", "layer.1.attention.self.key.bias",
     "duplicate object key"},
    {"question_answering", "model-00001-of-00002.safetensors", "\"data_offsets\":[0,", "\"data_offsets\":[4,",
     "which does not match its shape and dtype"},
    {"question_answering", "model-00001-of-00002.safetensors", "\"shape\":[16]", "\"shape\":[-6]",
     "not a possible size"},
    {"question_answering", "model-00001-of-00002.safetensors", "\"shape\":[16]", "\"shape\":[17]",
     "which does not match its shape and dtype"},
    {"question_answering", INDEX, "-of-00002", "-of-00003", "cannot open"},
    {"question_answering", INDEX, "model-0000", "../model-0000", "names of .safetensors files beside it"},
    {"question_answering", INDEX, "\"model-00001-of-00002.safetensors\"", "7", "names of .safetensors files"},
    {"question_answering", INDEX, "\"bert.embeddings.LayerNorm.bias\"", "\"bert.embeddings.LayerNorm.biax\"",
     "which does not hold it"},
    {"question_answering", INDEX, "\"bert.embeddings.LayerNorm.bias\": \"model-00001-of-00002.safetensors\",",
     "", "is in no file or another file"},
    {"question_answering", INDEX, "\"weight_map\"", "\"weights\"", "\"weight_map\" must be"},
    {"question_answering", "model-00002-of-00002.safetensors", "qa_outputs.bias", "qa_outputs.bios",
     "qa_outputs.bi"},
    {"question_answering", "model-00002-of-00002.safetensors", "qa_outputs.weight\"",
     "qa_outputs.weight\\u0000\"", "not valid JSON"},
};

static void test_faults(const struct fixture *f)
{
    struct load_report r;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const struct fault *x = &faults[i];
        char file[PATH];
        snprintf(file, sizeof file, "%s/%s", x->name, x->file);
        edit(f, file, x->old, x->new);
        int c = 0;
        while (strcmp(cases[c], x->name) != 0) {
            c++;
        }
        EXPECT_ERROR(read_as(f, x->name, tasks[c], 0, &r), STATUS_DATA, x->error);
        unpack(f, x->name);
        EXPECT_OK(read_as(f, x->name, tasks[c], 0, &r));
    }
}

/* A shard, the whole file, or the index cut at every length is refused, never read past its end. */
static void test_truncation(const struct fixture *f)
{
    static const char *const files[] = {"question_answering/model-00002-of-00002.safetensors",
                                        "question_answering/model.safetensors.index.json",
                                        "question_answering/tokenizer.json",
                                        "question_answering/config.json"};
    struct load_report r;
    for (int i = 0; i < 4; i++) {
        struct file_map map;
        EXPECT_OK(file_map_open(&map, path_of(f, files[i])));
        size_t n = map.n;
        file_map_close(&map);
        for (size_t keep = 0; keep < n; keep += 1 + n / 97) {
            cut_file(f, files[i], keep);
            struct status s = read_as(f, "question_answering", MODEL_TASK_QUESTION_ANSWERING, 0, &r);
            EXPECT(s.code == STATUS_DATA, "%s cut to %zu bytes: %s", files[i], keep, s.message);
            unpack(f, "question_answering");
        }
    }
}

/* A weight that is not finite, or is not once it is fp32, is named with its place in the tensor. */
static void test_not_finite(const struct fixture *f)
{
    struct load_report r;
    struct safetensors files;
    const float values[] = {NAN, -INFINITY};
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(safetensors_open(&files, path_of(f, "pretraining/model.safetensors")));
        const struct stored_tensor *e = safetensors_find(&files, "bert.encoder.layer.1.output.dense.weight");
        long offset = (long)(e->data - files.map.data) + 7 * (long)sizeof *values;
        safetensors_close(&files);
        FILE *file = fopen(path_of(f, "pretraining/model.safetensors"), "r+b");
        EXPECT(file != NULL && fseek(file, offset, SEEK_SET) == 0 &&
                   fwrite(&values[i], sizeof *values, 1, file) == 1 && fclose(file) == 0,
               "edit");
        EXPECT_ERROR(read_as(f, "pretraining", MODEL_TASK_MASKED_LM, 0, &r), STATUS_NUMERIC,
                     "the weight bert.encoder.layer.1.output.dense.weight is not finite (element 7 is");
        unpack(f, "pretraining");
        EXPECT_OK(read_as(f, "pretraining", MODEL_TASK_MASKED_LM, 0, &r));
    }
}

/* Two tensors that stand for one parameter, and a decoder that is not tied. */
static void test_conflicts(const struct fixture *f)
{
    struct load_report r;
    float one[37 * 16] = {1};
    struct safetensors_item items[] = {
        {"bert.pooler.dense.weight", tensor_2d(one, DTYPE_F32, 16, 16), NULL, false, 0},
        {"module.bert.pooler.dense_act.weight", tensor_2d(one, DTYPE_F32, 16, 16), NULL, false, 0}};
    struct safetensors_writer w;
    EXPECT_OK(safetensors_writer_open(&w, path_of(f, "encoder/model.safetensors"), items, 2));
    safetensors_writer_put(&w, items[0].shape);
    safetensors_writer_put(&w, items[1].shape);
    EXPECT_OK(safetensors_writer_commit(&w));
    EXPECT_ERROR(read_as(f, "encoder", MODEL_TASK_ENCODER, 0, &r), STATUS_DATA,
                 "both stand for bert.pooler.dense.weight");
    unpack(f, "encoder");

    struct safetensors old;
    EXPECT_OK(safetensors_open(&old, path_of(f, "nvidia/model.safetensors")));
    const struct stored_tensor *e = safetensors_find(&old, "module.cls.predictions.decoder.weight");
    long offset = (long)(e->data - old.map.data);
    int changed = e->data[0] ^ 0xff;
    safetensors_close(&old);
    FILE *file = fopen(path_of(f, "nvidia/model.safetensors"), "r+b");
    EXPECT(file != NULL && fseek(file, offset, SEEK_SET) == 0 && fputc(changed, file) == changed &&
               fclose(file) == 0,
           "edit");
    EXPECT_ERROR(read_as(f, "nvidia", MODEL_TASK_MASKED_LM, 0, &r), STATUS_DATA, "tied");
    EXPECT_OK(read_as(f, "nvidia", MODEL_TASK_ENCODER, 0, &r));
    unpack(f, "nvidia");
}

static void test_missing(const struct fixture *f)
{
    struct load_report r;
    EXPECT_ERROR(read_as(f, "nothing", MODEL_TASK_ENCODER, 0, &r), STATUS_DATA, "is not a directory");
    EXPECT_ERROR(read_as(f, "", MODEL_TASK_ENCODER, 0, &r), STATUS_DATA, "has no config.json");
    static const char *const needed[][2] = {{"config.json", "config.json"},
                                            {"tokenizer.json", "neither vocab.txt nor tokenizer.json"},
                                            {"model.safetensors", "has no model.safetensors"}};
    for (int i = 0; i < 3; i++) {
        char file[PATH];
        snprintf(file, sizeof file, "encoder/%s", needed[i][0]);
        EXPECT(unlink(path_of(f, file)) == 0, "%s", file);
        EXPECT_ERROR(read_as(f, "encoder", MODEL_TASK_ENCODER, 0, &r), STATUS_DATA, needed[i][1]);
        unpack(f, "encoder");
    }
    EXPECT(unlink(path_of(f, "encoder/tokenizer_config.json")) == 0, "tokenizer_config.json");
    EXPECT_OK(read_as(f, "encoder", MODEL_TASK_ENCODER, 0, &r));
    edit(f, "pretraining/tokenizer_config.json", "\"do_lower_case\": true,", "");
    edit(f, "pretraining/tokenizer.json", "\"lowercase\": true", "\"lowercase\": false");
    struct model_dir m;
    EXPECT_OK(model_dir_open(&m, path_of(f, "pretraining")));
    EXPECT(!m.tokenizer.lower_case, "tokenizer.json says cased");
    model_dir_close(&m);
    unpack(f, "pretraining");
}

static enum model_task task_named(const char *name)
{
    for (int i = 0; i < N_CASES; i++) {
        if (strcmp(cases[i], name) == 0) {
            return tasks[i];
        }
    }
    bool texts = strcmp(name, "sequence_classification") == 0;
    EXPECT(texts || strcmp(name, "token_classification") == 0, "no task %s", name);
    return texts ? MODEL_TASK_SEQUENCE_CLASSIFICATION : MODEL_TASK_TOKEN_CLASSIFICATION;
}

static int write_outputs(const char *directory, const char *task, const char *from, const char *to)
{
    struct safetensors f;
    struct outputs_input in;
    struct model_dir m;
    struct model_outputs o;
    EXPECT_OK(safetensors_open(&f, from));
    read_input(&in, &f);
    EXPECT_OK(model_dir_open(&m, directory));
    EXPECT_OK(model_outputs_compute(&o, &m, task_named(task), &in));
    EXPECT_OK(model_outputs_save(to, &in, &o));
    model_outputs_fini(&o);
    model_dir_close(&m);
    outputs_input_fini(&in);
    safetensors_close(&f);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5) {
        return write_outputs(argv[1], argv[2], argv[3], argv[4]);
    }
    struct fixture f;
    fixture_init(&f);
    test_golden(&f);
    test_round_trip(&f);
    test_replacing(&f);
    test_report(&f);
    log_set_level(LOG_QUIET);
    test_faults(&f);
    test_truncation(&f);
    test_conflicts(&f);
    test_not_finite(&f);
    test_missing(&f);
    fixture_fini(&f);
    return 0;
}
