#include "serve/sentence_model.h"

#include "core/buf.h"
#include "io/json_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const pooling_names[SENTENCE_N_POOLINGS] = {
    [SENTENCE_CLS] = "cls",
    [SENTENCE_MAX] = "max",
    [SENTENCE_MEAN] = "mean",
    [SENTENCE_MEAN_SQRT_LEN] = "mean_sqrt_len_tokens",
    [SENTENCE_WEIGHTED_MEAN] = "weightedmean",
    [SENTENCE_LAST_TOKEN] = "lasttoken",
};

const char *sentence_pooling_name(enum sentence_pooling p)
{
    return pooling_names[p];
}

enum sentence_pooling sentence_pooling_find(const char *name)
{
    int p = 0;
    while (p < SENTENCE_N_POOLINGS && strcmp(name, pooling_names[p]) != 0) {
        p++;
    }
    return (enum sentence_pooling)p;
}

/* Reads the file of a module; *root is NULL if the file is missing and optional. */
static struct status read_object(json_t **root, char path[CHECKPOINT_PATH_BYTES], const char *directory,
                                 const char *file, bool required)
{
    *root = NULL;
    TRY(checkpoint_path(path, "%s/%s", directory, file));
    return required || file_exists(path) ? json_read_object(root, path) : status_ok();
}

/* The value of a key of `object`; NULL if it is null or absent. */
static const json_t *value_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

/* STATUS_DATA unless a key is absent, null or this text. */
static struct status expect_text(const json_t *object, const char *source, const char *key,
                                 const char *wanted)
{
    const json_t *value = value_of(object, key);
    if (value == NULL || (json_is_string(value) && strcmp(json_string_value(value), wanted) == 0)) {
        return status_ok();
    }
    return status_error(STATUS_DATA, "%s: \"%s\" is %.80s; only \"%s\" is supported", source, key,
                        json_is_string(value) ? json_string_value(value) : "no text", wanted);
}

/* ---- 0_Transformer ---- */

