#include "data/text_ids.h"

#include "data/table_file.h"
#include "io/token_store.h"

#include <stdio.h>
#include <stdlib.h>

struct status text_ids_of_text(struct tokenizer_scratch *s, const char *text, size_t n, text_ids_take *take,
                               void *self)
{
    struct id_list ids = {0};
    struct buf first = {0};
    struct status status = tokenizer_encode_ids(s, &ids, text, n);
    if (!failed(status) && ids.n > 0) {
        status = tokenizer_decode(s->tokenizer, &first, ids.ids, 1);
    }
    status = failed(status) ? status : take(self, ids.ids, (int64_t)ids.n, (int64_t)n - (int64_t)first.n);
    buf_fini(&first);
    id_list_fini(&ids);
    return status;
}

/* ---- lines of JSON ---- */

static struct status take_lines(const struct table_file *t, text_ids_take_text *take, void *self)
{
    int64_t column = table_file_column(t, "text");
    for (int64_t row = 0; row < t->n_rows; row++) {
        struct table_cell cell;
        TRY(table_file_text(t, row, column, &cell));
        TRY(status_context(take(self, cell.text, cell.n), "%s line %lld", t->path,
                           (long long)table_file_line(t, row)));
    }
    return status_ok();
}

struct status text_ids_lines(const char *path, text_ids_take_text *take, void *self)
{
    struct table_file t;
    TRY(table_file_open(&t, path, &(struct table_options){0}));
    struct status status = take_lines(&t, take, self);
    table_file_close(&t);
    return status;
}

/* Texts on their way to who takes ids. */
struct encoding_texts {
    struct tokenizer_scratch *scratch;
    text_ids_take *take;
    void *self;
};

static struct status encode_text(void *self, const char *text, size_t n)
{
    const struct encoding_texts *e = self;
    return text_ids_of_text(e->scratch, text, n, e->take, e->self);
}

/* ---- a store ---- */

/* A document that is being read. */
struct document {
    struct id_list ids;
    struct buf text; /* what they spell */
};

static struct status copy(struct document *d, const struct indexed *x, int64_t number)
{
    int64_t begin = indexed_offset(x, indexed_first_sequence(x, number));
    int64_t end = indexed_offset(x, indexed_first_sequence(x, number + 1));
    while ((int64_t)d->ids.capacity < end - begin) {
        d->ids.n = d->ids.capacity;
        TRY(id_list_grow(&d->ids) ? status_ok() : status_error(STATUS_MEMORY, "out of memory for ids"));
    }
    d->ids.n = (size_t)(end - begin);
    indexed_copy(x, d->ids.ids, begin, end - begin);
    return status_ok();
}

/* Of the tokens behind the first; checks all ids. */
static struct status count_bytes(struct document *d, const struct tokenizer *t, int64_t *n_bytes)
{
    buf_clear(&d->text);
    TRY(tokenizer_decode(t, &d->text, d->ids.ids, d->ids.n));
    *n_bytes = (int64_t)d->text.n;
    for (size_t i = 0; i < d->ids.n; i++) {
        size_t n = 0;
        bool counts = i > 0 && d->ids.ids[i] != t->special[SPECIAL_END];
        *n_bytes -= counts ? 0 : (tokenizer_piece(t, d->ids.ids[i], &n), (int64_t)n);
    }
    return status_ok();
}

static struct status take_document(struct document *d, const struct tokenizer *t, const struct indexed *x,
                                   int64_t number, text_ids_take *take, void *self)
{
    int64_t n_bytes;
    TRY(copy(d, x, number));
    TRY(count_bytes(d, t, &n_bytes));
    return take(self, d->ids.ids, (int64_t)d->ids.n, n_bytes);
}

static struct status take_documents(const struct token_store *store, const struct tokenizer *t,
                                    const char *prefix, text_ids_take *take, void *self)
{
    struct document d = {0};
    struct status status =
        store->info.vocab_size > 0 ? token_store_check_vocab(store, prefix, t->hash, t->n) : status_ok();
    for (int64_t i = 0; i < store->index.n_documents && !failed(status); i++) {
        status = status_context(take_document(&d, t, &store->index, i, take, self), "%s document %lld",
                                prefix, (long long)i);
    }
    id_list_fini(&d.ids);
    buf_fini(&d.text);
    return status;
}

static struct status read_store(const struct tokenizer *t, const char *prefix, text_ids_take *take,
                                void *self)
{
    struct token_store store;
    TRY(token_store_open_whole(&store, prefix));
    struct status status = take_documents(&store, t, prefix, take, self);
    token_store_close(&store);
    return status;
}

/* ---- a path ---- */

bool text_ids_is_store(const char *path)
{
    char index[FILE_PATH_BYTES];
    return (size_t)snprintf(index, sizeof index, "%s.idx", path) < sizeof index && file_exists(index);
}

struct status text_ids_check(const char *const *paths, int n)
{
    for (int i = 0; i < n; i++) {
        struct file_map map;
        if (!text_ids_is_store(paths[i])) {
            TRY(file_map_open(&map, paths[i]));
            file_map_close(&map);
        }
    }
    return status_ok();
}

static bool ends_with(const char *path, const char *ending)
{
    size_t n = strlen(path), n_ending = strlen(ending);
    return n >= n_ending && strcmp(path + n - n_ending, ending) == 0;
}

bool text_ids_is_lines(const char *path)
{
    return ends_with(path, ".json") || ends_with(path, ".jsonl") || ends_with(path, ".ndjson");
}

static struct status read_text(const char *path, struct encoding_texts *e)
{
    struct file_map map;
    TRY(file_map_open(&map, path));
    struct status status = status_context(encode_text(e, (const char *)map.data, map.n), "%s", path);
    file_map_close(&map);
    return status;
}

struct status text_ids_read(struct tokenizer_scratch *s, const char *path, text_ids_take *take, void *self)
{
    if (text_ids_is_store(path)) {
        return read_store(s->tokenizer, path, take, self);
    }
    struct encoding_texts e = {s, take, self};
    return text_ids_is_lines(path) ? text_ids_lines(path, encode_text, &e) : read_text(path, &e);
}
