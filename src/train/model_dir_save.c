/* model_dir_save: writing a model directory as `transformers` does: shared tensors once, the bare encoder
 * without the prefix "bert.", shards of whole tensors in the order of the parameter table. */
#include "core/log.h"
#include "text/tokenizer_json.h"
#include "train/checkpoint.h"
#include "train/model_dir.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARD_NAME_BYTES = 64 };

struct saving {
    const struct model_dir_contents *c;
    char temporary[CHECKPOINT_PATH_BYTES]; /* the directory that is filled */
    char aside[CHECKPOINT_PATH_BYTES];     /* where the one that is replaced goes */
    struct safetensors_item *items;        /* [params->n] */
    int *shards;                           /* [params->n] of each item, from 0 */
    int n_shards;
};

static struct status out_of_memory(const char *what)
{
    return status_error(STATUS_MEMORY, "out of memory for %s", what);
}

static struct status write_json(const struct saving *s, const char *name, json_t *root)
{
    char path[CHECKPOINT_PATH_BYTES];
    char *text = root == NULL ? NULL : json_to_text(root);
    struct status status = checkpoint_path(path, "%s/%s", s->temporary, name);
    if (text == NULL) {
        status = out_of_memory(name);
    }
    if (!failed(status)) {
        status = file_write_atomic(path, text, strlen(text));
    }
    free(text);
    return status;
}

/* Writes and frees; NULL stands for memory that ran out. */
static struct status write_own_json(const struct saving *s, const char *name, json_t *root)
{
    struct status status = write_json(s, name, root);
    json_decref(root);
    return status;
}

static struct status write_config(const struct saving *s)
{
    json_t *root = bert_config_to_json(s->c->config, bert_task_class(s->c->task));
    if (root != NULL && json_object_set_new(root, "pad_token_id", json_integer(s->c->vocab->pad)) != 0) {
        json_decref(root);
        root = NULL;
    }
    return write_own_json(s, "config.json", root);
}

static struct status write_tokenizer(const struct saving *s)
{
    const struct vocab *v = s->c->vocab;
    struct tokenizer_config text = {s->c->lower_case, s->c->config->max_position_embeddings};
    char path[CHECKPOINT_PATH_BYTES];
    json_t *root;
    TRY(checkpoint_path(path, "%s/vocab.txt", s->temporary));
    TRY(file_write_atomic(path, v->text, v->text_bytes));
    TRY(write_own_json(s, "tokenizer_config.json", tokenizer_config_to_json(&text)));
    TRY(write_own_json(s, "special_tokens_map.json",
                       json_pack("{s:s, s:s, s:s, s:s, s:s}", "unk_token", "[UNK]", "sep_token", "[SEP]",
                                 "pad_token", "[PAD]", "cls_token", "[CLS]", "mask_token", "[MASK]")));
    TRY(tokenizer_json_make(&root, v, s->c->lower_case));
    return write_own_json(s, "tokenizer.json", root);
}

/* The files of a bare encoder have no prefix. */
static const char *file_name_of(const struct saving *s, const struct param *p)
{
    static const char prefix[] = "bert.";
    size_t n = sizeof prefix - 1;
    return s->c->task == BERT_TASK_ENCODER && strncmp(p->name, prefix, n) == 0 ? p->name + n : p->name;
}

/* Fills shards in order; a tensor larger than a shard gets one of its own. */
static struct status plan_shards(struct saving *s)
{
    const struct param_table *t = s->c->params;
    uint64_t limit = s->c->max_shard_bytes == 0 ? MODEL_DIR_SHARD_BYTES : s->c->max_shard_bytes, used = 0;
    s->items = calloc((size_t)t->n, sizeof *s->items);
    s->shards = calloc((size_t)t->n, sizeof *s->shards);
    if (s->items == NULL || s->shards == NULL) {
        return out_of_memory("the list of tensors");
    }
    for (int i = 0; i < t->n; i++) {
        s->items[i] = (struct safetensors_item){file_name_of(s, &t->params[i]),
                                                param_view(&t->params[i], s->c->master)};
        uint64_t bytes = tensor_bytes(s->items[i].shape);
        if (used > 0 && used + bytes > limit) {
            s->n_shards++;
            used = 0;
        }
        used += bytes;
        s->shards[i] = s->n_shards;
    }
    s->n_shards++;
    return status_ok();
}

static void shard_name(char name[SHARD_NAME_BYTES], const struct saving *s, int shard)
{
    if (s->n_shards == 1) {
        snprintf(name, SHARD_NAME_BYTES, "model.safetensors");
    } else {
        snprintf(name, SHARD_NAME_BYTES, "model-%05d-of-%05d.safetensors", shard + 1, s->n_shards);
    }
}

/* Items [first, last) into the shard's file. */
static struct status write_shard(const struct saving *s, int shard, int first, int last)
{
    char path[CHECKPOINT_PATH_BYTES], name[SHARD_NAME_BYTES];
    struct safetensors_writer w;
    shard_name(name, s, shard);
    TRY(checkpoint_path(path, "%s/%s", s->temporary, name));
    TRY(safetensors_writer_open(&w, path, s->items + first, last - first));
    for (int i = first; i < last; i++) {
        safetensors_writer_put(&w, s->items[i].shape);
    }
    return safetensors_writer_commit(&w);
}

