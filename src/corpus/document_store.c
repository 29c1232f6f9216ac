#define _GNU_SOURCE
#include "corpus/document_store.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "corpus/document_output.h"
#include "corpus/not_text.h"
#include "corpus/source_formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct run {
    const struct document_store_config *config;
    struct input_files files;
    struct document_lines lines;
    struct text_reader reader;
    struct document_output outputs[DOCUMENT_LINES_MOST_KEYS];
    int64_t n_lines, n_bad;
    uint64_t done_bytes; /* size of the files before the current one */
    int64_t start_ns;
    struct progress progress;
};

/* ---- outputs ---- */

static struct status name_outputs(struct run *r)
{
    const struct document_store_config *c = r->config;
    for (int k = 0; k < c->lines.n_keys; k++) {
        char prefix[FILE_PATH_BYTES];
        int n = snprintf(prefix, sizeof prefix, "%s_%s_document", c->output_prefix, c->lines.keys[k]);
        FAIL_IF(n >= FILE_PATH_BYTES, STATUS_USAGE, "--output_prefix %.60s... is too long", c->output_prefix);
        TRY(document_output_name(&r->outputs[k], prefix));
    }
    return status_ok();
}

static struct status claim_outputs(struct run *r)
{
    enum document_output_rule rule = r->config->overwrite ? DOCUMENT_OUTPUT_REPLACE : DOCUMENT_OUTPUT_NEW;
    for (int k = 0; k < r->config->lines.n_keys; k++) {
        TRY(document_output_claim(&r->outputs[k], &r->files, rule, r->config->dry_run));
    }
    return status_ok();
}

static struct status open_outputs(struct run *r)
{
    struct document_shuffle_config shuffle = r->config->shuffle;
    shuffle.expected_bytes = r->files.total_bytes; /* text takes more bytes than its tokens */
    shuffle.memory_bytes /= (uint64_t)r->config->lines.n_keys;
    for (int k = 0; k < r->config->lines.n_keys; k++) {
        TRY(document_output_open(&r->outputs[k], r->config->lines.tokenizer->n, &shuffle));
    }
    return status_ok();
}

/* ---- lines ---- */

static struct status judge(struct run *r, const char *path, const struct document_line *line)
{
    const char *what = document_fault_texts[line->fault];
    FAIL_IF(++r->n_bad > r->config->max_bad_lines, STATUS_DATA,
            "%s:%" PRId64
            ": the line %s; --max_bad_lines N skips up to N such lines, and this is number %" PRId64,
            path, line->number, what, r->n_bad);
    log_warning("%s:%" PRId64 ": the line %s, so it is skipped", path, line->number, what);
    return status_ok();
}

static void add_documents(struct run *r, const struct document_line *line)
{
    for (int k = 0; k < r->config->lines.n_keys; k++) {
        size_t n;
        const int32_t *ids = document_lines_ids(&r->lines, line, k, &n);
        if (n > 0) {
            document_output_add(&r->outputs[k], ids, (int64_t)n);
            document_output_end_document(&r->outputs[k]);
        }
    }
}

static void show_progress(struct run *r)
{
    double done = (double)(r->done_bytes + text_reader_done_bytes(&r->reader)) / 1e6;
    progress_show(&r->progress, "prepare: %.1f of %.1f MB, %.1f MB/s", done,
                  (double)r->files.total_bytes / 1e6, done / (clock_since_s(r->start_ns) + 1e-9));
}

static struct status add_block(struct run *r, const char *path)
{
    for (size_t i = 0; i < r->lines.n; i++) {
        const struct document_line *line = &r->lines.lines[i];
        r->n_lines++;
        if (line->fault != DOCUMENT_LINE_GOOD) {
            TRY(judge(r, path, line));
        } else {
            add_documents(r, line);
        }
    }
    for (int k = 0; k < r->config->lines.n_keys; k++) {
        TRY(document_output_status(&r->outputs[k]));
    }
    if (progress_due(&r->progress)) {
        show_progress(r);
    }
    return stop_requested() ? status_error(STATUS_PREEMPTED, "stopped by a signal; nothing was written")
                            : status_ok();
}

/* STATUS_DATA: a file of another kind, such as one that is packed in a way that is not read. */
static struct status check_head(const char *path, const char *head, size_t n)
{
    const struct not_text *found = not_text_find(head, n);
    return found == NULL || found->is_readable ? status_ok() : not_text_refuse(found, path, "");
}

