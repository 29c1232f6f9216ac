/* Model directories of RoBERTa, XLM-R, CamemBERT, DistilBERT and ModernBERT as `transformers` writes them
 * (tests/golden/make_bert_kinds.py): their outputs, RoBERTa's ids, and what kiln writes, which has the same
 * configuration and outputs, and is the same when it is written again. */
#include "test.h"

#include "data/encoded_texts.h"
#include "io/file.h"
#include "model/bert/bert_family.h"
#include "model/modernbert/modernbert_family.h"
#include "nn/modernbert/modernbert_config.h"
#include "serve/fill_mask.h"
#include "serve/model_outputs.h"

enum { PATH = 512 };

static const struct {
    const char *name;
    enum model_task task;
} cases[] = {{"masked_lm", MODEL_TASK_MASKED_LM},
             {"classifier", MODEL_TASK_SEQUENCE_CLASSIFICATION},
             {"tagger", MODEL_TASK_TOKEN_CLASSIFICATION},
             {"answers", MODEL_TASK_QUESTION_ANSWERING},
             {"encoder", MODEL_TASK_ENCODER},
             {"means", MODEL_TASK_SEQUENCE_CLASSIFICATION}}; /* of ModernBERT alone */
enum { N_CASES = sizeof cases / sizeof cases[0] };

static const struct {
    const char *name;
    const struct model_family *family;
    const char *mask; /* of the tokenizer whose ids are compared */
} kinds[] = {{"roberta", &roberta_family, "<mask>"},
             {"xlm_roberta", &xlm_roberta_family, NULL},
             {"camembert", &camembert_family, NULL},
             {"distilbert", &distilbert_family, NULL},
             {"modernbert", &modernbert_family, "[MASK]"}};

static struct safetensors golden;
static char directory[128];

static char *path_of(const char *a, const char *b)
{
    static char paths[4][PATH];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH, "%s/%s/%s", directory, a, b);
    return path;
}

static const struct stored_tensor *entry(const char *name)
{
    const struct stored_tensor *e = safetensors_find(&golden, name);
    EXPECT(e != NULL, "there is no %s", name);
    return e;
}

static tensor read_tensor(const char *name, enum dtype dtype)
{
    const struct stored_tensor *e = entry(name);
    void *data = calloc((size_t)(e->bytes + 8) * 2, 1);
    tensor t =
        e->n_dims == 1 ? tensor_1d(data, dtype, e->dims[0]) : tensor_2d(data, dtype, e->dims[0], e->dims[1]);
    EXPECT_OK(stored_tensor_read(e, t));
    return t;
}

/* Writes the files below "CASE/" of the golden file into a directory. */
static void unpack(const char *name, const char *to)
{
    size_t n = strlen(name);
    EXPECT_OK(file_make_directories(path_of(to, "")));
    for (int i = 0; i < golden.n; i++) {
        const struct stored_tensor *e = &golden.entries[i];
        if (strncmp(e->name, name, n) == 0 && e->name[n] == '/') {
            EXPECT_OK(file_write_atomic(path_of(to, e->name + n + 1), e->data, e->bytes));
        }
    }
}

static void expect_golden(const struct model_outputs *o, const char *name)
{
    int n_compared = 0;
    for (int k = 0; k < MODEL_N_OUTPUTS; k++) {
        char key[64];
        double worst = 0, scale = 1;
        snprintf(key, sizeof key, "%s:%s", name, model_outputs_name(o, k));
        if (safetensors_find(&golden, key) == NULL) {
            continue;
        }
        tensor wanted = read_tensor(key, DTYPE_F64), actual = o->values[k];
        EXPECT(!tensor_is_null(actual) && tensor_same_shape(actual, wanted), "%s", key);
        for (int64_t i = 0; i < tensor_count(wanted); i++) {
            worst = fmax(worst, fabs(tensor_get(wanted, i) - tensor_get(actual, i)));
            scale = fmax(scale, fabs(tensor_get(wanted, i)));
        }
        printf("%s: difference %.2g of %.3g\n", key, worst, scale);
        EXPECT(worst <= 1e-5 * scale, "%s differs by %g", key, worst);
        free(wanted.data);
        n_compared++;
    }
    EXPECT(n_compared > 0, "%s has no golden output", name);
}

