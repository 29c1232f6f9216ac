#include "corpus/document_lines.h"

#include "core/array.h"
#include "core/parallel.h"
#include "corpus/json_fields.h"
#include "text/utf8.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const char *const document_fault_texts[] = {
    [DOCUMENT_LINE_TOO_LONG] = "is longer than 16 MiB",
    [DOCUMENT_LINE_NOT_UTF8] = "is not UTF-8",
    [DOCUMENT_LINE_NOT_JSON] = "is not a JSON object",
    [DOCUMENT_LINE_WITHOUT_KEY] = "lacks the key of --json_keys",
    [DOCUMENT_LINE_NO_STRING] = "has a value that is not a string for the key of --json_keys",
};

static bool ends_with(const char *path, size_t n, const char *ending)
{
    size_t n_ending = strlen(ending);
    return n >= n_ending && memcmp(path + n - n_ending, ending, n_ending) == 0;
}

bool document_lines_are_named(const char *path)
{
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst"}, *const lines[] = {".json", ".jsonl",
                                                                                          ".ndjson"};
    size_t n = strlen(path);
    bool is = false;
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        n -= ends_with(path, n, packed[i]) ? strlen(packed[i]) : 0;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        is = is || ends_with(path, n, lines[i]);
    }
    return is;
}

struct document_encoder {
    struct tokenizer_scratch scratch;
    struct id_list ids; /* ids of the block's texts that this thread encoded */
    struct buf line, text;
    struct status status;
};

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for a block of documents");
}

static struct status no_end(void)
{
    return status_error(STATUS_USAGE,
                        "--append_eod: no file of the tokenizer says which token ends a document "
                        "(eos_token of tokenizer_config.json); name it by --eod_token");
}

struct status document_lines_init(struct document_lines *d, struct document_lines_config config)
{
    *d = (struct document_lines){.config = config, .n_parts = parallel_n_parts()};
    if (config.append_end) {
        TRY(config.tokenizer->special[SPECIAL_END] >= 0 ? status_ok() : no_end());
    }
    d->encoders = calloc((size_t)d->n_parts, sizeof *d->encoders);
    struct status s = d->encoders == NULL ? out_of_memory() : status_ok();
    for (int i = 0; i < d->n_parts && !failed(s); i++) {
        s = tokenizer_scratch_init(&d->encoders[i].scratch, config.tokenizer);
    }
    if (failed(s)) {
        document_lines_fini(d);
    }
    return s;
}

void document_lines_fini(struct document_lines *d)
{
    for (int i = 0; d->encoders != NULL && i < d->n_parts; i++) {
        tokenizer_scratch_fini(&d->encoders[i].scratch);
        id_list_fini(&d->encoders[i].ids);
        buf_fini(&d->encoders[i].line);
        buf_fini(&d->encoders[i].text);
    }
    free(d->encoders);
    free(d->lines);
    buf_fini(&d->text);
    *d = (struct document_lines){0};
}

/* ---- reading ---- */

static struct status add_line(struct document_lines *d, struct text_line line, int64_t number)
{
    if (!ARRAY_RESERVE(d->lines, d->capacity, d->n + 1)) {
        return out_of_memory();
    }
    d->lines[d->n++] = (struct document_line){.start = d->text.n, .n = line.n, .number = number};
    buf_append(&d->text, line.text, line.n);
    return buf_status(&d->text);
}

/* Later parts of a line that is too long are passed over; its first part says what it is. */
static struct status read_block(struct document_lines *d, struct text_reader *r)
{
    d->n = 0;
    buf_clear(&d->text);
    while (d->text.n < DOCUMENT_LINES_BYTES) {
        struct text_line line;
        bool end;
        TRY(text_reader_next(r, &line, &end));
        if (end) {
            break;
        }
        if (line.n > 0 && !line.continues) {
            TRY(add_line(d, line, r->line));
        }
    }
    return status_ok();
}

/* ---- encoding ---- */

static enum document_fault find_values(struct json_slice *values, const struct document_lines_config *c,
                                       struct document_encoder *e, const char *text, size_t n)
{
    if (n >= TEXT_READER_LINE_BYTES - UTF8_MAX_BYTES) {
        return DOCUMENT_LINE_TOO_LONG;
    }
    if (utf8_find_invalid(text, n) < n) {
        if (!c->replace_invalid_utf8) {
            return DOCUMENT_LINE_NOT_UTF8;
        }
        buf_clear(&e->line);
        utf8_repair(&e->line, text, n);
        text = buf_text(&e->line);
        n = e->line.n;
    }
    if (!json_fields_find(values, c->keys, c->n_keys, text, n)) {
        return DOCUMENT_LINE_NOT_JSON;
    }
    for (int k = 0; k < c->n_keys; k++) {
        if (values[k].text == NULL) {
            return DOCUMENT_LINE_WITHOUT_KEY;
        }
    }
    return DOCUMENT_LINE_GOOD;
}

static struct status encode_line(struct document_lines *d, struct document_line *line, int part)
{
    const struct document_lines_config *c = &d->config;
    struct document_encoder *e = &d->encoders[part];
    struct json_slice values[DOCUMENT_LINES_MOST_KEYS];
    line->fault = find_values(values, c, e, (const char *)d->text.data + line->start, line->n);
    for (int k = 0; k < c->n_keys && line->fault == DOCUMENT_LINE_GOOD; k++) {
        buf_clear(&e->text);
        if (!json_fields_exact(&e->text, values[k])) {
            line->fault = values[k].text[0] == '"' ? DOCUMENT_LINE_NOT_JSON : DOCUMENT_LINE_NO_STRING;
            break;
        }
        size_t start = e->ids.n;
        TRY(buf_status(&e->text));
        TRY(tokenizer_encode_document(&e->scratch, &e->ids, buf_text(&e->text), e->text.n));
        if (c->append_end && e->ids.n > start &&
            !id_list_append(&e->ids, c->tokenizer->special[SPECIAL_END])) {
            return out_of_memory();
        }
        line->tokens[k] = (struct document_tokens){part, start, e->ids.n - start};
    }
    return buf_status(&e->line);
}

static void encode_some(void *context, int part, int n_parts)
{
    struct document_lines *d = context;
    struct document_encoder *e = &d->encoders[part];
    (void)n_parts;
    e->ids.n = 0;
    e->status = status_ok();
    for (;;) {
        size_t i = atomic_fetch_add(&d->next, 1);
        if (i >= d->n || failed(e->status)) {
            return;
        }
        e->status = encode_line(d, &d->lines[i], part);
    }
}

struct status document_lines_next(struct document_lines *d, struct text_reader *r)
{
    TRY(read_block(d, r));
    atomic_store(&d->next, 0);
    parallel_run(encode_some, d);
    for (int i = 0; i < d->n_parts; i++) {
        TRY(d->encoders[i].status);
    }
    return status_ok();
}

const int32_t *document_lines_ids(const struct document_lines *d, const struct document_line *line, int key,
                                  size_t *n)
{
    const struct document_tokens *t = &line->tokens[key];
    *n = t->n;
    return t->n == 0 ? NULL : d->encoders[t->part].ids.ids + t->start;
}