/* Refuses settings of the tokenizer that would change the ids or their number. */
static struct status refuse_settings(const json_t *c, const char *source)
{
    static const char *const keys[] = {"processing_kwargs", "processor_kwargs", "tokenizer_kwargs",
                                       "tokenizer_args"};
    const json_t *text = json_object_get(json_object_get(c, "modality_config"), "text");
    TRY(expect_text(c, source, "transformer_task", "feature-extraction"));
    TRY(expect_text(c, source, "module_output_name", "token_embeddings"));
    TRY(expect_text(text, source, "method", "forward"));
    TRY(expect_text(text, source, "method_output_name", "last_hidden_state"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        FAIL_IF(json_object_size(json_object_get(c, keys[i])) > 0, STATUS_DATA,
                "%s: \"%s\" is not empty; kiln cannot follow it", source, keys[i]);
    }
    return status_ok();
}

static struct status read_transformer(struct sentence_model *m, const char *directory, json_t **c)
{
    char path[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(m->transformer, "%s", directory));
    TRY(read_object(c, path, directory, "sentence_bert_config.json", false));
    TRY(refuse_settings(*c, path));
    TRY(json_get_bool(*c, path, "do_lower_case", false, &m->lower_case));
    if (value_of(*c, "max_seq_length") != NULL) {
        TRY(json_get_int(*c, path, "max_seq_length", true, &m->max_length));
        FAIL_IF(m->max_length < 2, STATUS_DATA, "%s: \"max_seq_length\" is %lld; [CLS] and [SEP] alone are 2",
                path, (long long)m->max_length);
    }
    return status_ok();
}

/* ---- 1_Pooling ---- */

static struct status add_pooling(struct sentence_model *m, const json_t *name, const char *source)
{
    const char *text = json_is_string(name) ? json_string_value(name) : "no text";
    enum sentence_pooling p = sentence_pooling_find(text);
    FAIL_IF(p == SENTENCE_N_POOLINGS, STATUS_DATA, "%s: \"pooling_mode\" is %.60s, which kiln does not know",
            source, text);
    FAIL_IF(m->n_poolings == SENTENCE_N_POOLINGS, STATUS_DATA, "%s: \"pooling_mode\" has more than %d modes",
            source, SENTENCE_N_POOLINGS);
    m->poolings[m->n_poolings++] = p;
    return status_ok();
}

static const char *const pooling_flags[SENTENCE_N_POOLINGS] = {
    [SENTENCE_CLS] = "pooling_mode_cls_token",
    [SENTENCE_MAX] = "pooling_mode_max_tokens",
    [SENTENCE_MEAN] = "pooling_mode_mean_tokens",
    [SENTENCE_MEAN_SQRT_LEN] = "pooling_mode_mean_sqrt_len_tokens",
    [SENTENCE_WEIGHTED_MEAN] = "pooling_mode_weightedmean_tokens",
    [SENTENCE_LAST_TOKEN] = "pooling_mode_lasttoken",
};

static bool is_unknown_flag(const char *key)
{
    bool unknown = strncmp(key, "pooling_mode_", strlen("pooling_mode_")) == 0;
    for (int p = 0; p < SENTENCE_N_POOLINGS; p++) {
        unknown = unknown && strcmp(key, pooling_flags[p]) != 0;
    }
    return unknown;
}

/* A flag for each mode, as in old versions; the mean if none is set. */
static struct status read_pooling_flags(struct sentence_model *m, const json_t *c, const char *source)
{
    for (int p = 0; p < SENTENCE_N_POOLINGS; p++) {
        bool set = false;
        TRY(json_get_bool(c, source, pooling_flags[p], false, &set));
        if (set) {
            m->poolings[m->n_poolings++] = (enum sentence_pooling)p;
        }
    }
    for (void *i = json_object_iter((json_t *)c); i != NULL; i = json_object_iter_next((json_t *)c, i)) {
        FAIL_IF(is_unknown_flag(json_object_iter_key(i)), STATUS_DATA,
                "%s: \"%.80s\" is a mode that kiln does not know", source, json_object_iter_key(i));
    }
    if (m->n_poolings == 0) {
        m->poolings[m->n_poolings++] = SENTENCE_MEAN;
    }
    return status_ok();
}

static struct status read_pooling(struct sentence_model *m, const char *directory, json_t **c)
{
    char path[CHECKPOINT_PATH_BYTES];
    bool with_prompt = true;
    m->n_poolings = 0;
    TRY(read_object(c, path, directory, "config.json", true));
    TRY(json_get_bool(*c, path, "include_prompt", false, &with_prompt));
    m->skips_prompt = !with_prompt;
    const json_t *mode = value_of(*c, "pooling_mode");
    if (mode == NULL) {
        return read_pooling_flags(m, *c, path);
    }
    if (!json_is_array(mode)) {
        return add_pooling(m, mode, path);
    }
    for (size_t i = 0; i < json_array_size(mode); i++) {
        TRY(add_pooling(m, json_array_get(mode, i), path));
    }
    return m->n_poolings > 0 ? status_ok() : status_error(STATUS_DATA, "%s: \"pooling_mode\" is empty", path);
}

/* ---- N_Dense, N_Normalize ---- */

static struct status check_features(const json_t *c, const char *source)
{
    TRY(expect_text(c, source, "module_input_name", "sentence_embedding"));
    return expect_text(c, source, "module_output_name", "sentence_embedding");
}

bool sentence_activation_find(enum sentence_activation *a, const char *name)
{
    static const struct {
        const char *name;
        enum sentence_activation activation;
    } known[] = {{"torch.nn.modules.activation.Tanh", SENTENCE_TANH},
                 {"torch.nn.modules.linear.Identity", SENTENCE_IDENTITY},
                 {"torch.nn.modules.activation.ReLU", SENTENCE_RELU},
                 {"torch.nn.modules.activation.GELU", SENTENCE_GELU},
                 {"torch.nn.modules.activation.Sigmoid", SENTENCE_SIGMOID}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0) {
            *a = known[i].activation;
            return true;
        }
    }
    return false;
}

double sentence_activation_of(enum sentence_activation a, double x)
{
    switch (a) {
    case SENTENCE_TANH: return tanh(x);
    case SENTENCE_RELU: return x > 0 ? x : 0;
    case SENTENCE_GELU: return x * 0.5 * erfc(-x / sqrt(2));
    case SENTENCE_SIGMOID: return 1 / (1 + exp(-x));
    case SENTENCE_IDENTITY: break;
    }
    return x;
}

static struct status read_activation(struct sentence_layer *l, const json_t *c, const char *source)
{
    const char *name = "torch.nn.modules.activation.Tanh";
    TRY(json_get_string(c, source, "activation_function", false, &name));
    if (sentence_activation_find(&l->activation, name)) {
        return status_ok();
    }
    return status_error(STATUS_DATA, "%s: \"activation_function\" is %.80s, which kiln does not support",
                        source, name);
}

