#include "task/prepare_plan.h"

#include "core/log.h"
#include "core/progress.h"
#include "corpus/source_formats.h"

#include <inttypes.h>
#include <string.h>

static double megabytes(uint64_t n)
{
    return (double)n / 1e6;
}

/* Appends "3 as text, 0 as lines". */
static void name_formats(struct buf *text, const struct source_counts *counts)
{
    for (int i = 0; i < SOURCE_N_FORMATS; i++) {
        buf_printf(text, "%s%" PRId64 " as %s", i == 0 ? "" : ", ", counts->n_by_format[i],
                   source_formats[i]->name);
    }
}

/* Appends "105 kept, 100 redirects"; returns their sum. */
static int64_t name_fates(struct buf *text, const int64_t counts[DOCUMENT_N_FATES])
{
    int64_t n = 0;
    for (int i = 0; i < DOCUMENT_N_FATES; i++) {
        if (counts[i] > 0) {
            buf_printf(text, "%s%" PRId64 " %s", n == 0 ? "" : ", ", counts[i], document_fate_names[i]);
        }
        n += counts[i];
    }
    return n;
}

static void tell_about_fates(const int64_t fates[DOCUMENT_N_FATES], const char *before)
{
    struct buf text = {0};
    int64_t n = name_fates(&text, fates);
    if (n > 0) {
        log_info("%s %" PRId64 ": %s", before, n, buf_text(&text));
    }
    buf_fini(&text);
}

static void tell_about_cleaning(const struct cleaning_counts *c)
{
    tell_about_fates(c->documents, "documents left out by cleaning:");
    if (c->n_lines > 0) {
        log_info("repeated lines left out: %" PRId64, c->n_lines);
    }
    if (c->n_unremembered > 0) {
        log_warning("%d documents are remembered to find duplicates, %d to find near ones; %" PRId64
                    " later ones were compared with those only",
                    CLEANING_MOST_DOCUMENTS, CLEANING_MOST_NEAR_DOCUMENTS, c->n_unremembered);
    }
}

static void tell_about_faults(const struct source_counts *counts)
{
    if (counts->n_damaged_parts + counts->n_cut_files > 0) {
        log_warning("%" PRId64 " damaged parts were left out, and %" PRId64 " compressed files are cut short",
                    counts->n_damaged_parts, counts->n_cut_files);
    }
    if (counts->n_unclosed > 0) {
        log_warning("%" PRId64 " documents have no end; the text that is there was used", counts->n_unclosed);
    }
    if (counts->n_missing_pages > 0) {
        log_warning("%" PRId64 " pages that the indexes of dumps list were not read",
                    counts->n_missing_pages);
    }
    if (counts->n_other_files > 0) {
        log_warning("%" PRId64 " files are not text and were left out", counts->n_other_files);
    }
    if (counts->n_empty_documents > 0) {
        log_warning("%" PRId64 " documents have no text and were left out", counts->n_empty_documents);
    }
    if (counts->n_replaced > 0) {
        log_warning("%" PRId64 " ill-formed UTF-8 sequences were read as U+FFFD", counts->n_replaced);
    }
    if (counts->n_cut > 0) {
        log_warning("paragraphs longer than %d MiB were cut, %" PRId64
                    " times; do the files have line breaks?",
                    DOCUMENT_PARAGRAPH_BYTES >> 20, counts->n_cut);
    }
}

void prepare_report_text(const struct pass_state *state, uint64_t total_bytes)
{
    const struct source_counts *counts = &state->counts;
    struct buf formats = {0};
    double size = megabytes(total_bytes), seconds = state->seconds;
    name_formats(&formats, counts);
    log_info("read %" PRId64 " files (%s), %.1f MB, %" PRId64 " documents, in %s (%.1f MB/s)",
             counts->n_files, buf_text(&formats), size, counts->n_documents + state->fates[DOCUMENT_KEPT],
             progress_time(seconds).text, size / (seconds > 0 ? seconds : 1));
    buf_fini(&formats);
    tell_about_fates(state->fates, "pages, or lines of JSON:");
    if (counts->n_gutenberg > 0) {
        log_info("Project Gutenberg's header and footer were left out of %" PRId64 " books",
                 counts->n_gutenberg);
    }
    tell_about_cleaning(&state->cleaning.counts);
    tell_about_faults(counts);
}

