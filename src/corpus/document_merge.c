#include "corpus/document_merge.h"

#include "core/log.h"
#include "core/stop.h"
#include "corpus/document_output.h"

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
        if (q->ids == NULL) {
            return status_error(STATUS_MEMORY, "out of memory for a sequence of %lld tokens", (long long)n);
        }
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
        if (stop_requested()) {
            return status_error(STATUS_PREEMPTED, "stopped by a signal; nothing was written");
        }
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

static struct status check_is_other(const char *output_prefix, const char *const *prefixes, int n_prefixes)
{
    for (int i = 0; i < n_prefixes; i++) {
        if (strcmp(prefixes[i], output_prefix) == 0) {
            return status_error(STATUS_USAGE, "--output_prefix %s is one of the stores to merge",
                                output_prefix);
        }
    }
    return status_ok();
}

struct status document_merge(const char *output_prefix, const char *const *prefixes, int n_prefixes,
                             struct document_shuffle_config shuffle, bool overwrite, bool dry_run)
{
    struct document_output o = {0};
    struct input_files none = {0};
    struct token_store_info info = {0};
    uint64_t bytes;
    TRY(check_is_other(output_prefix, prefixes, n_prefixes));
    TRY(document_output_name(&o, output_prefix));
    TRY(document_output_check(&o, &none, overwrite, dry_run));
    TRY(visit_all(NULL, &info, &shuffle.expected_bytes, prefixes, n_prefixes));
    if (dry_run) {
        log_info("would merge %d stores into %s.bin and .idx; nothing was written", n_prefixes,
                 output_prefix);
        return status_ok();
    }
    stop_install();
    stop_begin_work();
    struct status s = document_output_open(&o, info.vocab_size, &shuffle);
    s = failed(s) ? s : visit_all(&o, &info, &bytes, prefixes, n_prefixes);
    s = failed(s) ? s : document_output_finish(&o, &info);
    document_output_close(&o);
    return s;
}