/* Reads [rows, cols], or [rows] where cols is 0. */
static struct status read_tensor(float **out, const struct safetensors *f, const char *source,
                                 const char *name, int64_t rows, int64_t cols)
{
    const struct stored_tensor *e = safetensors_find(f, name);
    int n_dims = cols == 0 ? 1 : 2;
    FAIL_IF(e == NULL || e->n_dims != n_dims || e->dims[0] != rows || (n_dims == 2 && e->dims[1] != cols),
            STATUS_DATA, "%s: the tensor %s is missing or not [%lld%s%.0lld], as config.json says", source,
            name, (long long)rows, n_dims == 2 ? ", " : "", (long long)cols);
    *out = malloc((size_t)(rows * (n_dims == 2 ? cols : 1)) * sizeof **out);
    FAIL_IF(*out == NULL, STATUS_MEMORY, "out of memory for the tensor %s of %s", name, source);
    tensor t = n_dims == 2 ? tensor_2d(*out, DTYPE_F32, rows, cols) : tensor_1d(*out, DTYPE_F32, rows);
    TRY(stored_tensor_read(e, t));
    int64_t bad = tensor_find_nonfinite(t);
    return bad < 0 ? status_ok()
                   : status_error(STATUS_NUMERIC, "%s: the weight %s is not finite (element %lld)", source,
                                  name, (long long)bad);
}

static struct status read_dense_weights(struct sentence_layer *l, const char *directory, bool bias,
                                        bool residual)
{
    char path[CHECKPOINT_PATH_BYTES];
    struct safetensors f;
    TRY(checkpoint_path(path, "%s/model.safetensors", directory));
    TRY(safetensors_open(&f, path));
    struct status s = read_tensor(&l->weight, &f, path, "linear.weight", l->n_out, l->n_in);
    if (!failed(s) && bias) {
        s = read_tensor(&l->bias, &f, path, "linear.bias", l->n_out, 0);
    }
    if (!failed(s) && residual && l->n_in != l->n_out) {
        s = read_tensor(&l->residual, &f, path, "residual.weight", l->n_out, l->n_in);
    }
    safetensors_close(&f);
    return s;
}

static struct status read_dense(struct sentence_layer *l, const char *directory, json_t **c)
{
    char path[CHECKPOINT_PATH_BYTES];
    bool bias = true, residual = false;
    const int64_t most = 1 << 20;
    TRY(read_object(c, path, directory, "config.json", true));
    TRY(check_features(*c, path));
    TRY(read_activation(l, *c, path));
    TRY(json_get_int(*c, path, "in_features", true, &l->n_in));
    TRY(json_get_int(*c, path, "out_features", true, &l->n_out));
    TRY(json_get_bool(*c, path, "bias", false, &bias));
    TRY(json_get_bool(*c, path, "use_residual", false, &residual));
    FAIL_IF(l->n_in < 1 || l->n_out < 1 || l->n_in > most || l->n_out > most, STATUS_DATA,
            "%s: \"in_features\" %lld and \"out_features\" %lld must be 1 to %lld", path, (long long)l->n_in,
            (long long)l->n_out, (long long)most);
    l->adds_input = residual && l->n_in == l->n_out;
    return read_dense_weights(l, directory, bias, residual);
}

static struct status read_normalize(struct sentence_layer *l, const char *directory, json_t **c)
{
    char path[CHECKPOINT_PATH_BYTES];
    l->normalize = true;
    TRY(read_object(c, path, directory, "config.json", false)); /* old versions do not write it */
    return check_features(*c, path);
}

/* ---- modules.json ---- */

enum module_kind {
    MODULE_TRANSFORMER,
    MODULE_POOLING,
    MODULE_DENSE,
    MODULE_NORMALIZE,
    MODULE_DROPOUT,
    N_MODULES
};

/* Classes are named by their path in the package, which has changed over time; a class of another package may
 * do anything. */
static enum module_kind kind_of(const char *type)
{
    static const char *const names[] = {"Transformer", "Pooling", "Dense", "Normalize", "Dropout"};
    static const char package[] = "sentence_transformers.";
    const char *dot = strrchr(type, '.');
    int kind = 0;
    if (dot == NULL || strncmp(type, package, sizeof package - 1) != 0) {
        return N_MODULES;
    }
    while (kind < N_MODULES && strcmp(dot + 1, names[kind]) != 0) {
        kind++;
    }
    return (enum module_kind)kind;
}

/* A module's folder must be in the model's. */
static struct status folder_of(char out[CHECKPOINT_PATH_BYTES], const char *directory, const char *folder,
                               const char *source)
{
    FAIL_IF(folder[0] == '/' || strstr(folder, "..") != NULL, STATUS_DATA,
            "%s: \"path\" is '%.60s', which is not in the model's directory", source, folder);
    return checkpoint_path(out, folder[0] == '\0' ? "%s" : "%s/%s", directory, folder);
}

