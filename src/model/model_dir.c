#include "model/model_dir.h"

#include "text/tokenizer_open.h"
#include "model/checkpoint.h"

#include <stdlib.h>
#include <string.h>

static bool find_file(char path[CHECKPOINT_PATH_BYTES], const char *directory, const char *name)
{
    return !failed(checkpoint_path(path, "%s/%s", directory, name)) && file_exists(path);
}

/* config.json, or the name that another release of a family has for it. */
static bool find_config(char path[CHECKPOINT_PATH_BYTES], const char *directory)
{
    bool found = find_file(path, directory, "config.json");
    for (size_t i = 0; !found && model_family_at(i) != NULL; i++) {
        const char *name = model_family_at(i)->old_config;
        found = name != NULL && find_file(path, directory, name);
    }
    return found;
}

/* The caller json_decref's it. */
static struct status read_config(struct model_dir *m, json_t **root)
{
    char path[CHECKPOINT_PATH_BYTES];
    if (!find_config(path, m->path)) {
        return status_error(
            STATUS_DATA,
            "%s has no config.json: is it a model? (a training run's models are its ckpt_STEP "
            "directories)",
            m->path);
    }
    TRY(json_read_object(root, path));
    m->family = model_family_find(*root);
    m->config = calloc(1, m->family->config_bytes);
    return m->config == NULL ? status_error(STATUS_MEMORY, "out of memory for %s", path)
                             : m->family->parse_config(m->config, *root, path);
}

static struct status read_tokenizer(struct model_dir *m)
{
    TRY(tokenizer_open_directory(&m->tokenizer, &m->max_length, m->path));
    int64_t positions = m->family->sizes(m->config).max_length;
    m->max_length = m->max_length < positions ? m->max_length : positions;
    return status_ok();
}

/* NVIDIA's trainer and others round a vocabulary up; rows that config.json does not count are unused. */
static bool fits_padded(int64_t rows, int64_t n_pieces)
{
    for (int64_t multiple = 1; multiple <= 128; multiple *= 2) {
        if (rows == (n_pieces + multiple - 1) / multiple * multiple) {
            return true;
        }
    }
    return false;
}

/* Three places say how large the vocabulary is: the pieces, config.json and the embeddings. */
static struct status check_vocab_size(struct model_dir *m)
{
    const char *name = m->family->words;
    const struct model_tensor *t = model_files_find(&m->files, name, false);
    t = t != NULL ? t : model_files_find(&m->files, name, true);
    if (t == NULL) {
        return status_error(STATUS_DATA, "%s holds no tensor %s: it is no %s", m->path, name,
                            m->family->name);
    }
    int64_t rows = t->entry->dims[0], says = m->family->sizes(m->config).vocab_size, n = m->tokenizer.n;
    bool fits = says == rows ? rows >= n : (says == 0 || says == n) && fits_padded(rows, n);
    if (!fits) {
        return status_error(
            STATUS_DATA,
            "%s: config.json has \"vocab_size\" %lld, %s has %lld rows, and the vocabulary has %lld "
            "pieces: they are from different models",
            m->path, (long long)says, t->entry->name, (long long)rows, (long long)n);
    }
    m->family->set_words(m->config, says == rows ? rows : n, n);
    m->vocab_rows = rows;
    return status_ok();
}

static int task_of(const struct model_dir *m, const json_t *config)
{
    bool has[NAMES_N_PARTS] = {false};
    for (int i = 0; i < m->files.n_tensors; i++) {
        const struct names_hf *as = &m->files.tensors[i].as;
        has[as->part] = has[as->part] || !as->tied;
    }
    return m->family->task_of(has, config);
}

static struct status read_labels(struct model_dir *m, const json_t *config)
{
    m->labels = calloc(1, sizeof *m->labels);
    if (m->labels == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the names of labels");
    }
    int64_t n = m->family->set_labels(m->config, m->task, m->labels);
    return label_names_parse(m->labels, config, n, m->path);
}

/* Reads everything that config.json decides. */
static struct status open_files(struct model_dir *m, const json_t *config)
{
    TRY(read_tokenizer(m));
    TRY(model_files_open(&m->files, m->path, m->family));
    TRY(check_vocab_size(m));
    m->task = task_of(m, config);
    return m->family->has_labels(m->task) ? read_labels(m, config) : status_ok();
}

static struct status open_all(struct model_dir *m)
{
    char manifest[CHECKPOINT_PATH_BYTES];
    char aside[TEMPORARY_PATH_BYTES];
    if (temporary_find_aside(aside, m->path)) {
        return status_error(STATUS_DATA,
                            "%s is missing: a run that died while replacing it left it as %s; rename that",
                            m->path, aside);
    }
    if (!file_is_directory(m->path)) {
        return status_error(STATUS_DATA, "%s is no directory with a config.json", m->path);
    }
    if (find_file(manifest, m->path, "manifest.json")) {
        struct checkpoint c;
        TRY(checkpoint_open_model(&c, m->path));
        checkpoint_close(&c);
    }
    json_t *config = NULL;
    struct status s = read_config(m, &config);
    if (!failed(s)) {
        s = open_files(m, config);
    }
    json_decref(config);
    return s;
}

struct status model_dir_open(struct model_dir *m, const char *path)
{
    *m = (struct model_dir){0};
    TRY(checkpoint_path(m->path, "%s", path));
    struct status s = open_all(m);
    if (failed(s)) {
        model_dir_close(m);
    }
    return s;
}

void model_dir_close(struct model_dir *m)
{
    model_files_close(&m->files);
    tokenizer_fini(&m->tokenizer);
    label_names_destroy(m->labels);
    free(m->config);
    *m = (struct model_dir){0};
}
