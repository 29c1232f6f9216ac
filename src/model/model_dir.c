#include "model/model_dir.h"

#include "core/hash.h"
#include "core/log.h"
#include "text/tokenizer_open.h"
#include "model/checkpoint.h"
#include "model/model_sums.h"

#include <stdlib.h>
#include <string.h>

/* The configuration that a command has. */
static struct status take_config(struct model_dir *m, struct model_dir_given given)
{
    m->family = given.family;
    m->takes_config = true;
    m->config = malloc(given.family->config_bytes);
    FAIL_IF(m->config == NULL, STATUS_MEMORY, "out of memory for a configuration");
    memcpy(m->config, given.config, given.family->config_bytes);
    return status_ok();
}

/* Compares what no shape shows with config.json: the number of heads, and the epsilon, which some files
 * have in fp32; 0: the files do not say it. */
static struct status compare_unshown(const struct model_dir *m, struct model_family_sizes says,
                                     int64_t n_heads, double norm_eps)
{
    FAIL_IF(n_heads != 0 && n_heads != says.heads.n, STATUS_DATA,
            "%s is of a model of %lld heads, but config.json says %lld", m->path, (long long)n_heads,
            (long long)says.heads.n);
    return norm_eps == 0 || (float)norm_eps == (float)says.norm_eps
               ? status_ok()
               : status_error(STATUS_DATA, "%s is of a model with the epsilon %g, but config.json says %g",
                              m->path, norm_eps, says.norm_eps);
}

/* A config.json in the directory of a GGUF file may not say another model. */
static struct status check_beside(const struct model_dir *m)
{
    char path[CHECKPOINT_PATH_BYTES];
    const struct model_family *family;
    struct model_family_sizes own = m->family->sizes(m->config);
    json_t *root;
    void *config;
    if (!file_is_directory(m->path) || !model_place_has(path, m->path, "config.json")) {
        return status_ok();
    }
    TRY(model_family_read_config(&family, &config, &root, path));
    struct status s = compare_unshown(m, family->sizes(config), own.heads.n, own.norm_eps);
    free(config);
    json_decref(root);
    return s;
}

/* The caller json_decref's it. */
static struct status read_config(struct model_dir *m, json_t **root, struct model_dir_given all)
{
    const char *given = all.config_file;
    char path[CHECKPOINT_PATH_BYTES];
    if (model_place_is_gguf(&m->place)) {
        TRY(model_family_read_config(&m->family, &m->config, root, m->place.tensors));
        return check_beside(m);
    }
    if (all.config != NULL && !model_place_find_config(path, m->place.directory)) {
        return take_config(m, all);
    }
    if (!model_place_find_config(path, m->place.directory)) {
        bool is_file = m->place.tensors[0] != '\0';
        FAIL_IF(given == NULL && is_file, STATUS_DATA,
                "there is no config.json or %s beside %s: put it there, or name it by "
                "--config_file where the command has that flag",
                model_families[0]->old_config, m->path);
        if (given == NULL) {
            TRY(model_files_name_other(m->place.directory));
            return status_error(STATUS_DATA, "%s has no config.json: is it a model?", m->path);
        }
        TRY(checkpoint_path(path, "%s", given));
    }
    return model_family_read_config(&m->family, &m->config, root, path);
}

static struct status read_tokenizer(struct model_dir *m, struct model_dir_given all)
{
    const char *given = all.vocab_file;
    char path[CHECKPOINT_PATH_BYTES];
    const char *directory = m->place.directory;
    bool has_own =
        model_place_is_gguf(&m->place) ||
        (model_place_has(path, directory, "vocab.txt") && file_has_bytes(path)) ||
        model_place_has(path, directory, "tokenizer.json") ||
        model_place_has(path, directory, "tokenizer.model") ||
        (model_place_has(path, directory, "vocab.json") && model_place_has(path, directory, "merges.txt"));
    if (given != NULL && !has_own) {
        m->max_length = INT64_MAX;
        TRY(tokenizer_open_beside(&m->tokenizer, given));
    } else if (m->takes_config && !has_own) {
        m->max_length = INT64_MAX;
        m->tokenizer.n = (int32_t)all.n_words;
        m->tokenizer.hash = hash_fnv1a("", 0); /* unknown */
    } else {
        TRY(tokenizer_open_directory(&m->tokenizer, &m->max_length, directory));
    }
    int64_t positions = m->family->sizes(m->config).max_length;
    m->max_length = m->max_length < positions ? m->max_length : positions;
    return status_ok();
}