static struct status read_module(struct sentence_model *m, size_t i, const json_t *module,
                                 const char *directory, const char *source)
{
    char folder[CHECKPOINT_PATH_BYTES];
    const char *type, *in = "";
    TRY(json_get_string(module, source, "type", true, &type));
    TRY(json_get_string(module, source, "path", false, &in));
    TRY(folder_of(folder, directory, in, source));
    enum module_kind kind = kind_of(type);
    FAIL_IF(kind == N_MODULES || (i < 2 ? (size_t)kind != i : kind < MODULE_DENSE), STATUS_DATA,
            "%s: module %zu is %.120s; kiln computes Transformer, then Pooling, then any of "
            "Dense, Normalize and Dropout: these vectors need sentence-transformers",
            source, i, type);
    FAIL_IF(m->n_layers == SENTENCE_MAX_LAYERS, STATUS_DATA, "%s has more than %d modules after the pooling",
            source, SENTENCE_MAX_LAYERS);
    json_t *config = NULL;
    struct sentence_layer *layer = &m->layers[m->n_layers];
    struct status s = status_ok();
    switch (kind) {
    case MODULE_TRANSFORMER: s = read_transformer(m, folder, &config); break;
    case MODULE_POOLING: s = read_pooling(m, folder, &config); break;
    case MODULE_DENSE: s = read_dense(layer, folder, &config); break;
    case MODULE_NORMALIZE: s = read_normalize(layer, folder, &config); break;
    default: break; /* Dropout drops nothing when it does not learn */
    }
    m->n_layers += kind == MODULE_DENSE || kind == MODULE_NORMALIZE;
    json_decref(config);
    return s;
}

static struct status read_modules(struct sentence_model *m, const char *directory, const char *path)
{
    struct file_map map;
    json_t *modules = NULL;
    TRY(file_map_open(&map, path));
    struct status s = json_parse(&modules, map.n == 0 ? "" : (const char *)map.data, map.n, path);
    file_map_close(&map);
    if (!failed(s) && (!json_is_array(modules) || json_array_size(modules) < 2)) {
        s = status_error(STATUS_DATA, "%s must be a list of at least two modules", path);
    }
    for (size_t i = 0; !failed(s) && i < json_array_size(modules); i++) {
        s = read_module(m, i, json_array_get(modules, i), directory, path);
    }
    json_decref(modules);
    return s;
}

static struct status check_widths(const struct sentence_model *m, const char *path)
{
    int64_t width = 0;
    for (int i = 0; i < m->n_layers; i++) {
        const struct sentence_layer *l = &m->layers[i];
        FAIL_IF(!l->normalize && width != 0 && l->n_in != width, STATUS_DATA,
                "%s: a Dense module takes vectors of %lld numbers, but gets %lld", path, (long long)l->n_in,
                (long long)width);
        width = l->normalize ? width : l->n_out;
    }
    return status_ok();
}

/* "truncate_dim": the first numbers of the vector, after all modules (encode of SentenceTransformer.py). */
static struct status read_truncation(struct sentence_model *m, const char *config)
{
    int64_t n = 0;
    if (m->config == NULL || json_is_null(json_object_get(m->config, "truncate_dim"))) {
        return status_ok();
    }
    TRY(json_get_int(m->config, config, "truncate_dim", false, &n));
    bool given = json_object_get(m->config, "truncate_dim") != NULL;
    FAIL_IF(given && (n < 1 || m->n_layers == SENTENCE_MAX_LAYERS), STATUS_DATA,
            "%s: \"truncate_dim\" is %lld, but must be at least 1, after at most %d modules", config,
            (long long)n, SENTENCE_MAX_LAYERS - 1);
    if (given) {
        m->layers[m->n_layers++] = (struct sentence_layer){.truncates = true, .n_out = n};
    }
    return status_ok();
}

static struct status open_all(struct sentence_model *m, const char *path)
{
    char modules[CHECKPOINT_PATH_BYTES], config[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(m->transformer, "%s", path));
    TRY(checkpoint_path(modules, "%s/modules.json", path));
    m->found = file_exists(modules);
    if (!m->found) {
        m->poolings[m->n_poolings++] = SENTENCE_MEAN;
        return status_ok();
    }
    TRY(read_modules(m, path, modules));
    TRY(check_widths(m, modules));
    TRY(read_object(&m->config, config, path, "config_sentence_transformers.json", false));
    TRY(expect_text(m->config, config, "model_type", "SentenceTransformer"));
    TRY(read_truncation(m, config));
    const char *text;
    return status_context(sentence_model_prompt(m, NULL, &text), "%s", config);
}

