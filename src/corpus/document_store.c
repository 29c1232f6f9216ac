#include "corpus/document_store.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/rng.h"
#include "core/stop.h"
#include "corpus/document_output.h"
#include "corpus/document_tokens.h"
#include "corpus/dump_index.h"
#include "corpus/source_formats.h"
#include "text/tokenizer_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t PURPOSE_HOLDOUT = 0x646f6368;

/* Parts of a text that may be held out: at least HELDOUT_PARTS of the text are, if it has so many. */
enum { LEAST_PART_BYTES = 256, MOST_PART_BYTES = 1 << 16, HELDOUT_PARTS = 8 };

/* A store, and the document that is being written to it. */
struct store {
    struct document_output output;
    struct id_list ids;
    bool has_tokens; /* tokens of the document, in `ids` or written */
};

struct run {
    const struct document_store_config *config;
    struct pass_report *report;
    struct corpus corpus;
    struct cleaning cleaning;
    struct store stores[SOURCE_MOST_KEYS];
    int n_stores;
    int64_t n_bad;
    /* Holding out: parts so far; the part that is held out next, and how many were chosen before it. */
    int64_t n_parts, next_heldout, n_strata;
    size_t part_bytes; /* 0: nothing is held out */
    int64_t start_ns;
    struct progress progress;
};

/* ---- outputs ---- */

static const char *key_of(const struct document_store_config *c, int i)
{
    return c->source.n_json_keys > 0 ? c->source.json_keys[i] : c->source.text_field;
}

static struct status name_output(struct run *r, int i)
{
    const struct document_store_config *c = r->config;
    char *prefix = r->report->prefixes[i];
    int n =
        c->common.output_dir == NULL
            ? snprintf(prefix, FILE_PATH_BYTES, "%s_%s_document", c->output_prefix, key_of(c, i))
            : snprintf(prefix, FILE_PATH_BYTES, "%s/%s", c->common.output_dir, i == 0 ? "train" : "heldout");
    FAIL_IF(n >= FILE_PATH_BYTES, STATUS_USAGE, "the path %.60s... is too long",
            c->common.output_dir == NULL ? c->output_prefix : c->common.output_dir);
    return document_output_name(&r->stores[i].output, prefix);
}

static struct status claim_output(struct run *r, int i)
{
    const struct document_store_config *c = r->config;
    bool is_dry = c->common.dry_run || c->check;
    enum document_output_rule rule = c->overwrite ? DOCUMENT_OUTPUT_REPLACE : DOCUMENT_OUTPUT_NEW;
    TRY(name_output(r, i));
    TRY(is_dry ? status_ok() : file_make_parent(r->report->prefixes[i]));
    return document_output_claim(&r->stores[i].output, &r->corpus.files, rule, is_dry);
}

static struct status open_outputs(struct run *r)
{
    struct document_shuffle_config shuffle = r->config->shuffle;
    shuffle.expected_bytes = r->corpus.files.total_bytes; /* text takes more bytes than its tokens */
    shuffle.memory_bytes /= (uint64_t)r->n_stores;
    for (int i = 0; i < r->n_stores && !r->config->check; i++) {
        TRY(document_output_open(&r->stores[i].output, r->config->tokenizer->n, &shuffle));
    }
    return status_ok();
}

/* ---- what is held out ---- */

/* One part of each 1 / fraction parts is drawn; of the first ones it is the second part, so that a text of
 * two parts has one for each store. */
static void draw_heldout(struct run *r)
{
    double u = rng_uniform_at(rng_key(r->config->seed, PURPOSE_HOLDOUT), (uint64_t)r->n_strata);
    r->next_heldout =
        r->n_strata == 0 ? 1 : (int64_t)(((double)r->n_strata + u) / r->config->holdout_fraction);
    r->n_strata++;
}