/* {"without_text": 3, "duplicate": 1}, and what is kept. */
static json_t *left_out(int64_t *n_kept, const struct pass_state *s)
{
    json_t *out = json_object();
    *n_kept = s->counts.n_documents + s->fates[DOCUMENT_KEPT];
    for (int i = DOCUMENT_KEPT + 1; i < DOCUMENT_N_FATES; i++) {
        int64_t empty = i == DOCUMENT_WITHOUT_TEXT ? s->counts.n_empty_documents : 0;
        int64_t n = s->fates[i] + s->cleaning.counts.documents[i] + empty;
        *n_kept -= s->cleaning.counts.documents[i];
        if (n > 0) {
            json_object_set_new(out, document_fate_keys[i], json_integer((json_int_t)n));
        }
    }
    return out;
}

static long long count_of(const json_t *source, const char *key)
{
    return (long long)json_integer_value(json_object_get(source, key));
}

void prepare_report_sources(const json_t *sources)
{
    enum { MOST_TOLD = 12 };
    size_t n = json_array_size(sources);
    for (size_t i = 0; n > 1 && n <= MOST_TOLD && i < n; i++) {
        const json_t *s = json_array_get(sources, i);
        log_info("  %s: %lld documents, %lld left out, %lld tokens",
                 json_string_value(json_object_get(s, "path")), count_of(s, "documents"),
                 count_of(s, "left_out"), count_of(s, "tokens"));
    }
}

struct status prepare_report_json(struct buf *out, const struct pass_report *r)
{
    int64_t n_kept;
    json_t *stores = json_array(), *others = left_out(&n_kept, &r->read);
    for (int i = 0; i < r->n_stores; i++) {
        json_array_append_new(stores, json_pack("{s:o, s:I, s:I}", "path", json_text(r->prefixes[i]),
                                                "documents", (json_int_t)r->infos[i].n_documents, "tokens",
                                                (json_int_t)r->infos[i].n_tokens));
    }
    return json_append_line(out,
                            json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:f, s:o, s:O?}", "files",
                                      (json_int_t)r->read.counts.n_files, "other_files",
                                      (json_int_t)r->read.counts.n_other_files, "bytes",
                                      (json_int_t)r->total_bytes, "documents", (json_int_t)n_kept, "left_out",
                                      others, "repeated_lines", (json_int_t)r->read.cleaning.counts.n_lines,
                                      "seconds", r->read.seconds, "stores", stores, "sources", r->sources),
                            9);
}

void prepare_report_stores(const struct prepare_config *c, const struct token_store_info infos[STORE_COUNT])
{
    for (int k = 0; k < STORE_COUNT; k++) {
        const struct token_store_info *i = &infos[k];
        if (i->n_documents > 0) {
            log_info("%s/%s.{bin,idx,json}: %" PRId64 " parts of documents, %" PRId64 " sentences, %" PRId64
                     " tokens",
                     c->common.output_dir, k == STORE_TRAIN ? "train" : "heldout", i->n_documents,
                     i->n_sentences, i->n_tokens);
        }
    }
    if (infos[STORE_HELDOUT].n_documents == 0 && c->pass.holdout_fraction > 0) {
        log_warning("nothing is held out: the text is one document of fewer than %d sentences",
                    STORE_BUILDER_PART_SENTENCES + 1);
    }
}

/* Appends the names of a set's files: DATASET_training_*.hdf5 of the replaced scripts, or training/ and
 * *.hdf5. */
static void name_files(struct buf *out, const struct prepare_config *c, const struct prepare_set *set,
                       const char *word)
{
    bool is_flat = set->shards.dataset != NULL && !set->shards.packed;
    buf_printf(out, "%s/%s%s", c->common.output_dir, set->name, set->name[0] == '\0' ? "" : "/");
    if (is_flat) {
        buf_printf(out, "%s_%s_*.hdf5", set->shards.dataset, word);
    } else {
        buf_printf(out, "%s/*.hdf5", word);
    }
}

void prepare_report_set(const struct prepare_config *c, const struct prepare_set *set,
                        const struct shard_writer_report reports[STORE_COUNT])
{
    static const char *const words[STORE_COUNT] = {"training", "test"};
    for (int k = 0; k < STORE_COUNT; k++) {
        const struct shard_packing *p = &reports[k].packing;
        if (reports[k].n_shards == 0) {
            log_warning("nothing is held out, so there are no files for testing");
            continue;
        }
        struct buf files = {0};
        name_files(&files, c, set, words[k]);
        log_info("%s: %" PRId64 " files, %" PRId64 " sequences in %" PRId64 " %s of %" PRId64
                 " tokens, %.1f %% of them text",
                 buf_text(&files), reports[k].n_shards, p->n_sequences, p->n_packs,
                 set->shards.packed ? "packs" : "rows", p->seq_length,
                 100 * (double)p->n_tokens / ((double)p->n_packs * (double)p->seq_length));
        buf_fini(&files);
    }
}