struct status sentence_model_open(struct sentence_model *m, const char *path)
{
    *m = (struct sentence_model){0};
    struct status s = open_all(m, path);
    if (failed(s)) {
        sentence_model_close(m);
    }
    return s;
}

void sentence_model_close(struct sentence_model *m)
{
    for (int i = 0; i < SENTENCE_MAX_LAYERS; i++) {
        free(m->layers[i].weight);
        free(m->layers[i].bias);
        free(m->layers[i].residual);
    }
    json_decref(m->config);
    *m = (struct sentence_model){0};
}

static struct status unknown_prompt(const json_t *prompts, const char *name, enum status_code code)
{
    struct buf names = {0};
    for (void *i = json_object_iter((json_t *)prompts); i != NULL;
         i = json_object_iter_next((json_t *)prompts, i)) {
        buf_printf(&names, "%s%s", names.n == 0 ? ": " : ", ", json_object_iter_key(i));
    }
    struct status s = status_error(code, "no prompt of the model is called '%.60s'; it has %zu%.200s", name,
                                   json_object_size(prompts), buf_text(&names));
    buf_fini(&names);
    return s;
}

struct status sentence_model_prompt(const struct sentence_model *m, const char *name, const char **text)
{
    const json_t *prompts = json_object_get(m->config, "prompts");
    const json_t *by_default = value_of(m->config, "default_prompt_name");
    *text = "";
    enum status_code code = name != NULL ? STATUS_USAGE : STATUS_DATA; /* the file's own name */
    name = name != NULL ? name : json_string_value(by_default);
    if (name == NULL) {
        return by_default == NULL ? status_ok()
                                  : status_error(STATUS_DATA, "\"default_prompt_name\" must be a text");
    }
    const json_t *prompt = json_object_get(prompts, name);
    if (prompt == NULL) {
        return unknown_prompt(prompts, name, code);
    }
    *text = json_is_string(prompt) ? json_string_value(prompt) : "";
    return status_ok();
}

int64_t sentence_layer_width(const struct sentence_layer *l, int64_t width)
{
    bool keeps = l->normalize || (l->truncates && width < l->n_out);
    return keeps ? width : l->n_out;
}

int64_t sentence_model_width(const struct sentence_model *m, int64_t hidden_size)
{
    int64_t width = m->n_poolings * hidden_size;
    for (int i = 0; i < m->n_layers; i++) {
        width = sentence_layer_width(&m->layers[i], width);
    }
    return width;
}

/* ---- writing ---- */

static json_t *module_to_json(int index, const char *folder, const char *type)
{
    char name[12], whole[80];
    snprintf(name, sizeof name, "%d", index);
    snprintf(whole, sizeof whole, "sentence_transformers.models.%s", type);
    return json_pack("{s:i, s:s, s:s, s:s}", "idx", index, "name", name, "path", folder, "type", whole);
}

static json_t *pooling_to_json(enum sentence_pooling pooling, int64_t width)
{
    json_t *c = json_pack("{s:I, s:b}", "word_embedding_dimension", (json_int_t)width, "include_prompt", 1);
    for (int p = 0; p < SENTENCE_N_POOLINGS; p++) {
        json_object_set_new(c, pooling_flags[p], json_boolean(p == (int)pooling));
    }
    return c;
}

struct status sentence_model_write(const char *path, enum sentence_pooling pooling, int64_t width,
                                   int64_t max_length)
{
    char file[CHECKPOINT_PATH_BYTES];
    TRY(checkpoint_path(file, "%s/1_Pooling", path));
    TRY(file_make_directories(file));
    const struct {
        const char *name;
        json_t *content;
    } files[] = {
        {"1_Pooling/config.json", pooling_to_json(pooling, width)},
        {"sentence_bert_config.json",
         json_pack("{s:I, s:b}", "max_seq_length", (json_int_t)max_length, "do_lower_case", 0)},
        {"config_sentence_transformers.json",
         json_pack("{s:{}, s:n, s:s}", "prompts", "default_prompt_name", "similarity_fn_name", "cosine")},
        {"modules.json", json_pack("[o, o]", module_to_json(0, "", "Transformer"),
                                   module_to_json(1, "1_Pooling", "Pooling"))}};
    struct status s = status_ok();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct status path_fits = checkpoint_path(file, "%s/%s", path, files[i].name);
        s = failed(s) ? s : path_fits;
        if (failed(s)) {
            json_decref(files[i].content);
        } else {
            s = json_file_write(file, files[i].content);
        }
    }
    return s;
}
