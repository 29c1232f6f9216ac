#include "task/prepare_plan.h"

#include "core/log.h"
#include "core/parallel.h"
#include "core/progress.h"
#include "corpus/source_formats.h"

#include <inttypes.h>

enum {
    MOST_FILES = 200 /* files that are looked at: opening one takes milliseconds if it is packed */,
    N_PACKINGS = 4
};

/* Estimates without a sample.  English prose has 4.2 bytes a token and 110 a sentence; dumps and compressed
 * text vary, and bzip2 makes of Wikipedia's XML about what is left of it as text. */
static const double TEXT_PER_BYTE[N_PACKINGS] = {1, 2.5, 1.2, 3};
static const double TOKENS_PER_TEXT = 1 / 4.2, SENTENCES_PER_TEXT = 1 / 110.0;

/* Bytes of a sentence: 4 and 8 in the index, 4 more in .prepare until the end. */
static const double INDEX_BYTES = 16;

/* Bytes of a row's token and prediction, deflated, as seen on English text with 128 and 512 tokens. */
static const double DEFLATED_TOKEN_BYTES = 1.6, DEFLATED_PREDICTION_BYTES = 2.7;

/* Peak memory as seen on text and on dumps, with one thread and with two, rounded up. */
static const uint64_t BASE_BYTES = UINT64_C(64) << 20, THREAD_BYTES = UINT64_C(48) << 20;

struct kinds {
    int64_t n_files[SOURCE_N_FORMATS][N_PACKINGS];
    uint64_t n_bytes[SOURCE_N_FORMATS][N_PACKINGS];
};

static const struct byte_stream_kind *const packings[N_PACKINGS] = {&plain_stream, &gzip_stream,
                                                                    &bzip2_stream, &archive_stream};

static struct status look(struct kinds *k, const struct corpus *corpus)
{
    struct source_counts counts = {0};
    struct source source;
    struct source_options options = corpus->options;
    struct status s = status_ok();
    options.quiet = true; /* the pass that reads all of it warns */
    source_init(&source, &counts);
    for (int64_t i = 0; i < corpus->files.n && i < MOST_FILES && !failed(s); i++) {
        const struct input_file *f = &corpus->files.files[i];
        if (f->is_index) {
            continue;
        }
        s = source_open(&source, f->path, f->n_bytes, &options);
        if (!failed(s)) {
            int format = source_formats_index(source.format), packing = N_PACKINGS - 1;
            while (packing > 0 && packings[packing] != source.reader.stream.kind) {
                packing--;
            }
            k->n_files[format][packing]++;
            k->n_bytes[format][packing] += f->n_bytes;
        }
        source_close(&source);
        s = s.code == STATUS_DATA && options.leaves_out_others && f->in_directory ? status_ok() : s;
    }
    source_fini(&source);
    return s;
}

static void tell_kinds(const struct kinds *k, const struct corpus *corpus)
{
    struct buf text = {0};
    for (int f = 0; f < SOURCE_N_FORMATS; f++) {
        for (int p = 0; p < N_PACKINGS; p++) {
            if (k->n_files[f][p] > 0) {
                buf_printf(&text, "; %" PRId64 " as %s, %s, %.1f MB", k->n_files[f][p],
                           source_formats[f]->name, packings[p]->name, (double)k->n_bytes[f][p] / 1e6);
            }
        }
    }
    if (corpus->files.n_indexes > 0) {
        buf_printf(&text, "; %" PRId64 " more as the index of a dump", corpus->files.n_indexes);
    }
    if (corpus->files.n > MOST_FILES) {
        buf_printf(&text, "; the other files were not looked at");
    }
    log_info("plan: %" PRId64 " files, %.1f MB%s", corpus->files.n - corpus->files.n_indexes,
             (double)corpus->files.total_bytes / 1e6, buf_text(&text));
    buf_fini(&text);
}

/* ---- the sample ---- */

struct amounts {
    double text, tokens, sentences; /* bytes of text, tokens and sentences of the complete corpus */
};

static struct amounts guess(const struct kinds *k, const struct corpus *corpus)
{
    double text = 0, looked_at = 0;
    for (int f = 0; f < SOURCE_N_FORMATS; f++) {
        for (int p = 0; p < N_PACKINGS; p++) {
            text += (double)k->n_bytes[f][p] * TEXT_PER_BYTE[p];
            looked_at += (double)k->n_bytes[f][p];
        }
    }
    text *= (double)corpus->files.total_bytes / (looked_at > 0 ? looked_at : 1);
    return (struct amounts){text, text * TOKENS_PER_TEXT, text * SENTENCES_PER_TEXT};
}

