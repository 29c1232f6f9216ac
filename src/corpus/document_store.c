#include "corpus/document_store.h"

#include "core/clock.h"
#include "core/log.h"
#include "core/progress.h"
#include "core/stop.h"
#include "corpus/document_parts.h"
#include "corpus/dump_index.h"
#include "corpus/pass_work.h"
#include "corpus/source_formats.h"
#include "text/tokenizer_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct run {
    const struct document_store_config *config;
    struct pass_report *report;
    struct pass_state *state; /* the report's */
    struct pass_work work;
    struct buf memory; /* the part of the state that is no JSON */
    struct corpus corpus;
    struct cleaning cleaning;
    struct document_parts parts;
    int n_stores;
    bool keeps; /* a later run continues */
    int64_t n_bad;
    int64_t start_ns, saved_ns;
    double old_seconds; /* time that earlier runs read */
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
    return document_output_name(&r->parts.stores[i].output, prefix);
}

static struct status claim_output(struct run *r, int i)
{
    const struct document_store_config *c = r->config;
    bool is_dry = c->common.dry_run || c->check;
    TRY(name_output(r, i));
    TRY(is_dry ? status_ok() : file_make_parent(r->report->prefixes[i]));
    return document_output_claim(&r->parts.stores[i].output, &r->corpus.files, DOCUMENT_OUTPUT_REPLACE,
                                 is_dry);
}

static struct status open_outputs(struct run *r)
{
    struct document_shuffle_config shuffle = r->config->shuffle;
    shuffle.expected_bytes = r->corpus.files.total_bytes; /* text takes more bytes than its tokens */
    shuffle.memory_bytes /= (uint64_t)r->n_stores;
    for (int i = 0; i < r->n_stores && !r->config->check; i++) {
        TRY(document_output_open(&r->parts.stores[i].output, r->config->tokenizer->n, &shuffle));
    }
    return status_ok();
}

/* The files of the tokenizer go with the stores. */
static struct status check_tokenizer(const struct document_store_config *c)
{
    enum tokenizer_copy copy = TOKENIZER_COPY_ABSENT;
    const char *name = "";
    TRY(c->common.output_dir == NULL || c->check
            ? status_ok()
            : tokenizer_files_compare(&copy, &name, c->tokenizer, c->common.output_dir));
    FAIL_IF(copy == TOKENIZER_COPY_OTHER, STATUS_USAGE,
            "%s/%s is of another tokenizer; --overwrite replaces it", c->common.output_dir, name);
    return status_ok();
}

static struct status check_outputs_new(void *context)
{
    const struct run *r = context;
    for (int i = 0; i < r->n_stores && !r->config->overwrite; i++) {
        TRY(document_output_check_new(&r->parts.stores[i].output));
    }
    return r->config->overwrite ? status_ok() : check_tokenizer(r->config);
}

static struct status check_keys(const struct run *r, const struct corpus_item *item)
{
    int n_keys = r->config->source.n_json_keys;
    FAIL_IF(n_keys > 1 && item->document.format != &json_source, STATUS_USAGE,
            "--json_keys has %d names, and %s is not lines of JSON", n_keys,
            r->corpus.files.files[item->place.file].path);
    return status_ok();
}

/* ---- the state ---- */

/* Saves what the run is after the items so far. */
static struct status save(struct run *r)
{
    buf_clear(&r->memory);
    TRY(cleaning_save(&r->cleaning, &r->state->cleaning, &r->memory));
    corpus_save_file_counts(&r->corpus, &r->memory);
    buf_append(&r->memory, &r->n_bad, sizeof r->n_bad);
    TRY(document_parts_save(&r->parts, &r->memory));
    r->state->seconds = r->old_seconds + clock_since_s(r->start_ns);
    r->saved_ns = clock_ns();
    return pass_state_save(r->state, r->work.directory, &r->memory);
}

static struct status load(struct run *r, struct span *in)
{
    TRY(corpus_load_file_counts(&r->corpus, in));
    r->n_bad = (int64_t)bytes_read_u64(in);
    return document_parts_continue(&r->parts, in);
}

/* Opens everything at the state, which an earlier run may have saved. */
static struct status open_all(struct run *r)
{
    struct cleaning_config cleaning = r->config->cleaning;
    struct file_map map;
    if (r->state->n_saves == 0) {
        TRY(cleaning_open(&r->cleaning, cleaning, r->work.directory[0] == '\0' ? NULL : r->work.directory,
                          &r->state->cleaning, NULL));
        return open_outputs(r);
    }
    TRY(pass_state_map_memory(&map, r->state, r->work.directory));
    struct span in = bytes_span(map.data, map.n);
    struct status s = cleaning_open(&r->cleaning, cleaning, r->work.directory, &r->state->cleaning, &in);
    s = failed(s) ? s : load(r, &in);
    file_map_close(&map);
    TRY(s);
    r->corpus.counts = r->state->counts;
    memcpy(r->corpus.fates, r->state->fates, sizeof r->corpus.fates);
    return corpus_seek(&r->corpus, r->state->place);
}

