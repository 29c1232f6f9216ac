#define _GNU_SOURCE /* asprintf */
#include "corpus/document_store.h"

#include "core/log.h"
#include "core/stop.h"
#include "corpus/document_output.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_BUFFERED = 1 << 20 }; /* tokens of a sequence that memory is kept for from the beginning */

struct sequence {
    int32_t *ids;
    int64_t capacity;
};

static struct status add_sequence(struct document_output *o, struct sequence *q, const struct indexed *x,
                                  int64_t number)
{
    int64_t begin = indexed_offset(x, number), n = indexed_offset(x, number + 1) - begin;
    if (n > q->capacity || q->ids == NULL) {
        int64_t capacity = n > MOST_BUFFERED ? n : MOST_BUFFERED;
        free(q->ids);
        q->ids = malloc((size_t)capacity * sizeof *q->ids);
        q->capacity = q->ids == NULL ? 0 : capacity;
        FAIL_IF(q->ids == NULL, STATUS_MEMORY, "out of memory for a sequence of %lld tokens", (long long)n);
    }
    indexed_copy(x, q->ids, begin, n);
    document_output_add(o, q->ids, n);
    return status_ok();
}

static struct status add_store(struct document_output *o, struct sequence *q, const struct indexed *x)
{
    for (int64_t d = 0; d < x->n_documents; d++) {
        for (int64_t s = indexed_first_sequence(x, d); s < indexed_first_sequence(x, d + 1); s++) {
            TRY(add_sequence(o, q, x, s));
        }
        document_output_end_document(o);
        TRY(document_output_status(o));
        FAIL_IF(stop_requested(), STATUS_PREEMPTED, "stopped by a signal; nothing was written");
    }
    return status_ok();
}

/* Checks a store against the first one, whose description *info is, and adds it if there is an output. *bytes
 * becomes larger by its own. */
static struct status visit(struct document_output *o, struct sequence *q, struct token_store_info *info,
                           uint64_t *bytes, const char *prefix, bool is_first)
{
    struct token_store store;
    TRY(token_store_open(&store, prefix));
    if (is_first) {
        *info = store.info;
    }
    struct status s = token_store_check_vocab(&store, prefix, info->vocab_hash, info->vocab_size);
    s = failed(s) || o != NULL ? s : token_store_verify(&store, prefix, NULL);
    *bytes += store.index.bin.n;
    if (!failed(s) && o != NULL) {
        s = add_store(o, q, &store.index);
    }
    token_store_close(&store);
    return s;
}

static struct status visit_all(struct document_output *o, struct token_store_info *info, uint64_t *bytes,
                               const char *const *prefixes, int n_prefixes)
{
    struct sequence q = {0};
    struct status s = status_ok();
    *bytes = 0;
    for (int i = 0; i < n_prefixes && !failed(s); i++) {
        s = visit(o, &q, info, bytes, prefixes[i], i == 0);
    }
    free(q.ids);
    return s;
}

/* The files of the stores, so that none is written over. */
static struct status list_files(struct input_files *f, const char *const *prefixes, int n_prefixes)
{
    static const char *const suffixes[] = {".bin", ".idx", ".json"};
    enum { N_SUFFIXES = sizeof suffixes / sizeof suffixes[0] };
    f->files = calloc((size_t)n_prefixes * N_SUFFIXES, sizeof *f->files);
    bool is_full = f->files == NULL;
    for (int i = 0; i < n_prefixes * N_SUFFIXES && !is_full; i++) {
        is_full = asprintf(&f->files[i].path, "%s%s", prefixes[i / N_SUFFIXES], suffixes[i % N_SUFFIXES]) < 0;
        f->n += !is_full;
    }
    return is_full ? status_error(STATUS_MEMORY, "out of memory for the paths of %d stores", n_prefixes)
                   : status_ok();
}

/* Claims the output, so that the caller closes it. */
static struct status claim(struct document_output *o, const char *prefix, const char *const *prefixes,
                           int n_prefixes, bool overwrite, bool dry_run)
{
    struct input_files files = {0};
    struct status s = list_files(&files, prefixes, n_prefixes);
    s = failed(s) ? s : document_output_name(o, prefix);
    s = failed(s) ? s
                  : document_output_claim(o, &files,
                                          overwrite ? DOCUMENT_OUTPUT_REPLACE : DOCUMENT_OUTPUT_NEW, dry_run);
    input_files_fini(&files);
    return s;
}

struct status document_merge(const char *output_prefix, const char *const *prefixes, int n_prefixes,
                             struct document_shuffle_config shuffle, bool overwrite, bool dry_run)
{
    struct document_output o = {.lock.fd = -1};
    struct token_store_info info = {0};
    uint64_t bytes;
    struct status s = claim(&o, output_prefix, prefixes, n_prefixes, overwrite, dry_run);
    s = failed(s) ? s : visit_all(NULL, &info, &shuffle.expected_bytes, prefixes, n_prefixes);
    if (!failed(s) && dry_run) {
        log_info("would merge %d stores into %s.bin and .idx; nothing was written", n_prefixes,
                 output_prefix);
    } else if (!failed(s)) {
        stop_install();
        stop_begin_work();
        s = document_output_open(&o, info.vocab_size, &shuffle);
        s = failed(s) ? s : visit_all(&o, &info, &bytes, prefixes, n_prefixes);
        s = failed(s) ? s : document_output_finish(&o, &info);
    }
    document_output_close(&o);
    return s;
}
