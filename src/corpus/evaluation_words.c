#include "corpus/evaluation_words.h"

#include "core/json.h"
#include "core/log.h"
#include "corpus/corpus.h"
#include "corpus/corpus_pass.h"
#include "corpus/source_formats.h"

/* Adds the sequences of a text, which continues the words before. */
static struct status add_text(struct evaluation_words *e, struct text_words *words, const char *text,
                              size_t n)
{
    struct text_word word;
    for (size_t at = 0; text_words_next(&word, &at, text, n);) {
        bool is_new = false;
        text_words_add(words, word.hash);
        uint64_t hash = words->n < e->n_words ? 0 : text_words_hash(words, e->n_words);
        TRY(hash == 0 ? status_ok() : hash_set_add(&e->hashes, &hash, &is_new));
        e->hash += is_new ? hash : 0;
    }
    return status_ok();
}

/* Adds all strings of a value, each as a text of its own. */
static struct status add_strings(struct evaluation_words *e, const json_t *value)
{
    struct text_words words = {.n = 0};
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(value)) {
        return add_text(e, &words, json_string_value(value), json_string_length(value));
    }
    json_array_foreach(value, i, item)
    {
        TRY(add_strings(e, item));
    }
    json_object_foreach((json_t *)value, key, item)
    {
        TRY(add_strings(e, item));
    }
    return status_ok();
}

static struct status add_line(struct evaluation_words *e, const struct document *d, const char *path)
{
    json_t *line;
    TRY(json_parse_text(&line, buf_text(&d->raw), d->raw.n, path));
    struct status s = add_strings(e, line);
    json_decref(line);
    return s;
}

static struct status add_document(struct evaluation_words *e, struct converter *converter, struct document *d)
{
    struct text_words words = {.n = 0};
    TRY(converter_run(converter, d));
    for (int64_t i = 0; i < d->n_paragraphs && d->fate == DOCUMENT_KEPT; i++) {
        struct paragraph p = document_paragraph(d, i);
        TRY(add_text(e, &words, p.text, p.n));
    }
    return status_ok();
}

static struct status read_files(struct evaluation_words *e, struct corpus *c)
{
    struct document d = {0};
    struct converter converter;
    struct status s = status_ok();
    converter_init(&converter, &c->options);
    for (bool end = false; !end && !failed(s);) {
        s = corpus_next(c, &d, &end);
        if (!failed(s) && !end) {
            s = d.format == &json_source ? add_line(e, &d, c->files.files[corpus_place(c).file].path)
                                         : add_document(e, &converter, &d);
        }
    }
    converter_fini(&converter);
    document_fini(&d);
    return s;
}

struct status evaluation_words_open(struct evaluation_words *e, const char *const *files, int n_files,
                                    int n_words)
{
    struct corpus c;
    *e = (struct evaluation_words){.n_words = n_words};
    TRY(hash_set_open(&e->hashes, sizeof(uint64_t), SIZE_MAX, NULL, (struct append_mark){0}));
    struct status s = corpus_open(&c, files, n_files, (struct source_options){.keeps_layout = true});
    s = failed(s) ? s : read_files(e, &c);
    if (!failed(s) && e->hashes.n == 0) {
        s = status_error(STATUS_DATA,
                         "no text of the files of --decontaminate has %d words: look for shorter "
                         "sequences with --decontaminate_words N",
                         n_words);
    }
    if (!failed(s)) {
        log_info("documents with one of %zu sequences of %d words, from %lld files, are left out",
                 e->hashes.n, n_words, (long long)c.files.n);
    }
    corpus_close(&c);
    if (failed(s)) {
        evaluation_words_close(e);
    }
    return s;
}

void evaluation_words_close(struct evaluation_words *e)
{
    hash_set_close(&e->hashes);
}

bool evaluation_words_occur(const struct evaluation_words *e, const struct document *d)
{
    struct text_words words = {.n = 0};
    struct text_word word;
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        for (size_t at = 0; text_words_next(&word, &at, p.text, p.n);) {
            text_words_add(&words, word.hash);
            uint64_t hash = words.n < e->n_words ? 0 : text_words_hash(&words, e->n_words);
            if (hash != 0 && hash_set_has(&e->hashes, &hash)) {
                return true;
            }
        }
    }
    return false;
}
