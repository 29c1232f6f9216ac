#define _GNU_SOURCE
#include "serve/search_index.h"

#include "core/hash.h"
#include "core/integers.h"
#include "io/file_lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what made an index ---- */

struct status search_index_maker_of(struct search_index_maker *m, struct session *s,
                                    const struct embed_plan *plan, const char *description)
{
    enum { PIECE_BYTES = 1 << 20 };
    tensor weights = tensor_is_null(s->net.working) ? s->net.master : s->net.working;
    const char *at = weights.data;
    unsigned char *piece = malloc(PIECE_BYTES);
    uint64_t hash[2] = {s->tokenizer->hash};
    FAIL_IF(piece == NULL, STATUS_MEMORY, "out of memory for a hash of %s", s->dir.path);
    for (size_t left = tensor_bytes(weights), n; left > 0; left -= n, at += n) {
        n = left < PIECE_BYTES ? left : PIECE_BYTES;
        exec_copy_out(&s->net.x, piece, at, n);
        hash[1] = hash_bytes(piece, n);
        hash[0] = hash_bytes(hash, sizeof hash);
    }
    free(piece);
    *m = (struct search_index_maker){.model_path = s->dir.path, .vectors = description, .width = plan->width};
    snprintf(m->model, sizeof m->model, "%016" PRIx64, hash[0]);
    return s->net.x.status;
}

static struct status compare(const struct search_index *ix, json_t *is, const struct search_index_maker *m)
{
    const char *model, *path, *vectors;
    FAIL_IF(json_unpack(is, "{s:s, s:s, s:s}", "model", &model, "model_path", &path, "vectors", &vectors) !=
                0,
            STATUS_DATA, "%s does not begin with the model of an index", ix->texts_path);
    FAIL_IF(strcmp(model, m->model) != 0, STATUS_DATA,
            "%s has vectors of another model: %s, %.100s; %s has the hash %s (--dtype counts)", ix->path,
            model, path, m->model_path, m->model);
    FAIL_IF(strcmp(vectors, m->vectors) != 0, STATUS_DATA,
            "%s has vectors made by \"%.200s\", not by \"%s\": give the flags it was made with", ix->path,
            vectors, m->vectors);
    return status_ok();
}

static struct status check_maker(const struct search_index *ix, const struct search_index_maker *m)
{
    json_t *is;
    TRY(json_parse(&is, (const char *)ix->texts.data, ((const size_t *)(const void *)ix->lines.data)[1],
                   ix->texts_path));
    struct status s = compare(ix, is, m);
    json_decref(is);
    return s;
}

/* ---- reading ---- */

/* Finds the first line and those of the n texts. */
static struct status find_lines(struct search_index *ix)
{
    const char *text = (const char *)ix->texts.data;
    size_t at = 0;
    for (int64_t i = 0; i <= ix->n + 1; i++) {
        buf_append(&ix->lines, &at, sizeof at);
        const char *end = i > ix->n || at == ix->texts.n ? NULL : memchr(text + at, '\n', ix->texts.n - at);
        FAIL_IF(i <= ix->n && end == NULL, STATUS_DATA,
                "%s ends after %" PRId64 " lines, and %s has %" PRId64 " vectors", ix->texts_path, i,
                ix->path, ix->n);
        at = end == NULL ? at : (size_t)(end - text) + 1;
    }
    return buf_status(&ix->lines);
}

static struct status open_index(struct search_index *ix, const struct search_index_maker *m)
{
    FAIL_IF(!file_exists(ix->texts_path), STATUS_DATA, "there is no index %s; `kiln search --add` makes it",
            ix->path);
    if (file_has_bytes(ix->path)) {
        TRY(npy_rows_map(&ix->vectors, ix->path));
        ix->n = ix->vectors.dims[0];
    }
    TRY(file_map_open(&ix->texts, ix->texts_path));
    TRY(find_lines(ix));
    TRY(check_maker(ix, m));
    FAIL_IF(ix->n > 0 && ix->vectors.dims[1] != m->width, STATUS_DATA,
            "%s has vectors of %" PRId64 " numbers, not %" PRId64, ix->path, ix->vectors.dims[1], m->width);
    return status_ok();
}

