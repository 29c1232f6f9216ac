#include "cmd/inspect_store.h"

#include "core/integers.h"
#include "io/token_store.h"
#include "text/utf8.h"

#include <inttypes.h>
#include <stdlib.h>

enum { N_FREQUENT = 10, BLOCK = 1 << 16 };

struct store {
    struct token_store store;
    struct tokenizer tokenizer;
    bool has_tokenizer;
    const char *prefix;
};

static int64_t document_begin(const struct indexed *x, int64_t number)
{
    return indexed_offset(x, number == x->n_documents ? x->n_sequences : indexed_first_sequence(x, number));
}

/* ---- lengths ---- */

static int by_length(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct status add_lengths(json_t *report, const struct indexed *x)
{
    static const struct {
        const char *name;
        int percent;
    } rows[] = {{"shortest", 0}, {"5 %", 5},   {"25 %", 25},    {"50 %", 50},
                {"75 %", 75},    {"95 %", 95}, {"longest", 100}};
    int64_t n = x->n_documents, *lengths = malloc((size_t)int_larger(n, 1) * sizeof *lengths);
    FAIL_IF(lengths == NULL, STATUS_MEMORY, "out of memory for the lengths of %" PRId64 " documents", n);
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = document_begin(x, i + 1) - document_begin(x, i);
    }
    qsort(lengths, (size_t)n, sizeof *lengths, by_length);
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && n > 0; i++) {
        json_object_set_new(object, rows[i].name,
                            json_integer((json_int_t)lengths[(n - 1) * rows[i].percent / 100]));
    }
    free(lengths);
    return json_object_set_new(report, "tokens_per_document", object) == 0
               ? status_ok()
               : status_error(STATUS_MEMORY, "out of memory for the report");
}

/* ---- tokens ---- */

struct counted {
    int32_t id;
    int64_t n;
};

static int by_count(const void *a, const void *b)
{
    const struct counted *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : (x->id > y->id) - (x->id < y->id);
}

/* Counts the tokens of the store by their ids: counts[t->n]. */
static struct status count_ids(struct counted *counts, const struct store *s)
{
    static int32_t ids[BLOCK];
    const struct indexed *x = &s->store.index;
    for (int64_t at = 0, n; at < x->n_tokens; at += n) {
        n = int_smaller(x->n_tokens - at, BLOCK);
        indexed_copy(x, ids, at, n);
        for (int64_t i = 0; i < n; i++) {
            FAIL_IF(ids[i] < 0 || ids[i] >= s->tokenizer.n, STATUS_DATA,
                    "%s: token %" PRId64 " is %d, but the vocabulary has %d pieces", s->prefix, at + i,
                    ids[i], s->tokenizer.n);
            counts[ids[i]].n++;
        }
    }
    return status_ok();
}

/* Bytes of text of a piece; of WordPiece, whose pieces do not hold blanks, one more where a word begins. */
static int64_t bytes_of(const struct tokenizer *t, int32_t id)
{
    size_t n;
    tokenizer_piece(t, id, &n);
    bool is_exact = t->kind->decodes_bytes, continues = !is_exact && t->kind->continues_word(t, id);
    return id == t->special[SPECIAL_END] ? 0 : (int64_t)n + (is_exact ? 0 : continues ? -2 : 1);
}

static json_t *text_json(const char *text, size_t n)
{
    struct buf valid = {0};
    utf8_repair(&valid, text, n);
    json_t *json = json_stringn(buf_text(&valid), valid.n);
    buf_fini(&valid);
    return json;
}

static void add_share(json_t *report, const char *name, const struct store *s, const struct counted *counts,
                      enum special_token which)
{
    int32_t id = s->tokenizer.special[which];
    if (id >= 0) {
        json_object_set_new(report, name, json_real((double)counts[id].n / (double)s->store.index.n_tokens));
    }
}

static void add_counts(json_t *report, const struct store *s, struct counted *counts)
{
    const struct tokenizer *t = &s->tokenizer;
    int64_t bytes = 0, used = 0;
    json_t *frequent = json_array();
    for (int32_t i = 0; i < t->n; i++) {
        bytes += counts[i].n * bytes_of(t, i);
        used += counts[i].n > 0;
    }
    add_share(report, "share_of_end_tokens", s, counts, SPECIAL_END);
    add_share(report, "share_of_unknown_tokens", s, counts, SPECIAL_UNKNOWN);
    json_object_set_new(report, "text_bytes_per_token",
                        json_real((double)bytes / (double)s->store.index.n_tokens));
    json_object_set_new(report, "pieces_used", json_integer((json_int_t)used));
    qsort(counts, (size_t)t->n, sizeof *counts, by_count);
    for (int i = 0; i < N_FREQUENT && i < t->n && counts[i].n > 0; i++) {
        size_t n;
        const char *piece = tokenizer_piece(t, counts[i].id, &n);
        json_array_append_new(frequent, json_pack("{s:i, s:I, s:o}", "id", (int)counts[i].id, "count",
                                                  (json_int_t)counts[i].n, "piece", text_json(piece, n)));
    }
    json_object_set_new(report, "most_frequent", frequent);
}

static struct status add_tokens(json_t *report, const struct store *s)
{
    struct counted *counts = calloc((size_t)s->tokenizer.n, sizeof *counts);
    FAIL_IF(counts == NULL, STATUS_MEMORY, "out of memory to count tokens");
    for (int32_t i = 0; i < s->tokenizer.n; i++) {
        counts[i].id = i;
    }
    struct status status = count_ids(counts, s);
    if (!failed(status) && s->store.index.n_tokens > 0) {
        add_counts(report, s, counts);
    }
    free(counts);
    return status;
}