/* Bytes that are no UTF-8 are let through: they are a fault of their line, not of the file. */
static struct status read_file(struct run *r, const struct input_file *f)
{
    const struct source_format *format;
    size_t n_head;
    TRY(text_reader_open(&r->reader, f->path, f->n_bytes, NULL, true));
    const char *head = text_reader_head(&r->reader, &n_head);
    struct status s = check_head(f->path, head, n_head);
    s = failed(s) ? s : source_formats_choose(&format, &json_source, f->path, head, n_head);
    do {
        s = failed(s) ? s : document_lines_next(&r->lines, &r->reader);
        s = failed(s) ? s : add_block(r, f->path);
    } while (!failed(s) && r->lines.n > 0);
    s = failed(s) || r->config->allow_truncated ? s : text_reader_check_end(&r->reader);
    text_reader_close(&r->reader);
    r->done_bytes += f->n_bytes;
    return s;
}

static struct status read_files(struct run *r)
{
    for (int64_t i = 0; i < r->files.n; i++) {
        TRY(read_file(r, &r->files.files[i]));
    }
    for (int k = 0; k < r->config->lines.n_keys; k++) {
        FAIL_IF(document_output_count(&r->outputs[k]) == 0, STATUS_DATA,
                "no line of the input has a text with tokens for the key %s", r->config->lines.keys[k]);
    }
    return status_ok();
}

/* ---- the run ---- */

static struct status write_all(struct run *r)
{
    const struct tokenizer *t = r->config->lines.tokenizer;
    struct status s = open_outputs(r);
    s = failed(s) ? s : document_lines_init(&r->lines, r->config->lines);
    s = failed(s) ? s : read_files(r);
    progress_end(&r->progress);
    for (int k = 0; k < r->config->lines.n_keys; k++) {
        struct token_store_info info = {
            .vocab_hash = t->hash, .vocab_size = t->n, .lower_case = t->lower_case};
        s = failed(s) ? s : document_output_finish(&r->outputs[k], &info);
    }
    document_lines_fini(&r->lines);
    return s;
}

static bool is_named(const struct document_store_config *c, const char *path)
{
    int i = 0;
    while (i < c->n_inputs && strcmp(c->inputs[i], path) != 0) {
        i++;
    }
    return i < c->n_inputs;
}

/* Other files of a directory are left out; what the user names is read. */
static struct status leave_out_others(struct input_files *f, const struct document_store_config *c)
{
    int64_t n = 0;
    for (int64_t i = 0; i < f->n; i++) {
        struct input_file file = f->files[i];
        if (is_named(c, file.path) || document_lines_are_named(file.path)) {
            f->files[n++] = file;
            continue;
        }
        log_warning("%s is left out: it is not named as lines of JSON (.jsonl, .json, .ndjson, also packed); "
                    "name the file itself to read it",
                    file.path);
        f->total_bytes -= file.n_bytes;
        free(file.path);
    }
    f->n = n;
    return n > 0 ? status_ok() : status_error(STATUS_DATA, "the inputs have no file of lines of JSON");
}

struct status document_store_write(const struct document_store_config *c)
{
    struct run *r = calloc(1, sizeof *r);
    FAIL_IF(r == NULL, STATUS_MEMORY, "out of memory for documents");
    r->config = c;
    for (int k = 0; k < c->lines.n_keys; k++) {
        r->outputs[k].lock.fd = -1;
    }
    r->start_ns = clock_ns();
    r->progress = progress_begin(!c->dry_run);
    text_reader_init(&r->reader);
    struct status s = input_files_list(&r->files, c->inputs, c->n_inputs);
    s = failed(s) ? s : leave_out_others(&r->files, c);
    s = failed(s) ? s : name_outputs(r);
    s = failed(s) ? s : claim_outputs(r);
    if (!failed(s) && c->dry_run) {
        log_info("would read %" PRId64 " files, %.1f MB, and write %s.bin and .idx; nothing was written",
                 r->files.n, (double)r->files.total_bytes / 1e6, r->outputs[0].prefix);
    } else if (!failed(s)) {
        stop_install();
        stop_begin_work();
        s = write_all(r);
    }
    if (!failed(s) && !c->dry_run) {
        double seconds = clock_since_s(r->start_ns);
        log_info("%" PRId64 " lines, %" PRId64 " bad, %.1f MB, %.1f s, %.0f MB/s", r->n_lines, r->n_bad,
                 (double)r->files.total_bytes / 1e6, seconds, (double)r->files.total_bytes / 1e6 / seconds);
    }
    for (int k = 0; k < c->lines.n_keys; k++) {
        document_output_close(&r->outputs[k]);
    }
    text_reader_fini(&r->reader);
    input_files_fini(&r->files);
    free(r);
    return s;
}

/* ---- several stores as one ---- */

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
