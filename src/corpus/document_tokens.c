#include "corpus/document_tokens.h"

#include "core/array.h"
#include "corpus/text_line.h"

#include <stdlib.h>

/* A thread's own. */
struct worker {
    const struct document_tokens_config *config;
    struct tokenizer_scratch scratch;
};

static struct status create(void **worker, const void *context)
{
    const struct document_tokens_config *config = context;
    struct worker *w = calloc(1, sizeof *w);
    *worker = w;
    FAIL_IF(w == NULL, STATUS_MEMORY, "out of memory for a tokenizer");
    w->config = config;
    return config->tokenizer == NULL ? status_ok() : tokenizer_scratch_init(&w->scratch, config->tokenizer);
}

static void destroy(void *worker)
{
    struct worker *w = worker;
    tokenizer_scratch_fini(&w->scratch);
    free(w);
}

static void fini(void *result)
{
    struct document_tokens *t = result;
    id_list_fini(&t->ids);
    buf_fini(&t->text);
    free(t->ends);
    *t = (struct document_tokens){0};
}

/* Only the beginning of a document gets the tokens that the tokenizer puts first. */
static struct status add_text(struct worker *w, struct document_tokens *t, const char *text, size_t n,
                              bool begins)
{
    TRY(n == 0   ? status_ok()
        : begins ? tokenizer_encode_document(&w->scratch, &t->ids, text, n)
                 : tokenizer_encode_rest(&w->scratch, &t->ids, text, n));
    FAIL_IF(!ARRAY_RESERVE(t->ends, t->capacity, t->n + 1), STATUS_MEMORY,
            "out of memory for the parts of a document");
    t->ends[t->n++] = t->ids.n;
    return status_ok();
}

static bool is_blank(char c)
{
    return c == '\n' || text_line_trim((struct text_line){.text = &c, .n = 1}).n == 0;
}

/* Where the part of text[0..n) that begins at `at` ends: at the first end of a line, and in a line of more
 * than its size at the first blank, after which a word begins.  Tokens of the usual patterns do not cross
 * that place. */
static size_t part_end(const char *text, size_t n, size_t at, size_t part_bytes)
{
    size_t from = at + part_bytes, blank = 0;
    for (size_t i = from; i + part_bytes / 2 < n; i++) {
        bool begins = !is_blank(text[i]);
        if (begins && text[i - 1] == '\n') {
            return i;
        }
        if (blank == 0 && begins && text[i - 1] == ' ' && !is_blank(text[i - 2])) {
            blank = i - 1;
        }
        if (blank > 0 && i - from >= part_bytes) {
            return blank;
        }
    }
    return n;
}

static struct status add_parts(struct worker *w, struct document_tokens *t, const char *text, size_t n,
                               bool begins)
{
    size_t part_bytes = w->config->part_bytes;
    for (size_t at = 0, end; at < n; at = end) {
        end = part_bytes == 0 ? n : part_end(text, n, at, part_bytes);
        TRY(add_text(w, t, text + at, end - at, begins && at == 0));
    }
    return status_ok();
}

/* The paragraphs with a blank line between them, also before a piece that continues a document. */
static struct status join(struct buf *text, const struct document *d)
{
    buf_clear(text);
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        buf_append(text, "\n\n", i > 0 || !d->begins ? 2 : 0);
        buf_append(text, p.text, p.n);
    }
    return buf_status(text);
}

static struct status encode(struct worker *w, struct document_tokens *t, const struct document *d)
{
    if (w->config->n_keys == 1 && d->is_exact) {
        return add_parts(w, t, buf_text(&d->text), d->text.n, d->begins);
    }
    if (w->config->n_keys == 1) {
        TRY(join(&t->text, d));
        return add_parts(w, t, buf_text(&t->text), t->text.n, d->begins);
    }
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        TRY(add_text(w, t, p.text, p.n, true));
    }
    return status_ok();
}

static struct status run(void *worker, void *result, const struct document *d)
{
    struct worker *w = worker;
    struct document_tokens *t = result;
    t->ids.n = t->n = 0;
    TRY(cleaning_make_facts(&t->facts, &w->config->facts, d));
    return w->config->tokenizer == NULL ? status_ok() : encode(w, t, d);
}

struct corpus_transform document_tokens_transform(const struct document_tokens_config *config)
{
    return (struct corpus_transform){.context = config,
                                     .worker_create = create,
                                     .worker_destroy = destroy,
                                     .result_bytes = sizeof(struct document_tokens),
                                     .result_fini = fini,
                                     .run = run};
}
