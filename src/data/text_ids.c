#include "data/text_ids.h"

#include "corpus/json_fields.h"
#include "corpus/not_text.h"
#include "corpus/source_formats.h"
#include "corpus/text_reader.h"
#include "io/token_store.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>

struct status text_ids_of_text(struct tokenizer_scratch *s, const char *text, size_t n, text_ids_take *take,
                               void *self)
{
    struct id_list ids = {0};
    struct buf first = {0};
    bool is_framed = s->tokenizer->frame.one.before.n > 0;
    struct status status = tokenizer_encode_document(s, &ids, text, n);
    if (!failed(status) && ids.n > 0 && !is_framed) {
        status = tokenizer_decode_text(s->tokenizer, &first, ids.ids, 1);
    }
    status = failed(status) ? status : take(self, ids.ids, (int64_t)ids.n, (int64_t)n - (int64_t)first.n);
    buf_fini(&first);
    id_list_fini(&ids);
    return status;
}

/* ---- lines ---- */

static struct status take_lines(struct text_reader *r, text_ids_take_line *take, void *self)
{
    struct status s = status_ok();
    for (bool end = false; !failed(s) && !end;) {
        struct text_line line;
        s = text_reader_next(r, &line, &end);
        if (!failed(s) && !end && line.n > 0) {
            s = status_context(take(self, line), "%s line %lld", r->path, (long long)r->line);
        }
    }
    return failed(s) ? s : text_reader_check_end(r);
}

static struct status read_lines(const char *path, bool keeps_blanks, text_ids_take_line *take, void *self)
{
    struct text_reader r;
    text_reader_init(&r);
    struct status s = text_reader_open(&r, path, 0, NULL, false);
    r.keeps_blanks = keeps_blanks;
    s = failed(s) ? s : take_lines(&r, take, self);
    text_reader_fini(&r);
    return s;
}

struct status text_ids_json_lines(const char *path, text_ids_take_line *take, void *self)
{
    return read_lines(path, false, take, self);
}

/* Lines on their way to who takes texts. */
struct taking_texts {
    const char *field; /* key of the text in a line of JSON */
    struct buf text;
    text_ids_take_text *take;
    void *self;
};

/* The text of a line, as `kiln prepare` reads it. */
static struct status take_field(void *self, struct text_line line)
{
    struct taking_texts *t = self;
    struct json_slice value;
    buf_clear(&t->text);
    FAIL_IF(line.continues || !json_fields_find(&value, &t->field, 1, line.text, line.n), STATUS_DATA,
            line.continues ? "the line is longer than 16 MiB" : "the line is not a JSON object");
    FAIL_IF(value.text == NULL, STATUS_DATA, "the line lacks \"%s\", the key of the text", t->field);
    FAIL_IF(!json_fields_exact(&t->text, value), STATUS_DATA, "\"%s\" is not a string of JSON", t->field);
    TRY(buf_status(&t->text));
    return t->take(t->self, buf_text(&t->text), t->text.n);
}

static struct status take_plain(void *self, struct text_line line)
{
    const struct taking_texts *t = self;
    return t->take(t->self, line.text, utf8_without_end(line.text, line.n));
}

static struct status take_texts(const char *path, bool is_json, const char *field, text_ids_take_text *take,
                                void *self)
{
    struct taking_texts t = {.field = field == NULL ? "text" : field, .take = take, .self = self};
    struct status s = read_lines(path, !is_json, is_json ? take_field : take_plain, &t);
    buf_fini(&t.text);
    return s;
}

struct status text_ids_lines(const char *path, text_ids_take_text *take, void *self)
{
    return take_texts(path, true, NULL, take, self);
}

