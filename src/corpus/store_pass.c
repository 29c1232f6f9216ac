#include "corpus/store_pass.h"

#include "core/clock.h"
#include "core/progress.h"
#include "core/stop.h"

struct store_sink {
    const struct store_pass_config *config;
    struct corpus *corpus;
    struct store_pass_report *report;
    struct pass_state *state;
    struct store_builder builder;
    struct text_output text;
    struct cleaning cleaning;
    struct buf memory;
    struct progress progress;
    int64_t start_ns, saved_ns;
    uint64_t start_bytes;
    int64_t n_documents; /* documents of this run */
    double old_seconds;
    bool has_enough; /* a sample */
};

static bool has_builder(const struct store_sink *k)
{
    return k->config->tokenizer != NULL && k->config->directory != NULL;
}

/* ---- the state ---- */

static struct status save(struct store_sink *k)
{
    struct pass_state *s = k->state;
    buf_clear(&k->memory);
    TRY(cleaning_save(&k->cleaning, &s->cleaning, &k->memory));
    corpus_save_file_counts(k->corpus, &k->memory);
    if (has_builder(k)) {
        TRY(store_builder_save(&k->builder, &s->store, &k->memory));
    }
    if (k->config->writes_text) {
        TRY(text_output_save(&k->text, &s->text));
    }
    s->seconds = k->old_seconds + clock_since_s(k->start_ns);
    k->saved_ns = clock_ns();
    return pass_state_save(s, k->config->directory, &k->memory);
}

/* Records the progress in the corpus after this item. */
static void note(struct store_sink *k, const struct corpus_item *item)
{
    struct pass_state *s = k->state;
    s->place = item->place;
    s->done_bytes = item->done_bytes;
    s->counts = item->counts;
    memcpy(s->fates, k->corpus->fates, sizeof s->fates);
}

static struct status stop(const struct store_sink *k)
{
    double percent = 100 * (double)k->state->done_bytes / (double)k->corpus->files.total_bytes;
    return status_error(STATUS_PREEMPTED, "stopped by %s after %.1f %% of the text%s", stop_cause(), percent,
                        k->config->directory == NULL ? ""
                                                     : "; the same command with --resume continues there");
}

/* ---- the sink ---- */

static void show_progress(struct store_sink *k, uint64_t done)
{
    double seconds = clock_since_s(k->start_ns), rate = (double)(done - k->start_bytes) / seconds;
    double left = (double)(k->corpus->files.total_bytes - done) / (rate > 0 ? rate : 1);
    progress_show(&k->progress, "prepare: %.1f of %.1f MB, %.1f MB/s, %.0f documents/s, %s left",
                  (double)done / 1e6, (double)k->corpus->files.total_bytes / 1e6, rate / 1e6,
                  (double)k->n_documents / seconds, progress_time(left).text);
}

/* Adds a paragraph that is kept, and its sentences [first, end). */
static struct status add_paragraph(struct store_sink *k, const struct document *d,
                                   const struct document_ids *ids, int64_t i)
{
    int64_t first = i == 0 ? 0 : ids->paragraph_ends[i - 1], end = ids->paragraph_ends[i];
    k->report->n_sentences += end - first;
    k->report->n_text_bytes += (int64_t)document_paragraph(d, i).n;
    if (end > first) {
        k->report->n_tokens += (int64_t)(ids->ends[end - 1] - (first == 0 ? 0 : ids->ends[first - 1]));
    }
    if (k->config->writes_text && k->config->directory != NULL) {
        TRY(text_output_add(&k->text, d, document_paragraph(d, i)));
    }
    return has_builder(k) ? store_builder_add_sentences(&k->builder, ids, first, end) : status_ok();
}

static struct status add_document(struct store_sink *k, bool *is_kept, const struct document *d,
                                  const struct document_ids *ids)
{
    enum document_fate fate;
    TRY(cleaning_judge(&k->cleaning, &fate, &ids->facts, d->begins));
    *is_kept = fate == DOCUMENT_KEPT;
    if (!*is_kept) {
        return status_ok();
    }
    if (d->begins && has_builder(k)) {
        store_builder_begin_document(&k->builder);
    }
    if (d->begins && k->config->writes_text) {
        text_output_begin(&k->text);
    }
    for (int64_t i = 0; i < d->n_paragraphs; i++) {
        struct paragraph p = document_paragraph(d, i);
        if (cleaning_keeps_line(&k->cleaning, ids->hashes[i], p.text, p.n)) {
            TRY(add_paragraph(k, d, ids, i));
        }
    }
    return status_ok();
}

static struct status take(void *context, const struct corpus_item *item)
{
    struct store_sink *k = context;
    k->n_documents += item->document.begins;
    int64_t n_tokens = k->report->n_tokens;
    bool is_kept;
    TRY(add_document(k, &is_kept, &item->document, item->result));
    corpus_count(k->corpus, &item->place, item->document.begins, is_kept, k->report->n_tokens - n_tokens);
    note(k, item);
    if (progress_due(&k->progress)) {
        show_progress(k, item->done_bytes);
    }
    bool stops = stop_requested();
    bool is_due = k->config->directory != NULL && clock_since_s(k->saved_ns) >= k->config->save_seconds;
    TRY(is_due || (stops && k->config->directory != NULL) ? save(k) : status_ok());
    k->has_enough = k->config->most_seconds > 0 && clock_since_s(k->start_ns) >= k->config->most_seconds;
    return stops || k->has_enough ? stop(k) : status_ok();
}