static void plan_heldout(struct run *r)
{
    double part = (double)r->corpus.files.total_bytes * r->config->holdout_fraction / HELDOUT_PARTS;
    if (r->config->holdout_fraction > 0) {
        part = part < MOST_PART_BYTES ? part : MOST_PART_BYTES;
        r->part_bytes = part < LEAST_PART_BYTES ? LEAST_PART_BYTES : (size_t)part;
        draw_heldout(r);
    }
}

static bool is_heldout(struct run *r)
{
    int64_t part = r->n_parts++;
    bool is = r->part_bytes > 0 && part == r->next_heldout;
    while (r->part_bytes > 0 && r->next_heldout <= part) {
        draw_heldout(r);
    }
    return is;
}

/* ---- documents ---- */

static struct status out_of_memory(void)
{
    return status_error(STATUS_MEMORY, "out of memory for the tokens of a document");
}

static void flush(struct store *s)
{
    if (s->ids.n > 0) {
        document_output_add(&s->output, s->ids.ids, (int64_t)s->ids.n);
    }
    s->ids.n = 0;
}

static struct status add_tokens(struct store *s, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!id_list_append(&s->ids, ids[i])) {
            return out_of_memory();
        }
    }
    s->has_tokens |= n > 0;
    if (s->ids.n >= DOCUMENT_STORE_SEQUENCE_TOKENS) {
        flush(s);
    }
    return status_ok();
}

static struct status end_document(struct run *r, struct store *s)
{
    const struct document_store_config *c = r->config;
    if (!s->has_tokens) {
        return status_ok();
    }
    if (c->append_end && !id_list_append(&s->ids, c->tokenizer->special[SPECIAL_END])) {
        return out_of_memory();
    }
    flush(s);
    s->has_tokens = false;
    document_output_end_document(&s->output);
    return document_output_status(&s->output);
}

static struct status end_documents(struct run *r)
{
    for (int i = 0; i < r->n_stores && !r->config->check; i++) {
        TRY(end_document(r, &r->stores[i]));
    }
    return status_ok();
}

/* A part of another store than the one before is a document of its own. */
static struct status add_parts(struct run *r, const struct document_tokens *t)
{
    size_t start = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t n = t->ends[i] - start;
        int store = r->config->source.n_json_keys > 1 ? (int)i : is_heldout(r);
        bool is_other = r->part_bytes > 0 && r->stores[1 - store].has_tokens;
        TRY(is_other ? end_document(r, &r->stores[1 - store]) : status_ok());
        TRY(add_tokens(&r->stores[store], t->ids.ids + start, n));
        start = t->ends[i];
    }
    return status_ok();
}

static struct status check_keys(const struct run *r, const struct corpus_item *item)
{
    int n_keys = r->config->source.n_json_keys;
    FAIL_IF(n_keys > 1 && item->document.format != &json_source, STATUS_USAGE,
            "--json_keys has %d names, and %s is not lines of JSON", n_keys,
            r->corpus.files.files[item->place.file].path);
    return status_ok();
}

static struct status go_on(struct run *r, const struct corpus_item *item)
{
    r->report->read.done_bytes = item->done_bytes;
    if (progress_due(&r->progress)) {
        double done = (double)item->done_bytes / 1e6;
        progress_show(&r->progress, "prepare: %.1f of %.1f MB, %.1f MB/s", done,
                      (double)r->corpus.files.total_bytes / 1e6, done / (clock_since_s(r->start_ns) + 1e-9));
    }
    return stop_requested() ? status_error(STATUS_PREEMPTED, "stopped by a signal; nothing was written")
                            : status_ok();
}

static struct status take(void *context, const struct corpus_item *item)
{
    struct run *r = context;
    const struct document_tokens *t = item->result;
    enum document_fate fate;
    TRY(check_keys(r, item));
    TRY(cleaning_judge(&r->cleaning, &fate, &t->facts, item->document.begins));
    TRY(item->document.begins ? end_documents(r) : status_ok());
    corpus_count(&r->corpus, &item->place, item->document.begins, fate == DOCUMENT_KEPT,
                 fate == DOCUMENT_KEPT ? (int64_t)t->ids.n : 0);
    TRY(fate == DOCUMENT_KEPT && !r->config->check ? add_parts(r, t) : status_ok());
    return go_on(r, item);
}