/* Megatron's 128 words for each of up to 32 ranks of tensor parallelism. */
enum { MOST_PADDING = 128 * 32 };

/* NVIDIA's trainer and others round a vocabulary up; rows that config.json does not count are unused. */
static bool fits_padded(int64_t rows, int64_t n_pieces)
{
    for (int64_t multiple = 1; multiple <= MOST_PADDING; multiple *= 2) {
        if (rows == (n_pieces + multiple - 1) / multiple * multiple) {
            return true;
        }
    }
    return false;
}

/* The files have tensors, but not those of the family: the first says what they are. */
static struct status no_model(const struct model_dir *m)
{
    const char *lacks = m->family->words;
    FAIL_IF(m->files.n_tensors == 0, STATUS_DATA, "%s holds no tensors, so it lacks %s", m->path, lacks);
    const struct model_tensor *first = &m->files.tensors[0];
    FAIL_IF(first->as.part == NAMES_STATE || strncmp(first->as.name, "optimizer", strlen("optimizer")) == 0,
            STATUS_DATA,
            "%s holds the state of an optimizer but no tensor %s: the weights are in another file", m->path,
            lacks);
    return status_error(STATUS_DATA, "%s holds no tensor %s, so it is not a %s; its first tensor is %.80s",
                        m->path, lacks, m->family->name, first->stored.name);
}

/* Tokens that were added to a tokenizer whose model did not grow with it, such as one for padding. */
static void leave_out_added(struct model_dir *m, int64_t rows)
{
    int32_t n = m->tokenizer.n;
    if (n > rows && tokenizer_cut(&m->tokenizer, (int32_t)rows)) {
        log_warning(
            "%s: the tokenizer has %d tokens, but the model has rows for %lld: the last %lld, which were "
            "added, are not used, and a text that has them has them as text",
            m->path, n, (long long)rows, (long long)(n - rows));
    }
}

/* Three places say how large the vocabulary is: the pieces, config.json and the embeddings. */
static struct status check_vocab_size(struct model_dir *m)
{
    const char *name = m->family->words;
    const struct model_tensor *t = model_files_find(&m->files, name, false);
    t = t != NULL ? t : model_files_find(&m->files, name, true);
    if (t == NULL) {
        return no_model(m);
    }
    int64_t rows = t->stored.dims[0], says = m->family->sizes(m->config).vocab_size;
    leave_out_added(m, says == rows ? rows : INT32_MAX);
    int64_t n = m->tokenizer.n;
    bool padded_twice = m->files.megatron != NULL && says >= n && fits_padded(rows, says);
    bool fits = says == rows ? rows >= n : (says == 0 || says == n) && fits_padded(rows, n);
    /* rows of a run's own configuration are its own; universal checkpoints have the pieces alone */
    bool own_rows = m->takes_config || (m->files.megatron != NULL && fits_padded(says, n));
    fits = fits || (own_rows && fits_padded(rows, n));
    fits = fits || padded_twice; /* ranks of tensor parallelism round up what was rounded up before */
    FAIL_IF(!fits, STATUS_DATA,
            "%s: config.json has \"vocab_size\" %lld, %s has %lld rows, and the vocabulary "
            "has %lld pieces: they belong to different models",
            m->path, (long long)says, t->stored.name, (long long)rows, (long long)n);
    if (rows > n && !fits_padded(rows, n)) {
        log_warning(
            "%s: %s has %lld rows, but the tokenizer has %lld pieces: the last %lld rows are never read",
            m->path, t->stored.name, (long long)rows, (long long)n, (long long)(rows - n));
    }
    m->family->set_words(m->config, says == rows || m->takes_config ? says : n, n);
    m->vocab_rows = rows;
    return status_ok();
}

static enum model_task first_task(const struct model_family *f)
{
    int task = 0;
    while (f->class_of((enum model_task)task) == NULL) {
        task++;
    }
    return (enum model_task)task;
}

