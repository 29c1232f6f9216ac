#include "text/tokenizer_files.h"

#include "io/file.h"
#include "io/json_file.h"
#include "text/special_tokens.h"

#include <string.h>

static struct status compare(enum tokenizer_copy *copy, const struct tokenizer_file *file, const char *path)
{
    struct file_map m;
    *copy = TOKENIZER_COPY_ABSENT;
    if (!file_exists(path)) {
        return status_ok();
    }
    TRY(file_map_open(&m, path));
    bool same = m.n == file->n && (m.n == 0 || memcmp(m.data, file->bytes, m.n) == 0);
    *copy = same ? TOKENIZER_COPY_SAME : TOKENIZER_COPY_OTHER;
    file_map_close(&m);
    return status_ok();
}

struct status tokenizer_files_compare(enum tokenizer_copy *copy, const char **name, const struct tokenizer *t,
                                      const char *directory)
{
    const char *first[] = {
        [TOKENIZER_COPY_ABSENT] = NULL, [TOKENIZER_COPY_SAME] = NULL, [TOKENIZER_COPY_OTHER] = NULL};
    for (int i = t->n_files - 1; i >= 0; i--) {
        char path[FILE_PATH_BYTES];
        enum tokenizer_copy one;
        TRY(file_make_path(path, "%s/%s", directory, t->files[i].name));
        TRY(compare(&one, &t->files[i], path));
        first[one] = t->files[i].name;
    }
    bool is_there = first[TOKENIZER_COPY_SAME] != NULL || first[TOKENIZER_COPY_OTHER] != NULL;
    bool is_whole = first[TOKENIZER_COPY_ABSENT] == NULL && first[TOKENIZER_COPY_OTHER] == NULL;
    *copy = !is_there ? TOKENIZER_COPY_ABSENT : is_whole ? TOKENIZER_COPY_SAME : TOKENIZER_COPY_OTHER;
    if (*copy == TOKENIZER_COPY_OTHER) {
        *name = first[first[TOKENIZER_COPY_OTHER] != NULL ? TOKENIZER_COPY_OTHER : TOKENIZER_COPY_SAME];
    }
    return status_ok();
}

struct status tokenizer_files_write(const struct tokenizer *t, const char *directory)
{
    for (int i = 0; i < t->n_files; i++) {
        char path[FILE_PATH_BYTES];
        TRY(file_make_path(path, "%s/%s", directory, t->files[i].name));
        TRY(file_write_atomic(path, t->files[i].bytes, t->files[i].n));
    }
    return status_ok();
}

json_t *tokenizer_files_config(const struct tokenizer *t, int64_t max_length)
{
    json_t *object = t->kind->config(t, max_length);
    special_tokens_put_texts(object, t);
    if (object != NULL && (t->added_file != NULL || t->kind->decodes_bytes)) {
        json_object_set_new(object, "added_tokens_decoder", added_tokens_decoder(&t->added));
    }
    if (object != NULL && t->chat_template != NULL) {
        json_object_set_new(object, "chat_template", json_string(t->chat_template));
    }
    return object;
}

struct status tokenizer_files_write_config(const struct tokenizer *t, const char *directory,
                                           int64_t max_length)
{
    char path[FILE_PATH_BYTES];
    TRY(file_make_path(path, "%s/%s", directory, TOKENIZER_CONFIG_NAME));
    return json_file_write(path, tokenizer_files_config(t, max_length));
}

static struct status write_documents(const char *directory, json_t *documents)
{
    const char *name;
    json_t *document;
    json_object_foreach(documents, name, document)
    {
        char path[FILE_PATH_BYTES];
        TRY(file_make_path(path, "%s/%s", directory, name));
        TRY(json_file_write(path, json_incref(document)));
    }
    return status_ok();
}

struct status tokenizer_files_write_all(const struct tokenizer *t, const char *directory, int64_t max_length)
{
    json_t *documents;
    TRY(tokenizer_files_write(t, directory));
    TRY(tokenizer_files_write_config(t, directory, max_length));
    TRY(t->kind->documents(&documents, t));
    json_t *specials = json_object();
    special_tokens_put_texts(specials, t);
    struct status s = json_object_set_new(documents, "special_tokens_map.json", specials) != 0
                          ? status_error(STATUS_MEMORY, "out of memory for the tokenizer's files")
                          : write_documents(directory, documents);
    json_decref(documents);
    return s;
}