/* What is wrong with a line of JSON, for messages; NULL: nothing. */
static const char *const line_faults[DOCUMENT_N_FATES] = {
    [DOCUMENT_TOO_LARGE] = "is longer than 16 MiB",
    [DOCUMENT_NOT_UTF8] = "is not UTF-8",
    [DOCUMENT_MALFORMED] = "is not a JSON object",
    [DOCUMENT_WITHOUT_FIELD] = "lacks the key of --json_keys, or --text_field",
    [DOCUMENT_NO_STRING] = "has a value that is not a string for the key of --json_keys",
};

static struct status leave_out(void *context, const struct corpus_item *item)
{
    enum { MOST_TOLD = 20 }; /* lines that a check names; it reads on */
    struct run *r = context;
    const char *what = item->document.format == &json_source ? line_faults[item->document.fate] : NULL;
    const char *path = r->corpus.files.files[item->place.file].path;
    int64_t line = item->place.in_file.text.line;
    if (what != NULL) {
        FAIL_IF(++r->n_bad > r->config->max_bad_lines && !r->config->check, STATUS_DATA,
                "%s:%" PRId64
                ": the line %s; --max_bad_lines N skips up to N such lines, and this is number %" PRId64
                "; --check counts them all",
                path, line, what, r->n_bad);
    }
    corpus_count(&r->corpus, &item->place, true, false, 0);
    if (what != NULL && (!r->config->check || r->n_bad <= MOST_TOLD)) {
        log_warning("%s:%" PRId64 ": the line %s, so it is skipped", path, line, what);
    }
    return go_on(r, item);
}

/* ---- the run ---- */

static struct status read_corpus(struct run *r)
{
    const struct document_store_config *c = r->config;
    struct document_tokens_config tokens = {.tokenizer = c->check ? NULL : c->tokenizer,
                                            .n_keys = c->source.n_json_keys > 1 ? c->source.n_json_keys : 1,
                                            .part_bytes = r->part_bytes,
                                            .facts = cleaning_facts(&c->cleaning)};
    struct corpus_transform transform = document_tokens_transform(&tokens);
    struct corpus_sink sink = {r, take, leave_out};
    struct status s = corpus_pass_run(&r->corpus, &transform, &sink);
    progress_end(&r->progress);
    s = failed(s) ? s : end_documents(r);
    r->report->read.counts = corpus_counts(&r->corpus);
    memcpy(r->report->read.fates, r->corpus.fates, sizeof r->corpus.fates);
    r->report->read.cleaning.counts = r->cleaning.counts;
    r->report->read.seconds = clock_since_s(r->start_ns);
    r->report->sources = corpus_file_counts_json(&r->corpus);
    return s;
}

static struct status check_outputs(const struct run *r)
{
    const struct document_store_config *c = r->config;
    FAIL_IF(corpus_n_documents(&r->corpus) == 0 &&
                (c->check || r->corpus.counts.n_by_format[source_formats_index(&json_source)] == 0),
            STATUS_DATA, "the input has no text");
    for (int i = 0; i < r->n_stores && !c->check; i++) {
        FAIL_IF(document_output_count(&r->stores[i].output) == 0, STATUS_DATA,
                c->common.output_dir != NULL && i == 1
                    ? "nothing can be held out of a text this short: give more text, or "
                      "--holdout_fraction 0 to hold out nothing"
                    : "no line of the input has a text with tokens for the key %s",
                key_of(c, c->common.output_dir != NULL ? 0 : i));
    }
    return status_ok();
}

static struct status finish(struct run *r)
{
    const struct tokenizer *t = r->config->tokenizer;
    for (int i = 0; i < r->n_stores && !r->config->check; i++) {
        struct token_store_info *info = &r->report->infos[i];
        *info =
            (struct token_store_info){.vocab_hash = t->hash, .vocab_size = t->n, .lower_case = t->lower_case};
        TRY(document_output_finish(&r->stores[i].output, info));
        r->report->n_stores++;
    }
    return r->config->check || r->config->common.output_dir == NULL
               ? status_ok()
               : tokenizer_files_write(t, r->config->common.output_dir);
}