static enum model_task task_of(const struct model_dir *m, const json_t *config)
{
    bool has[NAMES_N_PARTS] = {false};
    for (int i = 0; i < m->files.n_tensors; i++) {
        const struct names_hf *as = &m->files.tensors[i].as;
        has[as->part] = has[as->part] || !as->tied;
    }
    return m->family->task_of != NULL ? m->family->task_of(has, config) : first_task(m->family);
}

struct model_family_sizes model_dir_sizes(const struct model_dir *m)
{
    return m->family->sizes(m->config);
}

struct model_labels *model_dir_labels(const struct model_dir *m)
{
    return m->family->labels == NULL ? NULL : m->family->labels(m->config);
}

void model_dir_drop_rows(struct model_dir *m)
{
    m->family->set_words(m->config, m->tokenizer.n, m->tokenizer.n);
}

struct status model_dir_declare(const struct model_dir *m, struct param_table *params, enum model_task task)
{
    struct model *model;
    TRY(m->family->create(&model, m->config, task));
    struct status s = model->type->declare(model, params);
    free(model);
    return s;
}

struct status model_dir_check_config(const struct model_dir *m, const char *path)
{
    const struct model_family *family;
    void *config;
    json_t *root;
    TRY(model_family_read_config(&family, &config, &root, path));
    struct status s = family == m->family
                          ? family->same_architecture(config, m->config)
                          : status_error(STATUS_DATA, "it describes a %s, but the model is a %s",
                                         family->name, m->family->name);
    free(config);
    json_decref(root);
    return s;
}

static struct status read_labels(struct model_dir *m, const json_t *config)
{
    m->labels = calloc(1, sizeof *m->labels);
    FAIL_IF(m->labels == NULL, STATUS_MEMORY, "out of memory for the names of labels");
    struct model_labels *labels = model_dir_labels(m);
    int64_t n = labels->n;
    labels->names = m->labels;
    if (m->task == MODEL_TASK_TOKEN_CLASSIFICATION) { /* one number a word only where the file says so */
        const char *problem = json_string_value(json_object_get(config, "problem_type"));
        labels->problem = PROBLEM_SINGLE_LABEL;
        if (problem != NULL && strcmp(problem, label_problem_name(PROBLEM_REGRESSION)) == 0) {
            labels->problem = PROBLEM_REGRESSION;
        }
    }
    return label_names_parse(m->labels, config, n, m->path);
}

/* Reads everything that config.json decides. */
static struct status open_files(struct model_dir *m, const json_t *config, struct model_dir_given given)
{
    TRY(read_tokenizer(m, given));
    m->tokenizer.has_one_segment = model_dir_sizes(m).has_one_segment;
    TRY(model_files_open(&m->files, &m->place, m->family, m->family->sizes(m->config).n_layers));
    TRY(given.config != NULL ? status_ok() /* who gives another compares it */
                             : compare_unshown(m, model_dir_sizes(m), m->files.n_heads, m->files.norm_eps));
    TRY(check_vocab_size(m));
    m->task = task_of(m, config);
    return model_task_has_labels(m->task) ? read_labels(m, config) : status_ok();
}

static struct status open_all(struct model_dir *m, struct model_dir_given given)
{
    char manifest[CHECKPOINT_PATH_BYTES];
    TRY(model_place_find(&m->place, m->path));
    TRY(model_sums_check(m->place.directory));
    if (m->place.tensors[0] == '\0' && model_place_has(manifest, m->place.directory, "manifest.json")) {
        struct checkpoint c;
        TRY(checkpoint_open_model(&c, m->place.directory));
        checkpoint_close(&c);
    }
    json_t *config = NULL;
    struct status s = read_config(m, &config, given);
    if (!failed(s)) {
        s = open_files(m, config, given);
    }
    json_decref(config);
    return s;
}

struct status model_dir_open_given(struct model_dir *m, const char *path, struct model_dir_given given)
{
    *m = (struct model_dir){0};
    TRY(checkpoint_path(m->path, "%s", path));
    struct status s = open_all(m, given);
    if (failed(s)) {
        model_dir_close(m);
    }
    return s;
}

struct status model_dir_open(struct model_dir *m, const char *path)
{
    return model_dir_open_given(m, path, (struct model_dir_given){0});
}

void model_dir_close(struct model_dir *m)
{
    model_files_close(&m->files);
    tokenizer_fini(&m->tokenizer);
    label_names_destroy(m->labels);
    free(m->config);
    *m = (struct model_dir){0};
}