struct status text_ids_each_line(const char *path, text_ids_take_text *take, void *self)
{
    return take_texts(path, source_formats_names_json(path), NULL, take, self);
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
struct stored_document {
    struct id_list ids;
    struct buf text; /* decoded ids */
};

static struct status copy(struct stored_document *d, const struct indexed *x, int64_t number)
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

/* Counts the bytes of the tokens after the first; checks all ids. */
static struct status count_bytes(struct stored_document *d, const struct tokenizer *t, int64_t *n_bytes)
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

static struct status take_document(struct stored_document *d, const struct tokenizer *t,
                                   const struct indexed *x, int64_t number, text_ids_take *take, void *self)
{
    int64_t n_bytes;
    TRY(copy(d, x, number));
    TRY(count_bytes(d, t, &n_bytes));
    return take(self, d->ids.ids, (int64_t)d->ids.n, n_bytes);
}

static struct status take_documents(const struct token_store *store, const struct tokenizer *t,
                                    const char *prefix, text_ids_take *take, void *self)
{
    struct stored_document d = {0};
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

/* The next line of text[from..n) that is the end of a document and nothing else; *end is where it ends. n:
 * there is none. */
static size_t find_end(const struct tokenizer *t, const char *text, size_t n, size_t from, size_t *end)
{
    int32_t id = t->parses_special ? t->special[SPECIAL_END] : -1;
    size_t n_token = 0;
    const char *token = id < 0 ? "" : tokenizer_piece(t, id, &n_token);
    for (size_t at = from, next; at < n && n_token > 0; at = next) {
        const char *feed = memchr(text + at, '\n', n - at);
        size_t n_line = feed == NULL ? n - at : (size_t)(feed - (text + at));
        next = feed == NULL ? n : at + n_line + 1;
        n_line -= n_line > 0 && text[at + n_line - 1] == '\r';
        if (n_line == n_token && memcmp(text + at, token, n_token) == 0) {
            *end = next;
            return at;
        }
    }
    *end = n;
    return n;
}

/* One document, or those between lines such as "<|endoftext|>". */
static struct status encode_documents(struct encoding_texts *e, const char *text, size_t n)
{
    size_t at = 0, end, next = find_end(e->scratch->tokenizer, text, n, at, &end);
    while (next < n) {
        size_t length = utf8_without_end(text + at, next - at);
        TRY(length > 0 ? encode_text(e, text + at, length) : status_ok());
        at = end;
        next = find_end(e->scratch->tokenizer, text, n, at, &end);
    }
    return at == 0 || at < n ? encode_text(e, text + at, n - at) : status_ok();
}

/* Reads the unpacked bytes of a file until there are `most`. */
static struct status read_bytes(struct buf *text, const char *path, size_t most)
{
    enum { BLOCK = 1 << 18 };
    struct byte_stream stream;
    byte_stream_init(&stream);
    struct status s = byte_stream_open(&stream, path, 0);
    for (size_t got = 1; !failed(s) && got > 0 && text->n < most;) {
        char *to = buf_extend(text, BLOCK);
        s = to == NULL ? buf_status(text) : byte_stream_read(&stream, to, BLOCK, &got);
        text->n -= failed(s) ? 0 : BLOCK - got;
        if (!failed(s) && got == 0 && stream.at_gap) {
            byte_stream_pass_gap(&stream);
            got = 1;
        }
    }
    if (!failed(s) && stream.ends_early) {
        s = status_error(STATUS_DATA, "%s ends in the middle of its data", path);
    }
    byte_stream_fini(&stream);
    return s;
}

static struct status check_text(const char *path, const char *text, size_t n)
{
    const struct not_text *other = not_text_find(text, n < NOT_TEXT_LOOK_BYTES ? n : NOT_TEXT_LOOK_BYTES);
    return other == NULL || other->is_readable ? status_ok() : not_text_refuse(other, path, "");
}

struct status text_ids_look(const char *path)
{
    struct buf head = {0};
    struct status s = read_bytes(&head, path, NOT_TEXT_LOOK_BYTES);
    s = failed(s) ? s : check_text(path, buf_text(&head), head.n);
    const struct not_text *binary = failed(s) ? NULL : not_text_find_binary(buf_text(&head), head.n);
    buf_fini(&head);
    return binary == NULL ? s : not_text_refuse(binary, path, "");
}

static struct status read_text(const char *path, struct encoding_texts *e)
{
    struct buf text = {0};
    struct status s = read_bytes(&text, path, SIZE_MAX);
    s = failed(s) ? s : check_text(path, buf_text(&text), text.n);
    s = failed(s) ? s : status_context(encode_documents(e, buf_text(&text), text.n), "%s", path);
    buf_fini(&text);
    return s;
}

struct status text_ids_read(struct tokenizer_scratch *s, const char *path, const char *field,
                            text_ids_take *take, void *self)
{
    if (text_ids_is_store(path)) {
        return read_store(s->tokenizer, path, take, self);
    }
    struct encoding_texts e = {s, take, self};
    return source_formats_names_json(path) ? take_texts(path, true, field, encode_text, &e)
                                           : read_text(path, &e);
}