static struct status read_and_write(struct run *r)
{
    const struct document_store_config *c = r->config;
    FAIL_IF(c->append_end && c->tokenizer->special[SPECIAL_END] < 0, STATUS_USAGE,
            "--append_eod: no file of the tokenizer says which token ends a document (eos_token of "
            "tokenizer_config.json); name it by --eod_token");
    stop_install();
    stop_begin_work();
    TRY(cleaning_open(&r->cleaning, c->cleaning, NULL, &r->report->read.cleaning, NULL));
    struct status s = dump_index_read(&r->corpus.files);
    s = failed(s) ? s : open_outputs(r);
    s = failed(s) ? s : read_corpus(r);
    cleaning_close(&r->cleaning);
    s = failed(s) ? s : check_outputs(r);
    return failed(s) ? s : finish(r);
}

/* The files of the tokenizer go with the stores. */
static struct status check_tokenizer(const struct document_store_config *c)
{
    enum tokenizer_copy copy = TOKENIZER_COPY_ABSENT;
    const char *name = "";
    TRY(c->common.output_dir == NULL || c->check
            ? status_ok()
            : tokenizer_files_compare(&copy, &name, c->tokenizer, c->common.output_dir));
    FAIL_IF(copy == TOKENIZER_COPY_OTHER && !c->overwrite, STATUS_USAGE,
            "%s/%s is of another tokenizer; --overwrite replaces it", c->common.output_dir, name);
    return status_ok();
}

static struct status claim_and_run(struct run *r)
{
    const struct document_store_config *c = r->config;
    r->report->total_bytes = r->corpus.files.total_bytes;
    r->n_stores = c->common.output_dir != NULL ? 1 + (c->holdout_fraction > 0)
                  : c->source.n_json_keys > 1  ? c->source.n_json_keys
                                               : 1;
    TRY(check_tokenizer(c));
    plan_heldout(r);
    for (int i = 0; i < r->n_stores; i++) {
        TRY(claim_output(r, i));
    }
    if (!c->common.dry_run) {
        return read_and_write(r);
    }
    if (c->cleaning.drop_duplicates || c->cleaning.drop_near_duplicates) {
        enum { SHORT_DOCUMENT = 512 };
        double n = (double)r->corpus.files.total_bytes / SHORT_DOCUMENT;
        log_info(
            "plan: hashes of documents take at most %.0f MB of memory if documents have %d bytes or more",
            (double)cleaning_memory_bytes(&c->cleaning, n) / 1e6, SHORT_DOCUMENT);
    }
    log_info("would read %" PRId64 " files, %.1f MB, and write %s.bin and .idx; nothing was written",
             r->corpus.files.n, (double)r->corpus.files.total_bytes / 1e6, r->report->prefixes[0]);
    return status_ok();
}

struct status document_store_write(struct pass_report *report, const struct document_store_config *c)
{
    struct run *r = calloc(1, sizeof *r);
    struct source_options source = c->source;
    FAIL_IF(r == NULL, STATUS_MEMORY, "out of memory for documents");
    *report = (struct pass_report){0};
    r->config = c;
    r->report = report;
    for (int i = 0; i < SOURCE_MOST_KEYS; i++) {
        r->stores[i].output.lock.fd = -1;
    }
    r->start_ns = clock_ns();
    r->progress = progress_begin(!c->common.dry_run);
    source.keeps_layout = source.leaves_out_others = true;
    struct status s = corpus_open(&r->corpus, c->inputs, c->n_inputs, source);
    s = failed(s) ? s : claim_and_run(r);
    for (int i = 0; i < r->n_stores; i++) {
        document_output_close(&r->stores[i].output);
        id_list_fini(&r->stores[i].ids);
    }
    corpus_close(&r->corpus);
    free(r);
    return s;
}