static struct status write_index(const struct saving *s)
{
    json_t *map = json_object();
    uint64_t total = 0;
    bool complete = map != NULL;
    for (int i = 0; i < s->c->params->n; i++) {
        char name[SHARD_NAME_BYTES];
        shard_name(name, s, s->shards[i]);
        complete &= json_object_set_new(map, s->items[i].name, json_string(name)) == 0;
        total += tensor_bytes(s->items[i].shape);
    }
    json_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    struct status status = complete ? write_json(s, "model.safetensors.index.json", root)
                                    : out_of_memory("model.safetensors.index.json");
    json_decref(root);
    return status;
}

static struct status write_weights(struct saving *s)
{
    int n = s->c->params->n;
    TRY(plan_shards(s));
    for (int first = 0; first < n;) {
        int last = first + 1;
        while (last < n && s->shards[last] == s->shards[first]) {
            last++;
        }
        TRY(write_shard(s, s->shards[first], first, last));
        first = last;
    }
    return s->n_shards > 1 ? write_index(s) : status_ok();
}

/* The names that this file writes. */
static bool is_of_model(const char *name)
{
    static const char *const names[] = {".",
                                        "..",
                                        "config.json",
                                        "model.safetensors",
                                        "model.safetensors.index.json",
                                        "vocab.txt",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    int at = 0;
    return sscanf(name, "model-%*5[0-9]-of-%*5[0-9].safetensors%n", &at) == 0 && at > 0 && name[at] == '\0';
}

/* Whether something is in the place, and that it is nothing that a user would miss. */
static struct status check_place(const char *path, bool *replaces)
{
    DIR *dir = opendir(path);
    *replaces = dir != NULL || errno != ENOENT;
    if (dir == NULL) {
        return *replaces ? status_error(STATUS_USAGE, "cannot write a model to %s: %s", path, strerror(errno))
                         : status_ok();
    }
    struct status s = status_ok();
    for (const struct dirent *e; !failed(s) && (e = readdir(dir)) != NULL;) {
        if (!is_of_model(e->d_name)) {
            s = status_error(
                STATUS_USAGE,
                "%s holds %.100s, which is no part of a model: a model gets a directory of its own", path,
                e->d_name);
        }
    }
    closedir(dir);
    return s;
}

static struct status rename_to(const char *from, const char *to)
{
    return rename(from, to) == 0
               ? status_ok()
               : status_error(STATUS_IO, "cannot rename %s to %s: %s", from, to, strerror(errno));
}

static void remove_or_warn(const char *path)
{
    struct status s = file_exists(path) ? file_remove_tree(path) : status_ok();
    if (failed(s)) {
        log_warning("%s", s.message);
    }
}

/* An older model steps aside, since a directory is not renamed onto another, and comes back if that fails. */
static struct status put_in_place(const struct saving *s, const char *path, bool replaces)
{
    if (replaces) {
        TRY(rename_to(path, s->aside));
    }
    struct status status = rename_to(s->temporary, path);
    if (failed(status) && replaces && rename(s->aside, path) != 0) {
        log_warning("the older model is now %s", s->aside);
    }
    if (!failed(status) && replaces) {
        remove_or_warn(s->aside);
    }
    return status;
}

static struct status fill(struct saving *s)
{
    remove_or_warn(s->temporary); /* of a dead run with our pid, as in a container */
    TRY(file_make_directories(s->temporary));
    TRY(write_config(s));
    TRY(write_tokenizer(s));
    return write_weights(s);
}

/* Makes the rename durable. */
static struct status sync_parent(const char *path)
{
    char parent[CHECKPOINT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int n = slash == NULL || slash == path ? 1 : (int)(slash - path);
    TRY(checkpoint_path(parent, "%.*s", n, slash == NULL ? "." : path));
    return file_sync_directory(parent);
}

struct status model_dir_save(const char *path, const struct model_dir_contents *c)
{
    struct saving s = {.c = c};
    char final[CHECKPOINT_PATH_BYTES];
    bool replaces;
    TRY(checkpoint_path(final, "%s", path));
    for (size_t n = strlen(final); n > 1 && final[n - 1] == '/'; n--) {
        final[n - 1] = '\0';
    }
    TRY(checkpoint_path(s.temporary, "%s.tmp.%ld", final, (long)getpid()));
    TRY(checkpoint_path(s.aside, "%s.old.%ld", final, (long)getpid()));
    TRY(check_place(final, &replaces));
    struct status status = fill(&s);
    if (!failed(status)) {
        status = put_in_place(&s, final, replaces);
    }
    if (failed(status)) {
        remove_or_warn(s.temporary);
    } else {
        status = sync_parent(final);
    }
    free(s.items);
    free(s.shards);
    return status_context(status, "cannot save the model %s", final);
}