/* Whether a later run can continue from within the text: shuffled documents are in files that nothing
 * continues. */
static bool saves(const struct run *r)
{
    return !r->config->check && r->config->shuffle.seed < 0;
}

static struct status stop(struct run *r)
{
    double percent = 100 * (double)r->state->done_bytes / (double)r->corpus.files.total_bytes;
    TRY(saves(r) ? save(r) : status_ok());
    return status_error(STATUS_PREEMPTED, "stopped by %s after %.1f %% of the text%s", stop_cause(), percent,
                        saves(r) ? "; the same command with --resume continues there"
                                 : "; nothing was written");
}

static struct status go_on(struct run *r, const struct corpus_item *item)
{
    struct pass_state *s = r->state;
    s->place = item->place;
    s->done_bytes = item->done_bytes;
    s->counts = item->counts;
    memcpy(s->fates, r->corpus.fates, sizeof s->fates);
    if (progress_due(&r->progress)) {
        double done = (double)s->done_bytes / 1e6;
        progress_show(&r->progress, "prepare: %.1f of %.1f MB, %.1f MB/s", done,
                      (double)r->corpus.files.total_bytes / 1e6, done / (clock_since_s(r->start_ns) + 1e-9));
    }
    if (stop_requested()) {
        return stop(r);
    }
    return saves(r) && clock_since_s(r->saved_ns) >= r->config->save_seconds ? save(r) : status_ok();
}

static struct status take(void *context, const struct corpus_item *item)
{
    struct run *r = context;
    const struct document_tokens *t = item->result;
    enum document_fate fate;
    TRY(check_keys(r, item));
    TRY(cleaning_judge(&r->cleaning, &fate, &t->facts, item->document.begins));
    TRY(item->document.begins ? document_parts_end(&r->parts) : status_ok());
    corpus_count(&r->corpus, &item->place, item->document.begins, fate == DOCUMENT_KEPT,
                 fate == DOCUMENT_KEPT ? (int64_t)t->ids.n : 0);
    TRY(fate == DOCUMENT_KEPT && !r->config->check ? document_parts_add(&r->parts, t) : status_ok());
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
                                            .part_bytes = r->parts.part_bytes,
                                            .facts = cleaning_facts(&c->cleaning)};
    struct corpus_transform transform = document_tokens_transform(&tokens);
    struct corpus_sink sink = {r, take, leave_out};
    struct status s = corpus_pass_run(&r->corpus, &transform, &sink);
    progress_end(&r->progress);
    s = failed(s) ? s : document_parts_end(&r->parts);
    r->state->counts = corpus_counts(&r->corpus);
    memcpy(r->state->fates, r->corpus.fates, sizeof r->corpus.fates);
    r->state->cleaning.counts = r->cleaning.counts;
    r->state->seconds = r->old_seconds + clock_since_s(r->start_ns);
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
        FAIL_IF(document_output_count(&r->parts.stores[i].output) == 0, STATUS_DATA,
                c->common.output_dir != NULL && i == 1
                    ? "nothing can be held out of a text this short: give more text, or "
                      "--holdout_fraction 0 to hold out nothing"
                    : "no line of the input has a text with tokens for the key %s",
                key_of(c, c->common.output_dir != NULL ? 0 : i));
    }
    return status_ok();
}

static struct status complete(struct run *r)
{
    const struct tokenizer *t = r->config->tokenizer;
    for (int i = 0; i < r->n_stores; i++) {
        struct token_store_info *info = &r->report->infos[i];
        *info =
            (struct token_store_info){.vocab_hash = t->hash, .vocab_size = t->n, .lower_case = t->lower_case};
        TRY(document_output_complete(&r->parts.stores[i].output, info));
    }
    return pass_work_save_stage(&r->work, r->state, PASS_MOVING);
}