/* Reads a directory, compares its outputs, and writes the model to `to`, unless that is NULL. */
static void read_and_write(const struct model_family *family, const char *from, const char *to, int k)
{
    struct model_dir m;
    struct model_outputs o;
    struct outputs_input in;
    tensor ids = read_tensor("ids", DTYPE_I32);
    in = (struct outputs_input){ids.dims[0], ids.dims[1], ids.data, read_tensor("types", DTYPE_I32).data,
                                read_tensor("lengths", DTYPE_I32).data};
    EXPECT_OK(model_dir_open(&m, path_of(from, "")));
    EXPECT(m.family == family && m.task == cases[k].task && m.max_length == ids.dims[1],
           "%s is a %s of %lld tokens", from, m.family->class_of(m.task), (long long)m.max_length);
    EXPECT_OK(model_outputs_compute(&o, &m, m.task, &in));
    expect_golden(&o, cases[k].name);
    if (to != NULL) {
        struct load_report report;
        struct model *model;
        struct param_table params = {0};
        EXPECT_OK(m.family->create(&model, m.config, m.task));
        EXPECT_OK(model->type->declare(model, &params));
        tensor flat =
            tensor_1d(calloc((size_t)params.n_elements, sizeof(float)), DTYPE_F32, params.n_elements);
        EXPECT_OK(model_dir_read_weights(&m, &params, flat, m.task, 0, &report));
        struct model_dir_contents c = {.family = m.family,
                                       .task = m.task,
                                       .params = &params,
                                       .master = flat,
                                       .config = m.config,
                                       .tokenizer = &m.tokenizer};
        EXPECT_OK(model_dir_save(path_of(to, ""), &c));
        free(flat.data);
        free(model);
        param_table_fini(&params);
    }
    model_outputs_fini(&o);
    outputs_input_fini(&in);
    model_dir_close(&m);
}

/* Every key of the configuration of `transformers` that kiln writes too has the same value; and those of the
 * kind are written. */
static void expect_same_config(const char *name)
{
    json_t *theirs, *ours, *value;
    const char *key;
    int n_same = 0;
    EXPECT_OK(json_read_object(&theirs, path_of(name, "config.json")));
    EXPECT_OK(json_read_object(&ours, path_of("saved", "config.json")));
    json_object_foreach(theirs, key, value)
    {
        const json_t *own = json_object_get(ours, key);
        bool is_number = json_is_number(value) && json_is_number(own);
        EXPECT(own == NULL || json_equal(own, value) ||
                   (is_number && json_number_value(own) == json_number_value(value)),
               "%s: %s differs", name, key);
        n_same += own != NULL;
    }
    EXPECT(json_object_get(ours, "model_type") != NULL && n_same >= 14, "%s: %d keys", name, n_same);
    json_decref(theirs);
    json_decref(ours);
}

static void expect_same_file(const char *name)
{
    struct file_map a, b;
    EXPECT_OK(file_map_open(&a, path_of("saved", name)));
    EXPECT_OK(file_map_open(&b, path_of("again", name)));
    EXPECT(a.n == b.n && memcmp(a.data, b.data, a.n) == 0, "%s differs", name);
    file_map_close(&a);
    file_map_close(&b);
}

/* A text or a pair, with special tokens, has the ids of `transformers`; all of them are of segment 0, since
 * the model has no other. */
static void expect_ids(struct model_dir *m, int i, char *text)
{
    char key[32], *second = strchr(text, '\t');
    struct encoded_texts e;
    struct tokenizer_scratch scratch;
    int64_t is_pair = second != NULL && i == 1;
    snprintf(key, sizeof key, "TEXT %d", i);
    tensor wanted = read_tensor(key, DTYPE_I32);
    int32_t ids[128];
    m->tokenizer.parses_special = true;
    EXPECT_OK(tokenizer_scratch_init(&scratch, &m->tokenizer));
    EXPECT_OK(encoded_texts_init(&e, &m->tokenizer, 128, "a text"));
    const struct input_form *form = is_pair ? &e.frame.pair : &e.frame.one;
    struct id_list a = {0}, b = {0};
    EXPECT_OK(tokenizer_encode_ids(&scratch, &a, text, is_pair ? (size_t)(second - text) : strlen(text)));
    if (is_pair) {
        EXPECT_OK(tokenizer_encode_ids(&scratch, &b, second + 1, strlen(second + 1)));
    }
    int64_t n_a = (int64_t)a.n, n_b = (int64_t)b.n, n = input_form_n_special(form) + n_a + n_b;
    input_form_write(form, ids, n_a, n_b);
    memcpy(ids + form->before.n, a.ids, a.n * sizeof *ids);
    if (n_b > 0) {
        memcpy(ids + input_form_second_at(form, n_a), b.ids, b.n * sizeof *ids);
    }
    EXPECT(n == tensor_count(wanted), "'%s' has %lld tokens, not %lld", text, (long long)n,
           (long long)tensor_count(wanted));
    for (int64_t k = 0; k < n; k++) {
        EXPECT(ids[k] == (int32_t)tensor_get(wanted, k), "token %lld of '%s' is %d", (long long)k, text,
               ids[k]);
    }
    EXPECT(input_form_n_first(form, n_a, n_b) == n, "a token of segment 1");
    id_list_fini(&a);
    id_list_fini(&b);
    free(wanted.data);
    encoded_texts_fini(&e);
    tokenizer_scratch_fini(&scratch);
}

