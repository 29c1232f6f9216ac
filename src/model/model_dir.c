#include "model/model_dir.h"

#include "text/tokenizer_open.h"
#include "model/checkpoint.h"

#include <stdlib.h>
#include <string.h>

/* The first of two files that exists, or NULL. */
static const char *find_file(char path[CHECKPOINT_PATH_BYTES], const char *directory, const char *name,
                             const char *other)
{
    if (failed(checkpoint_path(path, "%s/%s", directory, name))) {
        return NULL;
    }
    if (!file_exists(path) && other != NULL && failed(checkpoint_path(path, "%s/%s", directory, other))) {
        return NULL;
    }
    return file_exists(path) ? path : NULL;
}

static struct status parse_config(struct model_dir *m, const json_t *root, const char *path)
{
    bool decoder = false, cross = false;
    TRY(bert_config_parse(&m->config, root, path));
    TRY(json_get_bool(root, path, "is_decoder", false, &decoder));
    TRY(json_get_bool(root, path, "add_cross_attention", false, &cross));
    return decoder || cross
               ? status_error(STATUS_DATA,
                              "%s: \"is_decoder\" or \"add_cross_attention\" is true; kiln's BERT is an "
                              "encoder",
                              path)
               : status_ok();
}

/* The caller json_decref's it. */
static struct status read_config(struct model_dir *m, json_t **root)
{
    char path[CHECKPOINT_PATH_BYTES];
    if (find_file(path, m->path, "config.json", "bert_config.json") == NULL) {
        return status_error(
            STATUS_DATA,
            "%s has no config.json: is it a model? (a training run's models are its ckpt_STEP "
            "directories)",
            m->path);
    }
    TRY(json_read_object(root, path));
    return parse_config(m, *root, path);
}

static struct status read_tokenizer(struct model_dir *m)
{
    TRY(tokenizer_open_directory(&m->tokenizer, &m->max_length, m->path));
    if (m->max_length > m->config.max_position_embeddings) {
        m->max_length = m->config.max_position_embeddings;
    }
    return status_ok();
}

/* NVIDIA's trainer and others round a vocabulary up; rows that config.json does not count mean nothing. */
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
    static const char name[] = "bert.embeddings.word_embeddings.weight";
    const struct model_tensor *t = model_files_find(&m->files, name, false);
    t = t != NULL ? t : model_files_find(&m->files, name, true);
    if (t == NULL) {
        return status_error(STATUS_DATA, "%s holds no tensor %s: it is no BERT", m->path, name);
    }
    int64_t rows = t->entry->dims[0], says = m->config.vocab_size, n = m->tokenizer.n;
    bool fits = says == rows ? rows >= n : (says == 0 || says == n) && fits_padded(rows, n);
    if (!fits) {
        return status_error(
            STATUS_DATA,
            "%s: config.json has \"vocab_size\" %lld, %s has %lld rows, and the vocabulary has %lld "
            "pieces: they are not of one model",
            m->path, (long long)says, t->entry->name, (long long)rows, (long long)n);
    }
    m->config.vocab_size = says == rows ? rows : n;
    m->config.n_words = n;
    m->vocab_rows = rows;
    return status_ok();
}

static bool has_part(const struct model_files *files, enum names_part part)
{
    for (int i = 0; i < files->n_tensors; i++) {
        if (files->tensors[i].as.part == part && !files->tensors[i].as.tied) {
            return true;
        }
    }
    return false;
}

/* Whether config.json names the class of a task. */
static bool names_class(const json_t *config, enum bert_task task)
{
    size_t i;
    const json_t *name;
    json_array_foreach(json_object_get(config, "architectures"), i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), bert_task_class(task)) == 0) {
            return true;
        }
    }
    return false;
}

/* The heads tell more than "architectures", which trainers forget to change; but whether a classifier is of texts or of
 * tokens only that says, and without it the pooler, which tokens have none of. */
static enum bert_task task_of(const struct model_files *files, const json_t *config)
{
    if (has_part(files, NAMES_CLASSIFIER)) {
        bool tokens =
            names_class(config, BERT_TASK_TOKEN_CLASSIFICATION) ||
            (!names_class(config, BERT_TASK_SEQUENCE_CLASSIFICATION) && !has_part(files, NAMES_POOLER));
        return tokens ? BERT_TASK_TOKEN_CLASSIFICATION : BERT_TASK_SEQUENCE_CLASSIFICATION;
    }
    if (has_part(files, NAMES_QA)) {
        return BERT_TASK_QUESTION_ANSWERING;
    }
    if (has_part(files, NAMES_MLM)) {
        return has_part(files, NAMES_NSP) && has_part(files, NAMES_POOLER) ? BERT_TASK_PRETRAINING
                                                                           : BERT_TASK_MASKED_LM;
    }
    return BERT_TASK_ENCODER;
}

static struct status read_labels(struct model_dir *m, const json_t *config)
{
    m->labels = calloc(1, sizeof *m->labels);
    if (m->labels == NULL) {
        return status_error(STATUS_MEMORY, "out of memory for the names of labels");
    }
    m->config.labels = m->labels;
    if (m->task == BERT_TASK_TOKEN_CLASSIFICATION) {
        m->config.problem = BERT_SINGLE_LABEL;
    }
    return label_names_parse(m->labels, config, m->config.num_labels, m->path);
}

/* Everything that config.json has a say in. */
static struct status open_files(struct model_dir *m, const json_t *config)
{
    TRY(read_tokenizer(m));
    TRY(model_files_open(&m->files, m->path));
    TRY(check_vocab_size(m));
    m->task = task_of(&m->files, config);
    return bert_task_has_classifier(m->task) ? read_labels(m, config) : status_ok();
}

static struct status open_all(struct model_dir *m)
{
    char manifest[CHECKPOINT_PATH_BYTES];
    char aside[TEMPORARY_PATH_BYTES];
    if (temporary_find_aside(aside, m->path)) {
        return status_error(STATUS_DATA,
                            "%s is missing: a run that died while it replaced it left it as %s; rename that",
                            m->path, aside);
    }
    if (!file_is_directory(m->path)) {
        return status_error(STATUS_DATA, "%s is no directory with a config.json", m->path);
    }
    if (find_file(manifest, m->path, "manifest.json", NULL) != NULL) {
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
    *m = (struct model_dir){0};
}