static struct status leave_out(void *context, const struct corpus_item *item)
{
    struct store_sink *k = context;
    corpus_count(k->corpus, &item->place, true, false, 0);
    return status_ok();
}

/* ---- opening and closing ---- */

static struct status open_outputs(struct store_sink *k, struct span *memory)
{
    const struct store_pass_config *c = k->config;
    struct store_builder_config store = {.tokenizer = c->tokenizer,
                                         .holdout_fraction = c->holdout_fraction,
                                         .seed = c->seed,
                                         .directory = c->directory};
    TRY(cleaning_open(&k->cleaning, c->cleaning, c->directory, &k->state->cleaning, memory));
    TRY(memory == NULL ? status_ok() : corpus_load_file_counts(k->corpus, memory));
    if (c->directory == NULL) {
        return status_ok();
    }
    if (has_builder(k)) {
        TRY(memory == NULL ? store_builder_open(&k->builder, store)
                           : store_builder_continue(&k->builder, store, &k->state->store, memory));
    }
    if (c->writes_text) {
        char path[FILE_PATH_BYTES];
        snprintf(path, sizeof path, "%.900s/" STORE_PASS_TEXT_NAME, c->directory);
        TRY(text_output_open(&k->text, path, &k->state->text));
    }
    return status_ok();
}

/* Opens everything at the state, which an earlier run may have saved. */
static struct status open_sink(struct store_sink *k)
{
    struct file_map map = {0};
    struct span memory;
    if (k->state->n_saves == 0) {
        return open_outputs(k, NULL);
    }
    TRY(pass_state_map_memory(&map, k->state, k->config->directory));
    memory = bytes_span(map.data, map.n);
    struct status s = open_outputs(k, &memory);
    file_map_close(&map);
    TRY(s);
    TRY(corpus_seek(k->corpus, k->state->place));
    k->corpus->counts = k->state->counts;
    memcpy(k->corpus->fates, k->state->fates, sizeof k->corpus->fates);
    return status_ok();
}

static void close_sink(struct store_sink *k)
{
    store_builder_close(&k->builder);
    text_output_close(&k->text);
    cleaning_close(&k->cleaning);
    buf_fini(&k->memory);
}

/* Completes the files that reading fills. */
static struct status complete(struct store_sink *k)
{
    struct pass_state *s = k->state;
    s->place = corpus_place(k->corpus);
    s->done_bytes = k->corpus->files.total_bytes;
    s->counts = corpus_counts(k->corpus);
    memcpy(s->fates, k->corpus->fates, sizeof s->fates);
    s->cleaning.counts = k->cleaning.counts;
    s->seconds = k->old_seconds + clock_since_s(k->start_ns);
    k->report->is_whole = true;
    if (k->config->directory == NULL) {
        return status_ok();
    }
    if (k->config->writes_text) {
        text_output_end(&k->text);
        TRY(text_output_save(&k->text, &s->text));
    }
    if (has_builder(k)) {
        TRY(store_builder_commit(&k->builder));
        memcpy(k->report->infos, k->builder.infos, sizeof k->report->infos);
    }
    s->stage = PASS_READ;
    buf_clear(&k->memory);
    return pass_state_save(s, k->config->directory, &k->memory);
}

static struct status run_pass(struct store_sink *k)
{
    const struct store_pass_config *c = k->config;
    struct document_ids_config ids = {.tokenizer = c->tokenizer,
                                      .one_sentence_per_line = c->one_sentence_per_line,
                                      .punkt = c->punkt,
                                      .facts = cleaning_facts(&c->cleaning)};
    struct corpus_transform transform = document_ids_transform(&ids);
    struct corpus_sink sink = {.context = k, .take = take, .leave_out = leave_out};
    k->start_ns = k->saved_ns = clock_ns();
    k->start_bytes = k->state->done_bytes;
    k->progress = progress_begin(!c->quiet);
    struct status s = corpus_pass_run(k->corpus, &transform, &sink);
    progress_end(&k->progress);
    if (k->has_enough) {
        k->state->seconds = clock_since_s(k->start_ns);
        return status_ok();
    }
    TRY(s);
    if (!c->quiet && c->cleaning.drop_repeated_lines == 0) {
        repeats_tell(&k->cleaning.repeats);
    }
    return complete(k);
}

struct status store_pass_run(struct store_pass_report *report, struct corpus *c,
                             const struct store_pass_config *config, struct pass_state *state)
{
    struct store_sink k = {
        .config = config, .corpus = c, .report = report, .state = state, .old_seconds = state->seconds};
    *report = (struct store_pass_report){0};
    struct status s = open_sink(&k);
    s = failed(s) ? s : run_pass(&k);
    close_sink(&k);
    return s;
}
