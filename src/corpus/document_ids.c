#include "corpus/document_ids.h"

#include "core/array.h"
#include "corpus/repeats.h"

#include <stdlib.h>

/* A thread's own. */
struct worker {
    const struct document_ids_config *config;
    struct tokenizer_scratch scratch;
};

static struct status create(void **worker, const void *context)
{
    const struct document_ids_config *config = context;
    struct worker *w = calloc(1, sizeof *w);
    *worker = NULL;
    FAIL_IF(w == NULL, STATUS_MEMORY, "out of memory for a tokenizer");
    w->config = config;
    struct status s =
        config->tokenizer == NULL ? status_ok() : tokenizer_scratch_init(&w->scratch, config->tokenizer);
    if (failed(s)) {
        free(w);
    } else {
        *worker = w;
    }
    return s;
}

static void destroy(void *worker)
{
    struct worker *w = worker;
    tokenizer_scratch_fini(&w->scratch);
    free(w);
}

static void fini(void *result)
{
    struct document_ids *ids = result;
    id_list_fini(&ids->ids);
    free(ids->ends);
    free(ids->hashes);
    free(ids->paragraph_ends);
    *ids = (struct document_ids){0};
}

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the sentences of a document");
}

static struct status add_sentence(struct worker *w, struct document_ids *ids, const char *text, size_t n)
{
    size_t before = ids->ids.n;
    TRY(tokenizer_encode_ids(&w->scratch, &ids->ids, text, n));
    if (ids->ids.n == before) {
        return status_ok();
    }
    if (!ARRAY_RESERVE(ids->ends, ids->ends_capacity, ids->n_sentences + 1)) {
        return out_of_memory();
    }
    ids->ends[ids->n_sentences++] = ids->ids.n;
    return status_ok();
}

static struct status add_paragraph(struct worker *w, struct document_ids *ids, struct paragraph p)
{
    if (w->config->one_sentence_per_line) {
        return add_sentence(w, ids, p.text, p.n);
    }
    struct sentence s;
    for (size_t at = 0; sentence_next(&s, &at, w->config->punkt, p.text, p.n);) {
        TRY(add_sentence(w, ids, p.text + s.start, s.end - s.start));
    }
    return status_ok();
}

static struct status run(void *worker, void *result, const struct document *d)
{
    struct worker *w = worker;
    struct document_ids *ids = result;
    ids->ids.n = 0;
    ids->n_sentences = 0;
    if (!ARRAY_RESERVE(ids->hashes, ids->hashes_capacity, d->n_paragraphs) ||
        !ARRAY_RESERVE(ids->paragraph_ends, ids->paragraph_capacity, d->n_paragraphs)) {
        return out_of_memory();
    }
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        ids->hashes[i] = repeats_hash(p.text, p.n);
        TRY(w->config->tokenizer == NULL ? status_ok() : add_paragraph(w, ids, p));
        ids->paragraph_ends[i] = ids->n_sentences;
    }
    return cleaning_make_facts(&ids->facts, &w->config->facts, d);
}

struct corpus_transform document_ids_transform(const struct document_ids_config *config)
{
    return (struct corpus_transform){.context = config,
                                     .worker_create = create,
                                     .worker_destroy = destroy,
                                     .result_bytes = sizeof(struct document_ids),
                                     .result_fini = fini,
                                     .run = run};
}