static struct status begin(struct search_index *ix, const char *path)
{
    *ix = (struct search_index){.path = path};
    TRY(file_make_path(ix->texts_path, "%s.jsonl", path));
    return file_exists(ix->texts_path) || !file_exists(path)
               ? status_ok()
               : status_error(STATUS_DATA, "%s is no index of texts: there is no %s", path, ix->texts_path);
}

struct status search_index_open(struct search_index *ix, const char *path, const struct search_index_maker *m)
{
    TRY(begin(ix, path));
    struct status s = open_index(ix, m);
    if (failed(s)) {
        search_index_close(ix);
    }
    return s;
}

void search_index_close(struct search_index *ix)
{
    npy_file_close(&ix->vectors);
    file_map_close(&ix->texts);
    buf_fini(&ix->lines);
}

struct status search_index_text(json_t **text, const struct search_index *ix, int64_t row)
{
    const size_t *at = (const size_t *)(const void *)ix->lines.data + row + 1;
    TRY(json_parse(text, (const char *)ix->texts.data + at[0], at[1] - at[0], ix->texts_path));
    bool has_text = json_is_string(json_object_get(*text, "text"));
    if (!has_text) {
        json_decref(*text);
    }
    return has_text
               ? status_ok()
               : status_error(STATUS_DATA, "%s: line %" PRId64 " has no \"text\"", ix->texts_path, row + 2);
}

/* ---- appending ---- */

static struct status write_texts(struct search_index_writer *w, const struct buf *lines)
{
    const char *path = w->index.texts_path;
    TRY(buf_status(lines));
    TRY(file_write_at(w->texts, path, lines->data, lines->n, w->at));
    FAIL_IF(fsync(w->texts) != 0, STATUS_IO, "fsync of %s failed: %s", path, strerror(errno));
    w->at += (int64_t)lines->n;
    return status_ok();
}

static struct status write_maker(struct search_index_writer *w, const struct search_index_maker *m)
{
    struct buf line = {0};
    struct status s =
        json_append_line(&line,
                         json_pack("{s:i, s:s, s:o, s:s}", "index", 1, "model", m->model, "model_path",
                                   json_text(m->model_path), "vectors", m->vectors),
                         0);
    s = failed(s) ? s : write_texts(w, &line);
    buf_fini(&line);
    return s;
}

static struct status lock_texts(struct search_index_writer *w)
{
    TRY(file_lock_open(&w->texts, w->index.texts_path));
    return file_lock_wait(w->texts)
               ? status_ok()
               : status_error(STATUS_IO, "another process writes to %s", w->index.texts_path);
}

/* Moves to the end of the texts that count, and drops what comes after. */
static struct status go_to_end(struct search_index_writer *w, const struct search_index_maker *m)
{
    struct search_index *ix = &w->index;
    bool is_new = !file_has_bytes(ix->path) && !file_has_bytes(ix->texts_path);
    if (!is_new) {
        TRY(open_index(ix, m));
        w->at = (int64_t)((const size_t *)(const void *)ix->lines.data)[ix->n + 1];
        search_index_close(ix);
    }
    FAIL_IF(ftruncate(w->texts, (off_t)w->at) != 0, STATUS_IO, "cannot shorten %s: %s", ix->texts_path,
            strerror(errno));
    return is_new ? write_maker(w, m) : status_ok();
}

struct status search_index_writer_open(struct search_index_writer *w, const char *path,
                                       const struct search_index_maker *m)
{
    *w = (struct search_index_writer){.rows.fd = -1, .texts = -1};
    TRY(begin(&w->index, path));
    struct status s = lock_texts(w);
    s = failed(s) ? s : go_to_end(w, m);
    s = failed(s) ? s : npy_rows_open(&w->rows, path, m->width, true);
    w->rows.syncs = true;
    if (failed(s)) {
        search_index_close(&w->index);
        (void)search_index_writer_close(w);
    }
    return s;
}

struct status search_index_put(struct search_index_writer *w, const struct buf *lines, const float *vectors,
                               int64_t n)
{
    TRY(write_texts(w, lines));
    return npy_rows_put(&w->rows, vectors, n);
}

struct status search_index_writer_close(struct search_index_writer *w)
{
    struct status s = npy_rows_close(&w->rows);
    bool lost = w->texts >= 0 && close(w->texts) != 0;
    w->texts = -1;
    return failed(s) || !lost
               ? s
               : status_error(STATUS_IO, "writing %s failed: %s", w->index.texts_path, strerror(errno));
}