static void test_ids(const char *from, const char *mask)
{
    char masked[32];
    struct model_dir m;
    const struct stored_tensor *e = entry("TEXTS");
    char *texts = strndup((const char *)e->data, e->bytes);
    EXPECT_OK(model_dir_open(&m, path_of(from, "")));
    int i = 0;
    for (char *text = strtok(texts, "\n"); text != NULL; text = strtok(NULL, "\n")) {
        expect_ids(&m, i++, text);
    }
    EXPECT(i == 5, "%d texts", i);
    snprintf(masked, sizeof masked, "a %s", mask);
    EXPECT(fill_mask_is_in(&m.tokenizer, masked, strlen(masked)) &&
               fill_mask_is_in(&m.tokenizer, "a [MASK]", 8) && !fill_mask_is_in(&m.tokenizer, "a mask", 6),
           "masks");
    free(texts);
    model_dir_close(&m);
}

static void test_kind(const char *name, const struct model_family *family, const char *mask)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", KILN_SOURCE_DIR, name);
    EXPECT_OK(safetensors_open(&golden, path));
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/kiln_kinds_XXXXXX", parent == NULL ? "/tmp" : parent);
    EXPECT(mkdtemp(directory) != NULL, "%s", directory);
    for (int k = 0; k < N_CASES - (strcmp(name, "modernbert") != 0); k++) {
        unpack(cases[k].name, cases[k].name);
        unpack("tokenizer", cases[k].name);
        read_and_write(family, cases[k].name, "saved", k);
        expect_same_config(cases[k].name);
        read_and_write(family, "saved", "again", k);
        expect_same_file("config.json");
        expect_same_file("model.safetensors");
        expect_same_file("tokenizer_config.json");
    }
    if (mask != NULL) {
        test_ids("masked_lm", mask);
        test_ids("saved", mask);
    }
    EXPECT_OK(file_remove_tree(directory));
    safetensors_close(&golden);
}

static void expect_refused(const char *config, const char *message)
{
    struct modernbert_config c;
    json_t *object = json_loads(config, 0, NULL);
    EXPECT(object != NULL, "%s", config);
    EXPECT_ERROR(modernbert_config_parse(&c, object, "config.json"), STATUS_DATA, message);
    json_decref(object);
}

/* Forms of ModernBERT's keys that are not computed. */
static void test_refused(void)
{
    expect_refused("{\"hidden_activation\": \"silu\"}",
                   "\"hidden_activation\" is \"silu\", but must be \"gelu\"");
    expect_refused("{\"attention_bias\": true}", "\"attention_bias\" is true, but must be false");
    expect_refused("{\"mlp_dropout\": 0.5}", "\"mlp_dropout\" is 0.5, but must be 0 or absent");
    expect_refused("{\"rope_scaling\": {\"type\": \"linear\"}}", "\"rope_scaling\" is");
    expect_refused("{\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}}",
                   "\"rope_type\" of \"full_attention\" is \"yarn\"");
    expect_refused("{\"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 0.5}}}",
                   "\"rope_theta\" of \"sliding_attention\" is 0.5");
    expect_refused("{\"num_hidden_layers\": 2, \"layer_types\": [\"sliding_attention\", \"full_attention\"]}",
                   "\"layer_types\" must have \"full_attention\" for layer 0");
    expect_refused("{\"num_hidden_layers\": 3, \"layer_types\": [\"full_attention\"]}", "every n-th of 3");
    expect_refused("{\"local_attention\": 1}", "\"local_attention\" is 1, but must lie between 2");
    expect_refused("{\"classifier_pooling\": \"max\"}", "\"classifier_pooling\" is \"max\"");
    expect_refused("{\"num_attention_heads\": 7}", "\"hidden_size\" 768 does not divide into 7 heads");
}

int main(void)
{
    test_refused();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        test_kind(kinds[i].name, kinds[i].family, kinds[i].mask);
    }
    return 0;
}