/* ---- documents ---- */

static struct status parse_range(int64_t *first, int64_t *end, const char *text, int64_t n_documents)
{
    char *rest;
    *first = 0;
    *end = strtoll(text, &rest, 10);
    bool has_number = rest != text;
    if (has_number && *rest == '-') {
        const char *last = rest + 1;
        *first = *end;
        *end = strtoll(last, &rest, 10) + 1;
        has_number = rest != last;
    }
    FAIL_IF(!has_number || *rest != '\0' || *first < 0 || *end <= *first, STATUS_USAGE,
            "--documents %.40s is neither a number of documents nor a range of them, such as 10-12", text);
    FAIL_IF(*first >= n_documents, STATUS_USAGE, "--documents %.40s: the store has %" PRId64 " documents",
            text, n_documents);
    *end = int_smaller(*end, n_documents);
    return status_ok();
}

/* Appends the text of a document; a store of sentences gets a line for each. */
static struct status decode_document(struct buf *text, const struct store *s, int64_t number)
{
    const struct indexed *x = &s->store.index;
    int64_t first = indexed_first_sequence(x, number), end = indexed_first_sequence(x, number + 1);
    struct id_list ids = {0};
    struct status status = status_ok();
    for (int64_t i = first; i < end && !failed(status); i++) {
        int64_t begin = indexed_offset(x, i), n = indexed_offset(x, i + 1) - begin;
        while ((int64_t)ids.capacity < n && id_list_grow(&ids)) {
            ids.n = ids.capacity;
        }
        if ((int64_t)ids.capacity < n) {
            status = status_error(STATUS_MEMORY, "out of memory for a document");
            break;
        }
        indexed_copy(x, ids.ids, begin, n);
        status = tokenizer_decode(&s->tokenizer, text, ids.ids, (size_t)n);
        buf_append(text, "\n", i + 1 < end && !s->tokenizer.kind->decodes_bytes);
    }
    id_list_fini(&ids);
    return failed(status) ? status : buf_status(text);
}

/* Controls of a terminal are not passed on. */
static void append_readable(struct buf *out, const struct buf *text)
{
    size_t begin = out->n;
    utf8_repair(out, buf_text(text), text->n);
    for (size_t i = begin; i < out->n; i++) {
        unsigned char c = (unsigned char)out->data[i];
        out->data[i] = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f ? '?' : out->data[i];
    }
    buf_putc(out, '\n');
}

static struct status add_documents(json_t *report, struct buf *texts, const struct store *s,
                                   const char *range)
{
    int64_t first, end;
    const struct indexed *x = &s->store.index;
    struct buf text = {0};
    struct status status = parse_range(&first, &end, range, x->n_documents);
    json_t *list = json_array();
    for (int64_t i = first; i < end && !failed(status); i++) {
        int64_t n = document_begin(x, i + 1) - document_begin(x, i);
        buf_clear(&text);
        status = status_context(decode_document(&text, s, i), "%s document %" PRId64, s->prefix, i);
        buf_printf(texts, "--- document %" PRId64 ", %" PRId64 " tokens\n", i, n);
        append_readable(texts, &text);
        json_array_append_new(list, json_pack("{s:I, s:I, s:o}", "document", (json_int_t)i, "tokens",
                                              (json_int_t)n, "text", text_json(buf_text(&text), text.n)));
    }
    json_object_set_new(report, "texts", list);
    buf_fini(&text);
    return failed(status) ? status : buf_status(texts);
}

/* ---- the store ---- */

/* A tokenizer that is only found near the store must be the store's; one that is given is checked. */
static struct status open_tokenizer(struct store *s, const struct inspect_store_args *a)
{
    char directory[FILE_PATH_BYTES];
    int64_t max_length;
    const struct token_store_info *info = &s->store.info;
    struct vocab_flags vocabulary = a->vocabulary;
    vocabulary.do_lower_case = info->lower_case;
    if (vocabulary.vocab_file != NULL) {
        TRY(tokenizer_open_flags(&s->tokenizer, &vocabulary));
        s->has_tokenizer = true;
        return info->vocab_size == 0
                   ? status_ok()
                   : token_store_check_vocab(&s->store, s->prefix, s->tokenizer.hash, s->tokenizer.n);
    }
    file_parent(directory, s->prefix);
    s->has_tokenizer = !failed(tokenizer_open_directory(&s->tokenizer, &max_length, directory));
    if (s->has_tokenizer && info->vocab_size > 0 && info->vocab_hash != s->tokenizer.hash) {
        tokenizer_fini(&s->tokenizer);
        s->has_tokenizer = false;
    }
    FAIL_IF(a->documents != NULL && !s->has_tokenizer, STATUS_USAGE,
            "--documents needs the tokenizer of %s: give --vocab_file", s->prefix);
    return status_ok();
}

struct status inspect_store(json_t *report, struct buf *texts, const char *prefix,
                            const struct inspect_store_args *a)
{
    struct store s = {.prefix = prefix};
    TRY(token_store_open_any(&s.store, prefix));
    struct status status = open_tokenizer(&s, a);
    status = failed(status) ? status : add_lengths(report, &s.store.index);
    if (!failed(status) && s.has_tokenizer) {
        status = add_tokens(report, &s);
    }
    if (!failed(status) && a->documents != NULL) {
        status = add_documents(report, texts, &s, a->documents);
    }
    if (s.has_tokenizer) {
        tokenizer_fini(&s.tokenizer);
    }
    token_store_close(&s.store);
    return status;
}