/* A run that is resumed here has read nothing: the stores say what they have. */
static struct status move_outputs(struct run *r)
{
    for (int i = 0; i < r->n_stores; i++) {
        const char *prefix = r->report->prefixes[i];
        struct token_store store;
        TRY(document_output_move(&r->parts.stores[i].output));
        TRY(token_store_open(&store, prefix));
        r->report->infos[i] = store.info;
        r->report->n_stores++;
        log_info("wrote %s.bin and .idx: %" PRId64 " documents, %" PRId64 " tokens of %d bytes", prefix,
                 store.info.n_documents, store.info.n_tokens, store.index.token_bytes);
        token_store_close(&store);
    }
    TRY(r->config->common.output_dir == NULL
            ? status_ok()
            : tokenizer_files_write(r->config->tokenizer, r->config->common.output_dir));
    return pass_work_end(&r->work);
}

static struct status read_text(struct run *r)
{
    struct status s = dump_index_read(&r->corpus.files);
    r->start_ns = r->saved_ns = clock_ns();
    r->old_seconds = r->state->seconds;
    s = failed(s) ? s : open_all(r);
    s = failed(s) ? s : read_corpus(r);
    cleaning_close(&r->cleaning);
    return failed(s) ? s : check_outputs(r);
}

static struct status run_stages(struct run *r)
{
    bool is_done;
    TRY(pass_work_begin(&r->work, r->state, &is_done));
    if (is_done) {
        return status_ok();
    }
    bool was_resumed = r->state->n_saves > 0;
    struct pass_state last;
    struct status s = status_ok();
    if (r->state->stage < PASS_MOVING) {
        s = read_text(r);
        s = failed(s) ? s : complete(r);
    }
    s = failed(s) ? s : move_outputs(r);
    r->keeps = failed(s) && pass_work_keep(&r->work, &last, s, was_resumed);
    return s;
}

static struct status make_work(struct run *r)
{
    const struct document_store_config *c = r->config;
    const char *directory = c->common.output_dir;
    r->work = (struct pass_work){.output = directory != NULL ? directory : c->output_prefix,
                                 .inputs = &r->corpus.files,
                                 .settings = c->settings,
                                 .overwrite = c->overwrite,
                                 .resume = c->resume,
                                 .check_outputs = check_outputs_new,
                                 .context = r};
    TRY(file_make_path(r->work.directory, "%s", r->parts.stores[0].output.work));
    return directory == NULL ? status_ok() : file_make_path(r->work.done, "%s/.prepared.json", directory);
}

/* ---- what writes nothing ---- */

static struct status tell_plan(const struct run *r)
{
    const struct document_store_config *c = r->config;
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

static struct status claim_and_run(struct run *r)
{
    const struct document_store_config *c = r->config;
    r->report->total_bytes = r->corpus.files.total_bytes;
    r->n_stores = c->common.output_dir != NULL ? 1 + (c->holdout_fraction > 0)
                  : c->source.n_json_keys > 1  ? c->source.n_json_keys
                                               : 1;
    r->parts = (struct document_parts){.tokenizer = c->tokenizer,
                                       .append_end = c->append_end,
                                       .by_key = c->source.n_json_keys > 1,
                                       .holdout_fraction = c->holdout_fraction,
                                       .seed = c->seed,
                                       .n_stores = r->n_stores};
    for (int i = 0; i < r->n_stores; i++) {
        r->parts.stores[i].output.lock.fd = -1;
    }
    document_parts_plan(&r->parts, r->corpus.files.total_bytes);
    for (int i = 0; i < r->n_stores; i++) {
        TRY(claim_output(r, i));
    }
    FAIL_IF(c->append_end && c->tokenizer->special[SPECIAL_END] < 0, STATUS_USAGE,
            "--append_eod: no file of the tokenizer says which token ends a document (eos_token of "
            "tokenizer_config.json); name it by --eod_token");
    if (c->common.dry_run) {
        TRY(c->resume ? status_ok() : check_outputs_new(r));
        return tell_plan(r);
    }
    stop_install();
    stop_begin_work();
    if (c->check) {
        return read_text(r);
    }
    TRY(make_work(r));
    return run_stages(r);
}

struct status document_store_write(struct pass_report *report, const struct document_store_config *c)
{
    struct run *r = calloc(1, sizeof *r);
    struct source_options source = c->source;
    FAIL_IF(r == NULL, STATUS_MEMORY, "out of memory for documents");
    *report = (struct pass_report){0};
    r->config = c;
    r->report = report;
    r->state = &report->read;
    r->progress = progress_begin(!c->common.dry_run);
    source.keeps_layout = source.leaves_out_others = true;
    struct status s = corpus_open(&r->corpus, c->inputs, c->n_inputs, source);
    s = failed(s) ? s : claim_and_run(r);
    document_parts_close(&r->parts, r->keeps);
    corpus_close(&r->corpus);
    buf_fini(&r->memory);
    free(r);
    return s;
}