/* Reads a sample; *a stays unchanged if the sample is too small for an estimate. */
static struct status take_sample(struct prepare_plan *p, const struct prepare_config *c, double seconds,
                                 struct amounts *a)
{
    enum { LEAST_BYTES = 1 << 18 };
    struct corpus corpus;
    struct store_pass_report report;
    struct store_pass_config pass = c->pass;
    struct source_options options = c->source;
    options.quiet = !c->common.dry_run; /* without a dry run the pass that follows warns */
    pass.directory = NULL;
    pass.most_seconds = seconds;
    pass.quiet = true;
    struct status s = corpus_open(&corpus, c->inputs, c->n_inputs, options);
    s = failed(s) ? s : store_pass_run(&report, &corpus, &pass, &p->sample);
    uint64_t total = corpus.files.total_bytes, done = p->sample.done_bytes;
    corpus_close(&corpus);
    TRY(s);
    p->has_sample = true;
    p->sample_is_whole = report.is_whole;
    if (report.is_whole || done >= LEAST_BYTES) {
        double scale = (double)total / (double)(done > 0 ? done : 1);
        p->seconds = p->sample.seconds * scale;
        *a = (struct amounts){(double)report.n_text_bytes * scale, (double)report.n_tokens * scale,
                              (double)report.n_sentences * scale};
    }
    return status_ok();
}

/* ---- what it takes ---- */

static double set_bytes(const struct shard_set_config *c, const struct amounts *a)
{
    double rows = a->tokens * (double)c->dupe_factor / (0.85 * (double)c->samples.batch.max_seq_length);
    double packed = c->packed ? 0.9 : 1;
    return packed * rows *
           (0.85 * (double)c->samples.batch.max_seq_length * DEFLATED_TOKEN_BYTES +
            (double)c->samples.max_predictions_per_seq * DEFLATED_PREDICTION_BYTES);
}

static uint64_t estimate_disk(const struct prepare_config *c, const struct amounts *a)
{
    double token_bytes = c->pass.tokenizer != NULL && c->pass.tokenizer->n >= 65500 ? 4 : 2;
    double bytes = c->pass.tokenizer == NULL ? 0 : a->tokens * token_bytes + a->sentences * INDEX_BYTES;
    bytes += c->pass.writes_text ? 1.05 * a->text : 0;
    for (int i = 0; i < c->n_sets; i++) {
        bytes += set_bytes(&c->sets[i].shards, a);
    }
    return (uint64_t)bytes;
}

/* Bytes of the hashes of documents, which have at least the size of a short article of Wikipedia. */
static uint64_t hash_bytes(const struct prepare_config *c, const struct amounts *a)
{
    enum { SHORT_DOCUMENT = 512 };
    return cleaning_memory_bytes(&c->pass.cleaning, a->text / SHORT_DOCUMENT);
}

static uint64_t estimate_memory(const struct prepare_config *c, const struct amounts *a)
{
    enum { SHARD_BYTES = 160 << 20 }; /* a file of 64 MiB, once more as an image, and its compression */
    uint64_t bytes = BASE_BYTES + (uint64_t)parallel_n_parts() * THREAD_BYTES;
    return bytes + (c->n_sets > 0 ? SHARD_BYTES : 0) + hash_bytes(c, a);
}

struct status prepare_plan_make(struct prepare_plan *p, const struct prepare_config *c,
                                const struct corpus *corpus, double sample_seconds)
{
    struct kinds kinds = {0};
    *p = (struct prepare_plan){.seconds = -1};
    TRY(look(&kinds, corpus));
    tell_kinds(&kinds, corpus);
    struct amounts a = guess(&kinds, corpus);
    TRY(sample_seconds > 0 ? take_sample(p, c, sample_seconds, &a) : status_ok());
    p->disk_bytes = estimate_disk(c, &a);
    p->memory_bytes = estimate_memory(c, &a);
    return status_ok();
}

/* Free bytes on the disk where the output goes, or will be made. */
static uint64_t free_bytes(const struct prepare_config *c)
{
    char there[FILE_PATH_BYTES];
    if (failed(file_existing_part(there, c->common.output_dir))) {
        return UINT64_MAX;
    }
    return file_free_bytes(there[0] == '\0' ? "." : there);
}

void prepare_plan_tell(const struct prepare_plan *p, const struct prepare_config *c,
                       const struct corpus *corpus)
{
    uint64_t free = free_bytes(c);
    char time[80] = "unknown";
    if (p->seconds >= 0) {
        snprintf(time, sizeof time, "about %s to read", progress_time(p->seconds).text);
    }
    log_info("plan: memory at most about %.0f MB on %d threads; disk about %.1f MB, temporary files included "
             "(%.1f MB free); time %s%s",
             (double)p->memory_bytes / 1e6, parallel_n_parts(), (double)p->disk_bytes / 1e6,
             (double)free / 1e6, time, c->n_sets > 0 ? ", and more for HDF5 files" : "");
    if (p->has_sample && !p->sample_is_whole) {
        log_info("plan: estimated from the first %.1f MB of %.1f", (double)p->sample.done_bytes / 1e6,
                 (double)corpus->files.total_bytes / 1e6);
    }
}

struct status prepare_plan_check_disk(const struct prepare_plan *p, const struct prepare_config *c)
{
    uint64_t free = free_bytes(c);
    return p->disk_bytes / 2 <= free
               ? status_ok()
               : status_error(STATUS_IO,
                              "%s has %.1f MB free, but the output is estimated at %.1f MB: choose another "
                              "place, or fewer outputs",
                              c->common.output_dir, (double)free / 1e6, (double)p->disk_bytes / 1e6);
}
